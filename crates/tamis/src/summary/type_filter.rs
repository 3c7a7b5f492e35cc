//! One filter whose cells hold levels.

use tamis_theory::summary::{self, Prediction};

use super::cells::{CellAt, Cells};
use super::counters::Counters;
use super::deletion::Wear;
use super::layer::groups;
use super::mixing::{Groups, Mixed};
use super::{
    Deletion, FALSE_POSITIVE, Located, MISNAMED, Plan, Shape, Summary,
};
use crate::error::{Error, Result};
use crate::placement::reduce;

/// One filter whose cells hold levels (SF in the paper). A key raises its
/// cell in each of k groups to its level; the smallest of its k cells is the
/// level named, and an empty one says that the key is absent.
///
/// Cells are digits to the base d + 1, as many as fit a word:
///
/// | levels | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |
/// |---|---|---|---|---|---|---|---|---|
/// | cells in a word | 64 | 40 | 32 | 27 | 24 | 22 | 21 | 20 |
/// | bits per cell | 1 | 1.6 | 2 | 2.37 | 2.67 | 2.91 | 3.05 | 3.2 |
///
/// | | |
/// |---|---|
/// | memory | what [`predict`](TypeFilterPlan::predict) says, with cells rounded up to whole words in each group; with counters four bits more for each level of each cell |
/// | a hit reads | 1 bucket, except for the share of keys that are [misnamed](TypeFilterPlan::misnamed); those, up to the number of the level named |
/// | a miss reads | its [false positives](TypeFilterPlan::false_positive), of which nearly all name the first level |
/// | a lookup in the summary | all k cells for a hit; for a miss up to the first that is empty, the second on average if half of them are |
///
/// A key is misnamed if each of its cells also belongs to a key in a later
/// level, so the level named is too high, never too low, and a key in the
/// table is never absent. The predicted number, the sum of N_j f(L_j) over
/// the levels, is an exact mean.
///
/// One array instead of the several of a [`FilterStack`](super::FilterStack)
/// is all there is to say for it: to keep as few keys misnamed it needs more
/// memory, since the accuracy that later levels want is paid for all keys.
///
/// **It cannot promise**:
///
/// * its rates once keys come and go. More of them are then in later levels
///   than when they only came, and with lazy deletion stale ones are in the
///   cells beside those there are.
/// * anything about keys with equal *hashes*, which have the same cells.
///
/// ```
/// use tamis::summary::TypeFilter;
/// use tamis::table::Multilevel;
///
/// let builder = Multilevel::builder().items(1000).buckets_per_item(3.0);
/// let mut table = builder.build_with(&TypeFilter::plan())?;
/// for i in 0..1000u32 {
///     table.insert(i, i * i)?;
/// }
/// table.audit();
/// assert!((0..1000u32).all(|i| table.lookup(&i).reads == 1));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TypeFilter {
    cells: Cells,
    layout: Layout,
    counters: Option<Counters>,
    wear: Wear,
}

/// Where a key's cells are.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// Of words.
    groups: Groups,
    /// Cells in a word.
    digits: u64,
    depth: u32,
}

impl Layout {
    fn cells(self) -> u64 {
        // No more than 64 times a number of words that fits memory.
        self.groups.len().saturating_mul(self.digits)
    }

    /// A key's cell in each group. The word is chosen as in [`Groups`], the
    /// digit by what its multiplication left over: together the same as one
    /// number below the product, with no division.
    #[inline(always)]
    fn places(self, key: Mixed) -> impl Iterator<Item = CellAt> {
        let Groups { groups, size, lane } = self.groups;
        (0..groups).map(move |group| {
            let product = u128::from(key.word(lane, group)) * u128::from(size);
            let word = u64::from(group) * size + (product >> 64) as u64;
            let digit = reduce(product as u64, self.digits);
            CellAt { word: word as usize, digit: digit as usize }
        })
    }

    /// The counter of a level of a cell.
    fn counter(self, at: CellAt, level: u32) -> u64 {
        let position = at.word as u64 * self.digits + at.digit as u64;
        position * u64::from(self.depth) + u64::from(level)
    }
}

