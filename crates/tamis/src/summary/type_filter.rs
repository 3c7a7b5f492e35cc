//! One filter whose cells hold levels.

use core::fmt;

use tamis_theory::summary::{self, Prediction};

use super::cells::{CellAt, Cells};
use super::counters::Counters;
use super::deletion::StaleKeys;
use super::mixing::{MixedHash, ProbeGroups};
use super::rates::Rates;
use super::{
    Deletion, Located, Summary, SummaryBuilder, TableShape, fmt_size,
};
use crate::error::{Error, Result};
use crate::placement::reduce;

/// One filter whose cells hold levels (SF in the paper). An insertion raises
/// the key's cell in each of k groups to the key's level. A lookup names the
/// minimum of its k cells; an empty cell proves that the key is absent.
///
/// Cells are digits of base d + 1, packed into words:
///
/// | levels | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |
/// |---|---|---|---|---|---|---|---|---|
/// | cells in a word | 64 | 40 | 32 | 27 | 24 | 22 | 21 | 20 |
/// | bits per cell | 1 | 1.6 | 2 | 2.37 | 2.67 | 2.91 | 3.05 | 3.2 |
///
/// | | |
/// |---|---|
/// | memory | as [`predict`](TypeFilterBuilder::predict) computes, with the cells of each group rounded up to whole words; with counters, four bits more for each level of each cell |
/// | a hit reads | 1 bucket, except for the share of [misnamed](TypeFilterBuilder::misnamed) keys; those, up to the number of the level named |
/// | a miss reads | one bucket per [false positive](TypeFilterBuilder::false_positive); nearly all of these name the first level |
/// | a lookup in the summary | all k cells for a hit; for a miss the cells up to the first empty one, 2 on average if half the cells are empty |
///
/// A key is misnamed if each of its cells also belongs to a key in a later
/// level, so the level named is too high, never too low, and a key in the
/// table is never absent. The predicted number of misnamed keys, the sum of
/// N_j f(L_j) over the levels, is an exact mean.
///
/// The advantage over a [`FilterStack`](super::FilterStack) is one array
/// instead of several. For the same number of misnamed keys it needs more
/// memory, because all keys pay for the accuracy that later levels require.
///
/// **Not guaranteed**:
///
/// * The error rates under churn. After insertions and removals more keys are
///   in later levels than after insertions alone, and with lazy deletion the
///   cells also hold stale keys.
/// * Anything for keys with equal *hashes*, which have the same cells.
///
/// ```
/// use tamis::summary::TypeFilter;
/// use tamis::table::Multilevel;
///
/// let builder = Multilevel::builder().items(1000).buckets_per_item(3.0);
/// let mut table = builder.build_with(&TypeFilter::builder())?;
/// for i in 0..1000u32 {
///     table.insert(i, i * i)?;
/// }
/// table.audit();
/// assert!((0..1000u32).all(|i| table.lookup(&i).reads == 1));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct TypeFilter {
    cells: Cells,
    layout: CellLayout,
    counters: Option<Counters>,
    stale: StaleKeys,
}

/// The mapping from keys to cells.
#[derive(Debug, Clone, Copy)]
struct CellLayout {
    /// Groups of words, not of cells.
    groups: ProbeGroups,
    /// Cells in a word.
    digits: u64,
    depth: u32,
}

impl CellLayout {
    fn cells(self) -> u64 {
        // At most 64 times a number of words that fits into memory.
        self.groups.len().saturating_mul(self.digits)
    }

    /// The cell of a key in each group. The word is chosen as in
    /// [`ProbeGroups`], the digit by the fraction that remains from that
    /// multiplication: the same distribution as one uniform number below the
    /// product, without a division.
    #[inline(always)]
    fn positions(self, key: MixedHash) -> impl Iterator<Item = CellAt> {
        let ProbeGroups { groups, size, lane } = self.groups;
        (0..groups).map(move |group| {
            let product = u128::from(key.word(lane, group)) * u128::from(size);
            let word = u64::from(group) * size + (product >> 64) as u64;
            let digit = reduce(product as u64, self.digits);
            CellAt { word: word as usize, digit: digit as usize }
        })
    }

    /// The index of the counter for a level of a cell.
    fn counter(self, at: CellAt, level: u32) -> u64 {
        let position = at.word as u64 * self.digits + at.digit as u64;
        position * u64::from(self.depth) + u64::from(level)
    }
}

/// Settings of a [`TypeFilter`]: cells and probes, or their target rates.
///
/// ```
/// use tamis::summary::{TableShape, TypeFilter};
///
/// let levels = [19_000, 6500, 2500, 1500, 500];
/// let shape = TableShape::new(10_000, &levels, 1)?;
/// let builder = TypeFilter::builder().false_positive(0.01).misnamed(1e-3);
/// let prediction = builder.predict(&shape)?;
/// assert!(prediction.false_positive <= 0.0101);
/// // Misnamed keys among 10,000.
/// assert!(prediction.failure <= 10.0);
/// assert!(prediction.bits_per_item < 40.0);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TypeFilterBuilder {
    cells: Option<u64>,
    probes: Option<u32>,
    rates: Rates,
}

