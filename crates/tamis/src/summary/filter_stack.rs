//! A Bloom filter for every level.

use alloc::vec::Vec;

use tamis_theory::summary::{self, Filter, Prediction};

use super::deletion::Wear;
use super::layer::Layer;
use super::mixing::Mixed;
use super::{
    Deletion, FALSE_POSITIVE, Located, MISNAMED, Plan, Shape, Summary,
};
use crate::error::{Error, Result};

/// Fewer keys than this are listed.
const LISTED: f64 = 32.0;

/// A Bloom filter for each level: the first holds all keys, each other one
/// those of its level and of later ones (B_0 to B_(d-1), MBF in the paper).
/// The last filter of an unbroken row that knows the key names its level.
///
/// The first may be sloppy, since a key it takes for another costs a read and
/// nothing else. The others must be accurate, and are small, because few keys
/// are in later levels; of all summaries this one makes the most of a large
/// first level.
///
/// | | |
/// |---|---|
/// | memory | what [`predict`](FilterStackPlan::predict) says and no more; five times that with counters |
/// | a hit reads | 1 bucket, except for the share of keys that are [misnamed](FilterStackPlan::misnamed); those, up to the number of the level named |
/// | a miss reads | as many as the first filter has [false positives](FilterStackPlan::false_positive), of which nearly all name the first level |
/// | a lookup in the summary | of filters in which half the bits are set, as in the smallest, 2 bits on average for a miss (1 + 1/2 + 1/4 + ..); all k of the first and 2 of the second for a key in the first level |
///
/// A key is misnamed if a later filter takes it for one of its own, so the
/// level named is too high, never too low, and a key in the table is never
/// absent. The predicted number, the sum of N_j f_j(L_j) over the levels, is
/// an exact mean.
///
/// **It cannot promise**:
///
/// * its rates once keys come and go. More of them are then in later levels
///   than when they only came, and with lazy deletion stale ones are in the
///   filters beside those there are.
/// * anything about keys with equal *hashes*, which all filters take for the
///   same.
///
/// ```
/// use tamis::summary::FilterStack;
/// use tamis::table::Multilevel;
///
/// let builder = Multilevel::builder().items(1000).buckets_per_item(3.0);
/// let mut table = builder.build_with(&FilterStack::plan())?;
/// for i in 0..1000u32 {
///     table.insert(i, i * i)?;
/// }
/// table.audit();
/// assert!((0..1000u32).all(|i| table.lookup(&i).reads == 1));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FilterStack {
    layers: Vec<Layer>,
    wear: Wear,
    deletion: Deletion,
}

/// Settings of a [`FilterStack`]: its filters, or what they should achieve.
///
/// ```
/// use tamis::summary::{FilterStack, Shape};
///
/// let shape = Shape::new(10_000, &[19_000, 6500, 2500, 1500, 500], 1)?;
/// let plan = FilterStack::plan().false_positive(0.01).misnamed(1e-3);
/// let prediction = plan.predict(&shape)?;
/// assert!(prediction.false_positive <= 0.0101);
/// // Of 10,000 keys.
/// assert!(prediction.failure <= 10.0);
/// assert!(prediction.bits_per_item < 15.0);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FilterStackPlan {
    filters: Option<Vec<Filter>>,
    false_positive: f64,
    misnamed: f64,
    deletion: Deletion,
}

