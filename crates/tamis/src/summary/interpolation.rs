//! Sorted strings of hash bits.

use alloc::vec::Vec;
use core::fmt;

use tamis_theory::summary::{self, Prediction};

use super::mixing::MixedHash;
use super::{
    Levels, Located, Summary, SummaryBuilder, TableShape, fmt_size, zeroed,
};
use crate::error::{Error, Result};
use crate::search::interpolate;

/// The bits of a word that hold the level.
const LEVEL_BITS: u64 = 7;

/// The largest string length: a word minus the level.
const MAX_BITS: u32 = 61;

/// Strings per segment, on average, at which the number of segments doubles.
const CROWDED: u64 = 128;

/// Words by which a full segment grows. Doubling it would leave a third of
/// the memory unused.
const GROWTH: usize = 16;

/// The sorted hashes of all keys, each cut to a string of b bits and stored
/// with its level in one word; searched by interpolation (IS in the paper).
///
/// An absent key matches a string with probability n / 2^b. Two keys have
/// equal strings with probability about n^2 / 2^(b+1). Equal strings are
/// adjacent, so that a lookup collects all their levels: it names the highest,
/// and the table reads the others next. Removal is exact.
///
/// One sorted array would move half its words on every insertion. The top
/// bits of a string instead choose one of many short sorted arrays, *segments*
/// of 64 to 128 words, whose number doubles when they are full on average. An
/// insertion moves half a kilobyte at most on average, and a search reads four
/// to five words.
///
/// | | |
/// |---|---|
/// | memory | 64 bits per key; 3.75 to 7.5 for the 7.5 words that are unused in a segment on average, more under churn; 1.5 to 3 for its header of three words |
/// | a hit reads | 1 bucket, unless another key has the same string |
/// | a miss reads | n / 2^b buckets |
/// | a lookup in the summary | the header of a segment and four to five of its words on average; never more than twice the steps of a binary search |
///
/// **Not guaranteed**: anything for keys with equal *hashes*, whose strings
/// are equal for every b. A short string saves no memory; it exists to study
/// equal strings.
///
/// ```
/// use tamis::summary::Interpolation;
/// use tamis::table::Multilevel;
///
/// let builder = Multilevel::builder().items(1000);
/// let mut table = builder.build_with(&Interpolation::builder())?;
/// table.insert("apple", 3)?;
/// assert_eq!(table.lookup("apple").reads, 1);
/// assert_eq!(table.lookup("pear").reads, 0);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct Interpolation {
    /// Sorted arrays; every word of one is below every word of the next.
    segments: Vec<Vec<u64>>,
    /// `word >> shift` is the index of its segment.
    shift: u32,
    bits: u32,
    len: u64,
    depth: u32,
}

/// Settings of an [`Interpolation`].
///
/// ```
/// use tamis::summary::{Interpolation, SummaryBuilder, TableShape};
///
/// let shape = TableShape::new(1000, &[1800, 700, 300], 1)?;
/// assert!(Interpolation::builder().bits(32).build(&shape).is_ok());
/// assert!(Interpolation::builder().bits(0).build(&shape).is_err());
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct InterpolationBuilder {
    bits: u32,
}

impl InterpolationBuilder {
    /// The length of a string in bits (b), 1 to 61; default 61, which fills a
    /// word beside the level.
    ///
    /// ```
    /// use tamis::summary::{
    ///     Interpolation, Summary, SummaryBuilder, TableShape,
    /// };
    /// let shape = TableShape::new(9, &[8, 4], 1)?;
    /// let mut summary = Interpolation::builder().bits(1).build(&shape)?;
    /// summary.insert(1, 0);
    /// assert_eq!(summary.false_positive(), 0.5);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn bits(self, bits: u32) -> Self {
        Self { bits }
    }

    /// Theoretical properties in a freshly filled table: bits per item, the
    /// share of absent keys that are read, and the probability that two
    /// strings are equal.
    ///
    /// # Errors
    ///
    /// [`Error::Infeasible`] if the theory has no prediction for the table.
    ///
    /// ```
    /// use tamis::summary::{Interpolation, TableShape};
    /// let shape = TableShape::new(10_000, &[18_000, 7200, 3600, 1200], 1)?;
    /// let prediction = Interpolation::builder().predict(&shape)?;
    /// assert!(prediction.failure < 1e-10);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn predict(&self, shape: &TableShape) -> Result<Prediction> {
        Ok(summary::interpolation(&shape.occupancy()?, self.bits)?)
    }
}

