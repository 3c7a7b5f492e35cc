//! Measured properties and settings of a filter.

use alloc::vec::Vec;

use crate::format::Kind;

/// Load, false-positive rate and reads per lookup of a filter.
///
/// ```
/// use tamis::Bloom;
/// let filter = Bloom::builder().items(1000).fpr(0.01).build()?;
/// let stats = filter.stats();
/// assert_eq!((stats.items, stats.design_items), (0, 1000));
/// assert_eq!(stats.bits_per_key, None);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The kind of filter.
    pub kind: Kind,
    /// Insertions counted, less removals.
    ///
    /// Bloom kinds and TinySets count repeats: a repeat and a false positive
    /// look the same. Balanced filters count a key that looks present not
    /// at all.
    pub items: u64,
    /// Lower bound on the number of *different* keys, from the content of
    /// the blocks. Like the upper bound it assumes hashed keys; chance breaks
    /// one bound in three million.
    pub least_items: u64,
    /// Estimated number of *different* keys, from the content of the blocks:
    /// keys that left no trace are added, by the rate at which they occur.
    pub estimated_items: f64,
    /// Upper bound on the number of *different* keys: the number to build the
    /// filter again for. Where the blocks are too full to tell, the
    /// insertions counted; `None` if those were not counted either, as in a
    /// balanced filter that answers "maybe" to every key.
    pub most_items: Option<u64>,
    /// Keys the filter was sized for.
    pub design_items: u64,
    /// Bytes of the filter with its header, in memory and as a file.
    pub bytes: u64,
    /// Bits of memory per key inserted (beta), without the header; `None`
    /// before the first key.
    pub bits_per_key: Option<f64>,
    /// False-positive rate now, from the bits set.
    pub expected_fpr: f64,
    /// False-positive rate predicted at `design_items`.
    pub design_fpr: f64,
    /// Blocks (cache lines) read by a lookup of a member, on average.
    pub reads_hit: f64,
    /// Blocks (cache lines) read by a lookup of a non-member, on average.
    pub reads_miss: f64,
    /// Blocks so full that they answer "maybe" to every key; 0 except in
    /// TinySets.
    pub saturated_blocks: u64,
    /// Fingerprints that are stuck, of keys inserted 16 times or more: they
    /// are not counted any more, and removals leave them. 0 except in
    /// TinySets that store repeats.
    pub stuck_keys: u64,
    /// Whether the filter holds more different keys than it was sized for,
    /// or has saturated blocks: `design_fpr` no longer holds.
    pub over_design: bool,
}

/// The value of a filter's setting.
///
/// ```
/// use tamis::inspect::Parameter;
/// assert_eq!(Parameter::Count(512).to_string(), "512");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Parameter {
    /// A whole number.
    Count(u64),
    /// Several whole numbers.
    Counts(Vec<u64>),
    /// Any number.
    Number(f64),
    /// A name.
    Word(&'static str),
}

impl core::fmt::Display for Parameter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Counts(counts) => f.debug_list().entries(counts).finish(),
            Self::Number(number) => number.fmt(f),
            Self::Word(word) => f.pad(word),
        }
    }
}

/// Settings by name.
pub(super) type Parameters = Vec<(&'static str, Parameter)>;
