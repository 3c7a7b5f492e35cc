//! The result of a lookup in a summary.

use crate::placement::MAX_CHOICES;

/// A set of levels, of which a table has at most 8. Level 0 is the largest
/// (T_1 in the paper).
///
/// ```
/// use tamis::summary::Levels;
///
/// let levels = Levels::below(3).without(1);
/// assert!(levels.contains(0) && !levels.contains(1));
/// assert_eq!(levels.iter().collect::<Vec<_>>(), [0, 2]);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Levels(u8);

impl Levels {
    /// The empty set.
    ///
    /// ```
    /// assert!(tamis::summary::Levels::NONE.is_empty());
    /// ```
    pub const NONE: Self = Self(0);

    /// The levels `0..count`; all 8 levels if `count` is 8 or more.
    ///
    /// ```
    /// use tamis::summary::Levels;
    /// assert_eq!(Levels::below(2), Levels::only(0).with(1));
    /// assert!(Levels::below(0).is_empty());
    /// ```
    #[must_use]
    pub fn below(count: u32) -> Self {
        Self(!u8::MAX.checked_shl(count).unwrap_or(0))
    }

    /// The set of one level; empty if `level` is 8 or more.
    ///
    /// ```
    /// use tamis::summary::Levels;
    /// assert!(Levels::only(7).contains(7));
    /// assert!(Levels::only(8).is_empty());
    /// ```
    #[must_use]
    pub fn only(level: u32) -> Self {
        Self(1u8.checked_shl(level).unwrap_or(0))
    }

    /// The set with `level` added.
    ///
    /// ```
    /// use tamis::summary::Levels;
    /// assert!(Levels::NONE.with(4).contains(4));
    /// ```
    #[must_use]
    pub fn with(self, level: u32) -> Self {
        Self(self.0 | Self::only(level).0)
    }

    /// The set with `level` removed.
    ///
    /// ```
    /// use tamis::summary::Levels;
    /// assert!(Levels::only(4).without(4).is_empty());
    /// ```
    #[must_use]
    pub fn without(self, level: u32) -> Self {
        Self(self.0 & !Self::only(level).0)
    }

    /// Whether `level` is in the set.
    ///
    /// ```
    /// use tamis::summary::Levels;
    /// assert!(Levels::only(2).contains(2));
    /// assert!(!Levels::only(2).contains(99));
    /// ```
    #[must_use]
    pub fn contains(self, level: u32) -> bool {
        self.0 & Self::only(level).0 != 0
    }

    /// Whether the set is empty.
    ///
    /// ```
    /// use tamis::summary::Levels;
    /// assert!(!Levels::only(0).is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The levels in ascending order.
    ///
    /// ```
    /// use tamis::summary::Levels;
    /// assert!(Levels::below(3).iter().eq([0, 1, 2]));
    /// ```
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..MAX_CHOICES as u32).filter(move |&level| self.contains(level))
    }
}

/// The location of a key according to a summary.
///
/// ```
/// use tamis::summary::{Levels, Located};
///
/// let located = Located::at_most(2);
/// assert_eq!(located.level, Some(2));
/// assert_eq!(located.possible, Levels::below(3));
/// assert!(Located::ABSENT.possible.is_empty());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Located {
    /// The level that the summary names (type(x) - 1 in the paper). `None`
    /// if the key is absent or the summary names no level.
    pub level: Option<u32>,
    /// Every level the key can be in. Contains the true level of each key in
    /// the table; empty if the key is absent.
    pub possible: Levels,
}

impl Located {
    /// In no level.
    ///
    /// ```
    /// use tamis::summary::Located;
    /// assert_eq!(Located::ABSENT.level, None);
    /// ```
    pub const ABSENT: Self = Self { level: None, possible: Levels::NONE };

    /// Named `level`; possible in every level up to it.
    ///
    /// ```
    /// use tamis::summary::Located;
    /// assert!(Located::at_most(1).possible.contains(0));
    /// ```
    #[inline]
    #[must_use]
    pub fn at_most(level: u32) -> Self {
        Self { level: Some(level), possible: Levels::below(level + 1) }
    }
}