impl TypeFilterBuilder {
    /// The number of cells (M), rounded up to whole words in each group.
    /// Requires [`probes`](Self::probes); both together replace the target
    /// rates.
    ///
    /// ```
    /// use tamis::summary::{SummaryBuilder, TableShape, TypeFilter};
    /// let shape = TableShape::new(100, &[200, 80], 1)?;
    /// let builder = TypeFilter::builder().cells(800).probes(4);
    /// assert_eq!(builder.build(&shape)?.cells(), 800);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn cells(self, cells: u64) -> Self {
        Self { cells: Some(cells), ..self }
    }

    /// The number of cells of a key (k), one in each of k groups; 1 to 64.
    ///
    /// ```
    /// use tamis::summary::{SummaryBuilder, TableShape, TypeFilter};
    /// let shape = TableShape::new(100, &[200, 80], 1)?;
    /// let builder = TypeFilter::builder().cells(800).probes(0);
    /// assert!(builder.build(&shape).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn probes(self, probes: u32) -> Self {
        Self { probes: Some(probes), ..self }
    }

    /// The share of absent keys for which a bucket is read, as in
    /// [`FilterStackBuilder::false_positive`].
    ///
    /// ```
    /// use tamis::summary::{TableShape, TypeFilter};
    /// let shape = TableShape::new(1000, &[1900, 650, 250, 100], 1)?;
    /// let builder = TypeFilter::builder().false_positive(0.05);
    /// assert!(builder.predict(&shape)?.false_positive <= 0.0505);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// [`FilterStackBuilder::false_positive`]:
    ///     super::FilterStackBuilder::false_positive
    #[must_use]
    pub fn false_positive(self, rate: f64) -> Self {
        let rates = Rates { false_positive: rate, ..self.rates };
        Self { rates, ..self }
    }

    /// The share of present keys whose level may be named wrongly, as in
    /// [`FilterStackBuilder::misnamed`].
    ///
    /// ```
    /// use tamis::summary::{TableShape, TypeFilter};
    /// let shape = TableShape::new(1000, &[1900, 650, 250, 100], 1)?;
    /// let builder = TypeFilter::builder().misnamed(1e-6 / 1000.0);
    /// assert!(builder.predict(&shape)?.failure <= 1e-6);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// [`FilterStackBuilder::misnamed`]: super::FilterStackBuilder::misnamed
    #[must_use]
    pub fn misnamed(self, share: f64) -> Self {
        let rates = Rates { misnamed: share, ..self.rates };
        Self { rates, ..self }
    }

    /// How keys are removed; default lazy, with a share of a quarter.
    ///
    /// ```
    /// use tamis::summary::{
    ///     Deletion, Summary, SummaryBuilder, TableShape, TypeFilter,
    /// };
    /// let shape = TableShape::new(100, &[200, 80], 1)?;
    /// let builder = TypeFilter::builder().deletion(Deletion::Counting);
    /// let mut summary = builder.build(&shape)?;
    /// summary.insert(1, 1);
    /// summary.remove(1, 1);
    /// assert_eq!(summary.locate(1).level, None);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn deletion(self, deletion: Deletion) -> Self {
        Self { rates: Rates { deletion, ..self.rates }, ..self }
    }

    /// Theoretical properties in a freshly filled table: bits per item
    /// (without counters), the share of absent keys that are read, and the
    /// number of misnamed keys.
    ///
    /// # Errors
    ///
    /// Those of [`SummaryBuilder::build`].
    ///
    /// ```
    /// use tamis::summary::{TableShape, TypeFilter};
    /// let shape = TableShape::new(100, &[200, 80], 1)?;
    /// assert!(TypeFilter::builder().predict(&shape)?.failure < 0.1);
    /// assert!(TypeFilter::builder().probes(65).predict(&shape).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn predict(&self, shape: &TableShape) -> Result<Prediction> {
        let layout = self.layout(shape)?;
        let (cells, probes) = (layout.cells(), layout.groups.groups);
        let table = shape.occupancy()?;
        Ok(summary::type_filter(&table, cells, probes)?)
    }

    /// The fewest cells that achieve the target rates, with their probes.
    fn smallest(&self, shape: &TableShape) -> Result<(u64, u32)> {
        let misnamed = self.rates.misnamed_items(shape);
        let (table, rate) = (shape.occupancy()?, self.rates.false_positive);
        Ok(summary::smallest_type_filter(&table, misnamed, rate)?)
    }

    /// The layout for a table, in groups of whole words.
    fn layout(&self, shape: &TableShape) -> Result<CellLayout> {
        let (cells, probes) = match (self.cells, self.probes) {
            (Some(cells), Some(probes)) => (cells, probes),
            (None, None) => self.smallest(shape)?,
            _ => {
                return Err(Error::InvalidArgument {
                    what: "type filter",
                    why: "set both cells and probes, or neither",
                });
            }
        };
        let depth = shape.depth();
        let digits = summary::cells_per_word(shape.levels().len()).into();
        let mut groups = ProbeGroups::new(0, cells, probes)?;
        groups.size = groups.size.div_ceil(digits);
        Ok(CellLayout { groups, digits, depth })
    }
}