/// Settings of a [`TypeFilter`]: its cells and probes, or what they should
/// achieve.
///
/// ```
/// use tamis::summary::{Shape, TypeFilter};
///
/// let shape = Shape::new(10_000, &[19_000, 6500, 2500, 1500, 500], 1)?;
/// let plan = TypeFilter::plan().false_positive(0.01).misnamed(1e-3);
/// let prediction = plan.predict(&shape)?;
/// assert!(prediction.false_positive <= 0.0101);
/// // Of 10,000 keys.
/// assert!(prediction.failure <= 10.0);
/// assert!(prediction.bits_per_item < 40.0);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TypeFilterPlan {
    cells: Option<u64>,
    probes: Option<u32>,
    false_positive: f64,
    misnamed: f64,
    deletion: Deletion,
}

impl TypeFilterPlan {
    /// How many cells (M), rounded up to whole words in each group. With
    /// this and [`probes`](Self::probes) what is said about rates is of no
    /// effect.
    ///
    /// ```
    /// use tamis::summary::{Plan, Shape, TypeFilter};
    /// let shape = Shape::new(100, &[200, 80], 1)?;
    /// let summary = TypeFilter::plan().cells(800).probes(4).build(&shape)?;
    /// assert_eq!(summary.cells(), 800);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn cells(self, cells: u64) -> Self {
        Self { cells: Some(cells), ..self }
    }

    /// Cells of a key, one in each of as many groups (k), 1 to 64.
    ///
    /// ```
    /// use tamis::summary::{Plan, Shape, TypeFilter};
    /// let shape = Shape::new(100, &[200, 80], 1)?;
    /// assert!(TypeFilter::plan().cells(800).probes(0).build(&shape).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn probes(self, probes: u32) -> Self {
        Self { probes: Some(probes), ..self }
    }

    /// The share of keys not in the table for which a bucket is read, 1 %
    /// unless said otherwise and half at most.
    ///
    /// ```
    /// use tamis::summary::{TypeFilter, Shape};
    /// let shape = Shape::new(1000, &[1900, 650, 250, 100], 1)?;
    /// let plan = TypeFilter::plan();
    /// let [less, more] = [0.05, 0.001].map(|rate| {
    ///     plan.clone().false_positive(rate).predict(&shape)
    /// });
    /// assert!(less?.bits_per_item < more?.bits_per_item);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn false_positive(self, rate: f64) -> Self {
        Self { false_positive: rate, ..self }
    }

    /// The share of the keys in the table whose level may be named wrongly,
    /// one in a thousand unless said otherwise. They are found all the same,
    /// and after an audit with one read.
    ///
    /// The paper wants *no* key misnamed, but for a small chance. That is a
    /// share of this chance divided by the number of keys, and takes more
    /// memory.
    ///
    /// ```
    /// use tamis::summary::{TypeFilter, Shape};
    /// let shape = Shape::new(1000, &[1900, 650, 250, 100], 1)?;
    /// let plan = TypeFilter::plan();
    /// let [some, none] = [1e-3, 1e-6 / 1000.0].map(|share| {
    ///     plan.clone().misnamed(share).predict(&shape)
    /// });
    /// let (some, none) = (some?, none?);
    /// assert!(some.failure <= 1.0 && none.failure <= 1e-6);
    /// assert!(some.bits_per_item < none.bits_per_item);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn misnamed(self, share: f64) -> Self {
        Self { misnamed: share, ..self }
    }

    /// What becomes of removed keys; lazy, a quarter, unless said otherwise.
    ///
    /// ```
    /// use tamis::summary::{Deletion, Plan, Shape, Summary, TypeFilter};
    /// let shape = Shape::new(100, &[200, 80], 1)?;
    /// let plan = TypeFilter::plan().deletion(Deletion::Counting);
    /// let mut summary = plan.build(&shape)?;
    /// summary.insert(1, 1);
    /// summary.remove(1, 1);
    /// assert_eq!(summary.locate(1).named, None);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn deletion(self, deletion: Deletion) -> Self {
        Self { deletion, ..self }
    }

    /// What the theory expects of it in a table: bits per item (without
    /// counters), the share of absent keys that are read, and how many keys
    /// are misnamed in a table that has just been filled.
    ///
    /// # Errors
    ///
    /// Those of [`Plan::build`].
    ///
    /// ```
    /// use tamis::summary::{Shape, TypeFilter};
    /// let shape = Shape::new(100, &[200, 80], 1)?;
    /// assert!(TypeFilter::plan().predict(&shape)?.failure < 0.1);
    /// assert!(TypeFilter::plan().probes(65).predict(&shape).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn predict(&self, shape: &Shape) -> Result<Prediction> {
        let layout = self.layout(shape)?;
        let (cells, probes) = (layout.cells(), layout.groups.groups);
        let table = shape.occupancy()?;
        Ok(summary::type_filter(&table, cells, probes)?)
    }

    /// Cells and probes that achieve the rates.
    fn smallest(&self, shape: &Shape) -> Result<(u64, u32)> {
        let misnamed = self.misnamed * shape.items() as f64;
        let (table, rate) = (shape.occupancy()?, self.false_positive);
        Ok(summary::smallest_type_filter(&table, misnamed, rate)?)
    }

    /// Groups of whole words.
    fn layout(&self, shape: &Shape) -> Result<Layout> {
        let (cells, probes) = match (self.cells, self.probes) {
            (Some(cells), Some(probes)) => (cells, probes),
            (None, None) => self.smallest(shape)?,
            _ => {
                return Err(Error::InvalidArgument {
                    what: "type filter",
                    why: "say both cells and probes, or neither",
                });
            }
        };
        let depth = shape.depth();
        let digits = summary::cells_per_word(shape.levels().len()).into();
        let mut groups = groups(0, cells, probes)?;
        groups.size = groups.size.div_ceil(digits);
        Ok(Layout { groups, digits, depth })
    }
}