impl SummaryBuilder for InterpolationBuilder {
    type Summary = Interpolation;

    fn build(&self, shape: &TableShape) -> Result<Interpolation> {
        if !(1..=MAX_BITS).contains(&self.bits) {
            return Err(Error::InvalidArgument {
                what: "bits of a string",
                why: "expected 1 to 61",
            });
        }
        let wanted = shape.items().div_ceil(CROWDED).next_power_of_two();
        let index = wanted.ilog2().clamp(1, self.bits);
        Ok(Interpolation {
            segments: zeroed(1 << index)?,
            shift: u64::BITS - index,
            bits: self.bits,
            len: 0,
            depth: shape.depth(),
        })
    }
}

impl Interpolation {
    /// A builder with strings of 61 bits.
    ///
    /// ```
    /// use tamis::summary::{
    ///     Interpolation, Summary, SummaryBuilder, TableShape,
    /// };
    /// let shape = TableShape::new(9, &[8, 4], 1)?;
    /// let mut summary = Interpolation::builder().build(&shape)?;
    /// summary.insert(1, 0);
    /// assert_eq!(summary.false_positive(), 0.5f64.powi(61));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn builder() -> InterpolationBuilder {
        InterpolationBuilder { bits: MAX_BITS }
    }

    /// The number of distinct strings; less than the number of keys if
    /// strings collide. Reads the whole summary.
    ///
    /// ```
    /// use tamis::summary::{
    ///     Interpolation, Summary, SummaryBuilder, TableShape,
    /// };
    /// let shape = TableShape::new(9, &[8, 4], 1)?;
    /// let mut summary = Interpolation::builder().bits(1).build(&shape)?;
    /// (0..9).for_each(|hash| assert!(!summary.insert(hash, 0)));
    /// assert_eq!(summary.distinct_strings(), 2);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn distinct_strings(&self) -> u64 {
        let counts = self.segments.iter().map(|segment| {
            segment.chunk_by(|a, b| a & !LEVEL_BITS == b & !LEVEL_BITS).count()
                as u64
        });
        counts.sum()
    }

    /// The string of a key, in the top bits of a word.
    #[inline]
    fn string(&self, hash: u64) -> u64 {
        let unused = u64::BITS - self.bits;
        MixedHash::new(hash).word(0, 0) >> unused << unused
    }

    fn word(&self, hash: u64, level: u32) -> u64 {
        self.string(hash) | u64::from(level.min(self.depth - 1))
    }

    #[inline]
    fn segment(&self, word: u64) -> usize {
        (word >> self.shift) as usize
    }

    /// The index of a word in its segment, or the index to insert it at.
    #[inline]
    fn find(&self, word: u64) -> core::result::Result<usize, usize> {
        let segment = &self.segments[self.segment(word)];
        let least = word >> self.shift << self.shift;
        let most = least | ((1 << self.shift) - 1);
        interpolate(segment.len(), least..=most, word, |at| segment[at])
    }

    /// The levels of all keys with this string.
    #[inline]
    fn levels(&self, string: u64) -> Levels {
        let segment = &self.segments[self.segment(string)];
        let (Ok(at) | Err(at)) = self.find(string);
        let mut levels = Levels::NONE;
        // A match may be inside a run of equal words of level 0: skipping the
        // start of that run loses no level.
        let here = segment[at..].iter();
        for word in here.take_while(|&word| word & !LEVEL_BITS == string) {
            levels = levels.with((word & LEVEL_BITS) as u32);
        }
        levels
    }

    /// Splits every segment in two, unless a segment per string exists.
    fn split_segments(&mut self) {
        if u64::BITS - self.shift == self.bits {
            return;
        }
        self.shift -= 1;
        let old = core::mem::take(&mut self.segments);
        self.segments.reserve_exact(2 * old.len());
        for (i, mut lower) in (0u64..).zip(old) {
            let middle = (2 * i + 1) << self.shift;
            let at = lower.partition_point(|&word| word < middle);
            let upper = lower.split_off(at);
            lower.shrink_to(at.next_multiple_of(GROWTH));
            self.segments.extend([lower, upper]);
        }
    }
}

impl fmt::Debug for Interpolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_size("Interpolation", self, f)
    }
}

impl Summary for Interpolation {
    #[inline]
    fn locate(&self, hash: u64) -> Located {
        let possible = self.levels(self.string(hash));
        Located { level: possible.iter().last(), possible }
    }