impl SummaryBuilder for TypeFilterBuilder {
    type Summary = TypeFilter;

    fn build(&self, shape: &TableShape) -> Result<TypeFilter> {
        let layout = self.layout(shape)?;
        let base = u64::from(layout.depth) + 1;
        let counters = match self.rates.deletion {
            Deletion::Lazy { .. } => None,
            Deletion::Counting => {
                let levels = layout.depth.into();
                let counters = layout.cells().saturating_mul(levels);
                Some(Counters::new(counters)?)
            }
        };
        let digits = layout.digits as u32;
        let cells = Cells::new(layout.groups.len(), base, digits)?;
        let stale = self.rates.deletion.stale_keys(shape)?;
        Ok(TypeFilter { cells, layout, counters, stale })
    }
}

impl TypeFilter {
    /// A builder with 1 % false positives and one key in a thousand misnamed.
    ///
    /// ```
    /// use tamis::summary::{SummaryBuilder, TableShape, TypeFilter};
    /// let shape = TableShape::new(100, &[200, 80], 1)?;
    /// assert!(TypeFilter::builder().build(&shape).is_ok());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn builder() -> TypeFilterBuilder {
        TypeFilterBuilder {
            cells: None,
            probes: None,
            rates: Rates::default(),
        }
    }

    /// The number of cells (M) after rounding each group up to whole words.
    ///
    /// ```
    /// use tamis::summary::{SummaryBuilder, TableShape, TypeFilter};
    /// let shape = TableShape::new(9, &[8, 4, 2, 1, 1], 1)?;
    /// let builder = TypeFilter::builder().cells(100).probes(2);
    /// assert_eq!(builder.build(&shape)?.cells(), 144);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn cells(&self) -> u64 {
        self.layout.cells()
    }
}

impl fmt::Debug for TypeFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_size("TypeFilter", self, f)
    }
}

impl Summary for TypeFilter {
    #[inline]
    fn locate(&self, hash: u64) -> Located {
        let mut least = u64::MAX;
        for at in self.layout.positions(MixedHash::new(hash)) {
            least = least.min(self.cells.get(at));
            if least == 0 {
                return Located::ABSENT;
            }
        }
        Located::at_most(least as u32 - 1)
    }

    fn insert(&mut self, hash: u64, level: u32) -> bool {
        let level = level.min(self.layout.depth - 1);
        let mut raised = false;
        for at in self.layout.positions(MixedHash::new(hash)) {
            if let Some(counters) = &mut self.counters {
                counters.increment(self.layout.counter(at, level));
            }
            let old = self.cells.get(at);
            if old <= u64::from(level) {
                self.cells.set(at, u64::from(level) + 1);
                raised |= old > 0;
            }
        }
        raised
    }

    fn remove(&mut self, hash: u64, level: u32) {
        let Some(counters) = &mut self.counters else {
            self.stale.count += 1;
            return;
        };
        let level = level.min(self.layout.depth - 1);
        for at in self.layout.positions(MixedHash::new(hash)) {
            let counter = |level| self.layout.counter(at, level);
            if counters.decrement(counter(level)) {
                let highest = (0..self.layout.depth)
                    .rev()
                    .find(|&level| !counters.is_zero(counter(level)));
                let cell = highest.map_or(0, |level| u64::from(level) + 1);
                self.cells.set(at, cell);
            }
        }
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.counters.iter_mut().for_each(Counters::clear);
        self.stale.count = 0;
    }

    fn stale(&self) -> u64 {
        self.stale.count
    }

    fn needs_rebuild(&self) -> bool {
        self.stale.exceed_quota()
    }

    fn bits(&self) -> u64 {
        let counters = self.counters.as_ref().map_or(0, Counters::bits);
        self.cells.bits() + counters
    }

    fn false_positive(&self) -> f64 {
        let size = self.layout.groups.size * self.layout.digits;
        let cells = ProbeGroups { size, ..self.layout.groups };
        cells.hit_rate(|index| self.cells.get(self.cells.at(index)) > 0)
    }
}