impl Plan for TypeFilterPlan {
    type Summary = TypeFilter;

    fn build(&self, shape: &Shape) -> Result<TypeFilter> {
        let layout = self.layout(shape)?;
        let base = u64::from(layout.depth) + 1;
        let counters = match self.deletion {
            Deletion::Lazy { .. } => None,
            Deletion::Counting => {
                let levels = layout.depth.into();
                let counters = layout.cells().saturating_mul(levels);
                Some(Counters::new(counters)?)
            }
        };
        let digits = layout.digits as u32;
        let cells = Cells::new(layout.groups.len(), base, digits)?;
        let wear = self.deletion.quota(shape)?;
        Ok(TypeFilter { cells, layout, counters, wear })
    }
}

impl TypeFilter {
    /// Starts with 1 % of false positives and one key in a thousand
    /// misnamed.
    ///
    /// ```
    /// use tamis::summary::{Plan, Shape, TypeFilter};
    /// let shape = Shape::new(100, &[200, 80], 1)?;
    /// assert!(TypeFilter::plan().build(&shape).is_ok());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn plan() -> TypeFilterPlan {
        TypeFilterPlan {
            cells: None,
            probes: None,
            false_positive: FALSE_POSITIVE,
            misnamed: MISNAMED,
            deletion: Deletion::default(),
        }
    }

    /// The cells there really are (M): those of a group fill whole words.
    ///
    /// ```
    /// use tamis::summary::{Plan, Shape, TypeFilter};
    /// let shape = Shape::new(9, &[8, 4, 2, 1, 1], 1)?;
    /// let summary = TypeFilter::plan().cells(100).probes(2).build(&shape)?;
    /// assert_eq!(summary.cells(), 144);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn cells(&self) -> u64 {
        self.layout.cells()
    }
}

impl Summary for TypeFilter {
    #[inline]
    fn locate(&self, hash: u64) -> Located {
        let mut least = u64::MAX;
        for at in self.layout.places(Mixed::new(hash)) {
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
        for at in self.layout.places(Mixed::new(hash)) {
            if let Some(counters) = &mut self.counters {
                counters.increase(self.layout.counter(at, level));
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
            self.wear.stale += 1;
            return;
        };
        let level = level.min(self.layout.depth - 1);
        for at in self.layout.places(Mixed::new(hash)) {
            let counter = |level| self.layout.counter(at, level);
            if counters.decrease(counter(level)) {
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
        self.wear.stale = 0;
    }

    fn stale(&self) -> u64 {
        self.wear.stale
    }

    fn is_worn(&self) -> bool {
        self.wear.is_over()
    }

    fn bits(&self) -> u64 {
        let counters = self.counters.as_ref().map_or(0, Counters::bits);
        self.cells.bits() + counters
    }

    fn false_positive(&self) -> f64 {
        let size = self.layout.groups.size * self.layout.digits;
        let cells = Groups { size, ..self.layout.groups };
        cells.hit_rate(|position| self.cells.get(self.cells.at(position)) > 0)
    }
}
