//! What a summary answers.

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
    /// No level.
    ///
    /// ```
    /// assert!(tamis::summary::Levels::NONE.is_empty());
    /// ```
    pub const NONE: Self = Self(0);

    /// The levels below a number of levels; all of them from 8 on.
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

    /// One level; none if it is not below 8.
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

    /// These and one more.
    ///
    /// ```
    /// use tamis::summary::Levels;
    /// assert!(Levels::NONE.with(4).contains(4));
    /// ```
    #[must_use]
    pub fn with(self, level: u32) -> Self {
        Self(self.0 | Self::only(level).0)
    }

    /// These except one.
    ///
    /// ```
    /// use tamis::summary::Levels;
    /// assert!(Levels::only(4).without(4).is_empty());
    /// ```
    #[must_use]
    pub fn without(self, level: u32) -> Self {
        Self(self.0 & !Self::only(level).0)
    }

    /// Whether a level is one of them.
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

    /// Whether there is none.
    ///
    /// ```
    /// use tamis::summary::Levels;
    /// assert!(!Levels::only(0).is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The levels, ascending.
    ///
    /// ```
    /// use tamis::summary::Levels;
    /// assert!(Levels::below(3).iter().eq([0, 1, 2]));
    /// ```
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..MAX_CHOICES as u32).filter(move |&level| self.contains(level))
    }
}

/// Where a summary says a key is.
///
/// ```
/// use tamis::summary::{Levels, Located};
///
/// let located = Located::at_most(2);
/// assert_eq!(located.named, Some(2));
/// assert_eq!(located.possible, Levels::below(3));
/// assert!(Located::ABSENT.possible.is_empty());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Located {
    /// The level it names (type(x) - 1 in the paper); none if the key is
    /// absent, or if the summary names no level.
    pub named: Option<u32>,
    /// Every level the key can be in. For a key in the table it never misses
    /// the right one; empty if the key is absent.
    pub possible: Levels,
}

impl Located {
    /// In no level.
    ///
    /// ```
    /// use tamis::summary::Located;
    /// assert_eq!(Located::ABSENT.named, None);
    /// ```
    pub const ABSENT: Self = Self { named: None, possible: Levels::NONE };

    /// In this level, or, if the summary is wrong, in one below it.
    ///
    /// ```
    /// use tamis::summary::Located;
    /// assert!(Located::at_most(1).possible.contains(0));
    /// ```
    #[inline]
    #[must_use]
    pub fn at_most(level: u32) -> Self {
        Self { named: Some(level), possible: Levels::below(level + 1) }
    }
}
