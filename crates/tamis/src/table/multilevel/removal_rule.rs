//! The rules by which a table removes keys.

use core::fmt;
use core::str::FromStr;

use crate::error::{Error, Result};
use crate::summary::TableShape;

/// The rule by which a [`Multilevel`](super::Multilevel) table removes a key.
///
/// **Take [`Lazy`](Self::Lazy) if keys are replaced**, and the pauses of
/// rebuilds are acceptable: the probability of a full table stays that of a
/// table that only grows. A table of 10^5 keys in levels of 190,000, 65,000,
/// 25,000, 15,000, 3000 and 2000 buckets fills in 6.2 of a million rebuild
/// cycles with a share of 25 %, and 12.6 times in every turnover with
/// [`Immediate`](Self::Immediate) (`tamis theory crisis --items 100000
/// --levels 190000,65000,25000,15000,3000,2000 --churn --quota 0.25`).
///
/// **Take [`Immediate`](Self::Immediate)** if removals are few, if the table
/// shrinks for good, or if no operation may touch all keys; and give the
/// table a stash if keys are replaced nevertheless.
///
/// ```
/// use tamis::table::RemovalRule;
/// assert_eq!("lazy".parse(), Ok(RemovalRule::Lazy { share: 0.25 }));
/// assert_eq!(RemovalRule::default().name(), "immediate");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum RemovalRule {
    /// A removed key frees its slot at once, and the summary removes it by
    /// its own [`Deletion`](crate::summary::Deletion). New keys take free
    /// slots in the first level while old ones stay in later levels, which
    /// fill up.
    #[default]
    Immediate,
    /// The paper's lazy deletion: a removed key keeps its slot, marked as
    /// deleted, and stays in the summary. When the deleted keys exceed
    /// `share` of the design items, the removal rebuilds the table, its
    /// occupancy bits and its summary from the remaining keys. A key that is
    /// inserted again before that gets its slot back.
    ///
    /// The table and its summary are sized for the deleted keys as well. A
    /// rebuild reinserts every key, 1/`share` insertions for each removal on
    /// average, and keeps entries twice in memory while it runs. If a rebuild
    /// finds the table full (a crisis), the table stays as it is, and the
    /// next rebuild is due after as many deleted keys again.
    Lazy {
        /// Deleted keys allowed, as a share of the design items.
        share: f64,
    },
}

impl RemovalRule {
    /// The name: `immediate` or `lazy`.
    ///
    /// ```
    /// use tamis::table::RemovalRule;
    /// assert_eq!(RemovalRule::Lazy { share: 0.5 }.name(), "lazy");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Immediate => "immediate",
            Self::Lazy { .. } => "lazy",
        }
    }

    /// Deleted keys allowed in a table for `items` keys; `None` if removals
    /// free their slots.
    pub(super) fn quota(self, items: u64) -> Result<Option<u64>> {
        let Self::Lazy { share } = self else { return Ok(None) };
        if !(0.0..=100.0).contains(&share) {
            return Err(Error::InvalidArgument {
                what: "share of deleted keys",
                why: "expected 0 to 100",
            });
        }
        // The cast saturates, at counts that no table reaches.
        Ok(Some((share * items as f64) as u64))
    }

    /// The shape for the most keys that take slots, the deleted ones included.
    pub(super) fn filled(self, shape: &TableShape) -> Result<TableShape> {
        let deleted = self.quota(shape.items())?.unwrap_or(0);
        let items = shape.items().saturating_add(deleted);
        TableShape::new(items, shape.levels(), shape.bucket_entries())
    }
}

impl fmt::Display for RemovalRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for RemovalRule {
    type Err = Error;

    /// `immediate`, or `lazy` with a share of a quarter.
    fn from_str(name: &str) -> Result<Self> {
        match name {
            "immediate" => Ok(Self::Immediate),
            "lazy" => Ok(Self::Lazy { share: 0.25 }),
            _ => Err(Error::InvalidArgument {
                what: "removal",
                why: "expected one of immediate, lazy",
            }),
        }
    }
}
