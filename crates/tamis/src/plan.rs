//! Comparison of all kinds of filters for a task, and the recommended one.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

use tamis_theory::Prediction;
use tamis_theory::plan::{self, Candidate, Task};

use crate::error::{Error, Result};
use crate::filter::{Blocked, Prefer, Size};
use crate::format::Kind;

/// Predictions of all kinds of filters for a number of keys and a size, and
/// the recommended one. No filter is built and no key is read.
///
/// The recommendation starts from [`Kind::recommended`], which reads one block
/// per lookup. The other kinds follow in order of their reads, up to 1.3 per
/// lookup. Each replaces the recommendation if it saves 5 % of the memory (by
/// bits per key: 25 % of the false positives). With [`Prefer::Speed`],
/// `TinySet` is left out.
///
/// ```
/// use tamis::{Kind, Plan, Prefer, Size};
///
/// let plan = Plan::new(1_000_000_000, Size::Fpr(0.001), 512, 0.9,
///     Prefer::Space)?;
/// assert_eq!(plan.recommended().kind, Kind::TinySet);
/// for design in &plan.designs {
///     println!("{}: {} bytes", design.name(), design.bytes);
/// }
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// All designs that reach the size; never empty.
    pub designs: Vec<PlannedDesign>,
    /// Reason for the recommended design, in words.
    pub reason: String,
    /// Comparison of every other design with the recommended one.
    pub notes: Vec<String>,
    /// Index in `designs`.
    recommended: usize,
}

/// One kind of filter with its settings: a row of a [`Plan`].
///
/// ```
/// use tamis::{Plan, Prefer, Size};
///
/// let size = Size::BitsPerKey(10.0);
/// let plan = Plan::new(1000, size, 512, 0.5, Prefer::Speed)?;
/// let blocked = &plan.designs[0];
/// assert_eq!((blocked.bytes, blocked.reads), (1250, 1.0));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct PlannedDesign {
    /// The kind of filter.
    pub kind: Kind,
    /// Levels of a `TinySet`, `None` for other kinds.
    pub levels: Option<u32>,
    /// Bits per key, rate and reads with all keys inserted.
    pub prediction: Prediction,
    /// Memory of the blocks for all keys.
    pub bytes: u64,
    /// Blocks read per lookup, averaged over hits and misses.
    pub reads: f64,
    /// Keys can be removed.
    pub removable: bool,
    /// Two such filters merge into one.
    pub mergeable: bool,
}

impl Plan {
    /// Compares the kinds for `items` keys in blocks of `block_bits` bits
    /// (512 or 256); `miss_share` is the share of lookups for keys that are
    /// not in the set.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] unless `miss_share` is between 0 and 1, or
    /// that of [`Kind::recommended`].
    ///
    /// ```
    /// use tamis::{Plan, Prefer, Size};
    /// let plan = |share| {
    ///     Plan::new(9, Size::Fpr(0.1), 512, share, Prefer::Space)
    /// };
    /// assert!(plan(0.5).is_ok() && plan(1.5).is_err());
    /// ```
    pub fn new(
        items: u64,
        size: Size,
        block_bits: u32,
        miss_share: f64,
        prefer: Prefer,
    ) -> Result<Self> {
        if !(0.0..=1.0).contains(&miss_share) {
            return Err(Error::InvalidArgument {
                what: "share of misses",
                why: "expected a number between 0 and 1, such as 0.9",
            });
        }
        // Its error names an invalid size or block.
        Blocked::builder().size(size).block_bits(block_bits).predict()?;
        let (size, prefer) = (size.into(), prefer.into());
        let task = Task { items, size, miss_share, block_bits, prefer };
        let comparison = task.compare()?;
        Ok(Self {
            designs: comparison.candidates.iter().map(Into::into).collect(),
            recommended: comparison.recommended(),
            reason: comparison.reason,
            notes: comparison.notes,
        })
    }

    /// The recommended design.
    ///
    /// ```
    /// use tamis::{Kind, Plan, Prefer, Size};
    /// let size = Size::Fpr(0.01);
    /// let plan = Plan::new(9, size, 512, 0.9, Prefer::Speed)?;
    /// assert_eq!(plan.recommended().kind, Kind::Blocked);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn recommended(&self) -> &PlannedDesign {
        // `new` found the index in the list.
        &self.designs[self.recommended]
    }
}

impl From<&Candidate> for PlannedDesign {
    fn from(candidate: &Candidate) -> Self {
        let Candidate { kind, prediction, bytes, reads } = *candidate;
        Self {
            kind: match kind {
                plan::Kind::Blocked => Kind::Blocked,
                plan::Kind::Split => Kind::Split,
                plan::Kind::Bloom => Kind::Bloom,
                plan::Kind::Balanced => Kind::Balanced,
                plan::Kind::TinySet
                | plan::Kind::Removable
                | plan::Kind::TwoLevels => Kind::TinySet,
            },
            levels: kind.levels(),
            prediction,
            bytes,
            reads,
            removable: kind.removable(),
            mergeable: kind.mergeable(),
        }
    }
}

impl PlannedDesign {
    /// The kind and its settings, such as "tinyset, 2 levels".
    ///
    /// ```
    /// use tamis::{Plan, Prefer, Size};
    /// let size = Size::Fpr(0.01);
    /// let plan = Plan::new(9, size, 512, 0.9, Prefer::Space)?;
    /// assert_eq!(plan.recommended().name(), "tinyset");
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> String {
        let kind = self.kind.name();
        match (self.removable, self.levels) {
            (true, _) => alloc::format!("{kind}, removable"),
            (_, Some(levels @ 2..)) => {
                alloc::format!("{kind}, {levels} levels")
            }
            _ => kind.to_owned(),
        }
    }
}