    fn insert(&mut self, hash: u64, level: u32) -> bool {
        let word = self.word(hash, level);
        let others = self.levels(word & !LEVEL_BITS);
        let (Ok(at) | Err(at)) = self.find(word);
        let number = self.segment(word);
        let segment = &mut self.segments[number];
        if segment.len() == segment.capacity() {
            segment.reserve_exact(GROWTH);
        }
        segment.insert(at, word);
        self.len += 1;
        if self.len > CROWDED * self.segments.len() as u64 {
            self.split_segments();
        }
        others.iter().any(|other| other < (word & LEVEL_BITS) as u32)
    }

    fn remove(&mut self, hash: u64, level: u32) {
        let word = self.word(hash, level);
        if let Ok(at) = self.find(word) {
            let number = self.segment(word);
            let segment = &mut self.segments[number];
            segment.remove(at);
            self.len -= 1;
            let len = segment.len();
            if segment.capacity() - len > 2 * GROWTH {
                segment.shrink_to(len + GROWTH);
            }
        }
    }

    fn clear(&mut self) {
        self.segments.iter_mut().for_each(Vec::clear);
        self.len = 0;
    }

    fn stale(&self) -> u64 {
        0
    }

    fn needs_rebuild(&self) -> bool {
        false
    }

    fn bits(&self) -> u64 {
        let words = self.segments.iter().map(|s| s.capacity() as u64);
        let headers = size_of_val(&self.segments[..]) as u64;
        64 * words.sum::<u64>() + 8 * headers
    }

    fn false_positive(&self) -> f64 {
        libm::scalbn(self.distinct_strings() as f64, -(self.bits as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    fn empty(items: u64, bits: u32) -> Interpolation {
        let shape = TableShape::new(items, &[8; 8], 1).unwrap();
        Interpolation::builder().bits(bits).build(&shape).unwrap()
    }

    #[test]
    fn debug_output_omits_the_strings() {
        let mut summary = empty(1000, 61);
        for i in 0..1000u64 {
            summary.insert(crate::KeyHasher::default().hash(&i), 0);
        }
        assert!(alloc::format!("{summary:?}").len() < 80);
    }

    proptest! {
        /// Compares with a multiset of strings and levels. Most strings are
        /// short enough to collide.
        #[test]
        fn histories(
            bits in 1u32..=61,
            changes in proptest::collection::vec(
                (0u64..60, 0u32..8, any::<bool>()), 0..400,
            ),
        ) {
            let mut summary = empty(1, bits);
            let mut model = BTreeMap::<(u64, u32), u64>::new();
            for (hash, level, insert) in changes {
                let string = summary.string(hash);
                let count = model.entry((string, level)).or_default();
                if insert {
                    *count += 1;
                    let lower = model
                        .range((string, 0)..(string, level))
                        .any(|(_, &count)| count > 0);
                    prop_assert_eq!(summary.insert(hash, level), lower);
                } else {
                    *count = count.saturating_sub(1);
                    summary.remove(hash, level);
                }
                let expected = model
                    .range((string, 0)..=(string, 7))
                    .filter(|&(_, &count)| count > 0)
                    .fold(Levels::NONE, |all, (&(_, l), _)| all.with(l));
                let located = summary.locate(hash);
                prop_assert_eq!(located.possible, expected);
                prop_assert_eq!(located.level, expected.iter().last());
                prop_assert_eq!(summary.len, model.values().sum::<u64>());
                let ordered = summary.segments.iter().flatten();
                prop_assert!(ordered.is_sorted());
            }
        }
    }

    #[test]
    fn segments_stay_short_and_memory_near_a_word() {
        let unused = (GROWTH as f64 - 1.0) / 2.0 * 64.0;
        let header = 8.0 * size_of::<Vec<u64>>() as f64;
        for items in [70_000, 100_000, 131_072u64] {
            // A design for one key splits its segments often. Splitting
            // leaves halves without spare room, which then all grow.
            for (design, slack) in [(items, 0.01), (1, 0.05)] {
                let mut summary = empty(design, 61);
                for i in 0..items {
                    summary.insert(crate::KeyHasher::default().hash(&i), 1);
                }
                let longest = summary.segments.iter().map(Vec::len).max();
                assert!(longest.is_some_and(|len| len < 192), "{longest:?}");
                let segment = items as f64 / summary.segments.len() as f64;
                assert!((64.0..=128.0).contains(&segment), "{segment}");
                let expected = 64.0 + (unused + header) / segment;
                let part = summary.bits() as f64 / items as f64 / expected;
                assert!((part - 1.0).abs() < slack, "{items}: {part}");
            }
        }
    }
}