impl FilterStackPlan {
    /// The filters (B_0, B_1, ..), one for each level: the first for all
    /// keys, every other one for the keys in its level and later ones. What
    /// is said about rates is of no effect then.
    ///
    /// A list of hashes is exact, or nearly, at 64 bits for each key,
    /// whatever their length: for the few keys of the last levels. Inserting
    /// one moves half the list.
    ///
    /// ```
    /// use tamis::summary::{Filter, FilterStack, Plan, Shape, Summary};
    /// let shape = Shape::new(100, &[200, 80], 1)?;
    /// let filters = [
    ///     Filter::Bloom { cells: 1000, probes: 7 },
    ///     Filter::HashList { bits: 64 },
    /// ];
    /// let mut summary = FilterStack::plan().filters(&filters).build(&shape)?;
    /// summary.insert(1, 1);
    /// assert_eq!(summary.locate(1).named, Some(1));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn filters(self, filters: &[Filter]) -> Self {
        Self { filters: Some(filters.to_vec()), ..self }
    }

    /// The share of keys not in the table for which a bucket is read, 1 %
    /// unless said otherwise and half at most.
    ///
    /// ```
    /// use tamis::summary::{FilterStack, Shape};
    /// let shape = Shape::new(1000, &[1900, 650, 250, 100], 1)?;
    /// let plan = FilterStack::plan();
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
    /// use tamis::summary::{FilterStack, Shape};
    /// let shape = Shape::new(1000, &[1900, 650, 250, 100], 1)?;
    /// let plan = FilterStack::plan();
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
    /// use tamis::summary::{Deletion, FilterStack, Plan, Shape, Summary};
    /// let shape = Shape::new(100, &[200, 80], 1)?;
    /// let plan = FilterStack::plan().deletion(Deletion::Counting);
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
    /// use tamis::summary::{FilterStack, Shape};
    /// let shape = Shape::new(100, &[200, 80], 1)?;
    /// assert!(FilterStack::plan().predict(&shape)?.failure < 0.1);
    /// assert!(FilterStack::plan().filters(&[]).predict(&shape).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn predict(&self, shape: &Shape) -> Result<Prediction> {
        let filters = self.sized(shape)?;
        Ok(summary::filter_stack(&shape.occupancy()?, &filters)?)
    }

    /// Filters that achieve the rates; a list instead of one for few keys,
    /// which is about as large and stays exact if there come to be more.
    fn smallest(&self, shape: &Shape) -> Result<Vec<Filter>> {
        let misnamed = self.misnamed * shape.items() as f64;
        let (table, rate) = (shape.occupancy()?, self.false_positive);
        let filters = summary::smallest_filter_stack(&table, misnamed, rate)?;
        let list = Filter::HashList { bits: 64 };
        let keys = table.passed_on().iter();
        let fitting = filters
            .into_iter()
            .zip(keys)
            .map(|(filter, &keys)| if keys < LISTED { list } else { filter });
        Ok(fitting.collect())
    }

    fn sized(&self, shape: &Shape) -> Result<Vec<Filter>> {
        match &self.filters {
            None => self.smallest(shape),
            Some(filters) if filters.len() == shape.levels().len() => {
                Ok(filters.clone())
            }
            Some(_) => Err(Error::InvalidArgument {
                what: "filters",
                why: "expected one for each level of the table",
            }),
        }
    }
}

impl Plan for FilterStackPlan {
    type Summary = FilterStack;

    fn build(&self, shape: &Shape) -> Result<FilterStack> {
        let layers = (0..)
            .zip(self.sized(shape)?)
            .map(|(lane, filter)| Layer::new(filter, lane, self.deletion));
        Ok(FilterStack {
            layers: layers.collect::<Result<_>>()?,
            wear: self.deletion.quota(shape)?,
            deletion: self.deletion,
        })
    }
}

impl FilterStack {
    /// Starts with 1 % of false positives and one key in a thousand
    /// misnamed.
    ///
    /// ```
    /// use tamis::summary::{FilterStack, Plan, Shape};
    /// let shape = Shape::new(100, &[200, 80], 1)?;
    /// assert!(FilterStack::plan().build(&shape).is_ok());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn plan() -> FilterStackPlan {
        FilterStackPlan {
            filters: None,
            false_positive: FALSE_POSITIVE,
            misnamed: MISNAMED,
            deletion: Deletion::default(),
        }
    }

    fn last(&self) -> u32 {
        self.layers.len() as u32 - 1
    }
}

impl Summary for FilterStack {
    #[inline]
    fn locate(&self, hash: u64) -> Located {
        let key = Mixed::new(hash);
        let passed =
            self.layers.iter().take_while(|layer| layer.contains(key)).count();
        match passed {
            0 => Located::ABSENT,
            _ => Located::at_most(passed as u32 - 1),
        }
    }

    fn insert(&mut self, hash: u64, level: u32) -> bool {
        let key = Mixed::new(hash);
        let layers = level.min(self.last()) as usize + 1;
        let mut above = false;
        for (number, layer) in self.layers[..layers].iter_mut().enumerate() {
            let changed = layer.insert(key);
            // The first says that a key is there, not where.
            above |= changed && number > 0;
        }
        above
    }

    fn remove(&mut self, hash: u64, level: u32) {
        let key = Mixed::new(hash);
        let layers = level.min(self.last()) as usize + 1;
        for layer in &mut self.layers[..layers] {
            layer.remove(key);
        }
        if let Deletion::Lazy { .. } = self.deletion {
            self.wear.stale += 1;
        }
    }

    fn clear(&mut self) {
        self.layers.iter_mut().for_each(Layer::clear);
        self.wear.stale = 0;
    }

    fn stale(&self) -> u64 {
        self.wear.stale
    }

    fn is_worn(&self) -> bool {
        self.wear.is_over()
    }

    fn bits(&self) -> u64 {
        self.layers.iter().map(Layer::bits).sum()
    }

    fn false_positive(&self) -> f64 {
        self.layers[0].hit_rate()
    }
}
