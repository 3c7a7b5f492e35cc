//! A stack of Bloom filters, one for each level.

use alloc::vec::Vec;
use core::fmt;

use tamis_theory::summary::{self, Prediction};

use super::deletion::StaleKeys;
use super::layer::Layer;
use super::mixing::MixedHash;
use super::rates::Rates;
use super::{
    Deletion, LevelFilter, Located, Summary, SummaryBuilder, TableShape,
    fmt_size,
};
use crate::error::{Error, Result};

/// A level with fewer expected keys gets a hash list instead of a Bloom
/// filter.
const LISTED: f64 = 32.0;

/// A Bloom filter for each level: the first holds all keys, every other one
/// the keys of its level and of later levels (B_0 to B_(d-1), MBF in the
/// paper). A lookup probes the filters in order up to the first that does not
/// contain the key; the last that does names the level.
///
/// The first filter may be inaccurate, because its false positives cost one
/// read each. The others must be accurate; they are small, because few keys
/// are in later levels. Of the three summaries this one gains most from a
/// large first level.
///
/// | | |
/// |---|---|
/// | memory | as [`predict`](FilterStackBuilder::predict) computes; five times that with counters |
/// | a hit reads | 1 bucket, except for the share of [misnamed](FilterStackBuilder::misnamed) keys; those, up to the number of the level named |
/// | a miss reads | one bucket per [false positive](FilterStackBuilder::false_positive) of the first filter; nearly all of these name the first level |
/// | a lookup in the summary | in the smallest filters, which have half their bits set, 2 bits on average for a miss (1 + 1/2 + 1/4 + ..); all k of the first and 2 of the second for a key in the first level |
///
/// A key is misnamed if a later filter contains it by a false positive, so the
/// level named is too high, never too low, and a key in the table is never
/// absent. The predicted number of misnamed keys, the sum of N_j f_j(L_j) over
/// the levels, is an exact mean.
///
/// **Not guaranteed**:
///
/// * The error rates under churn. After insertions and removals more keys are
///   in later levels than after insertions alone, and with lazy deletion the
///   filters also hold stale keys.
/// * Anything for keys with equal *hashes*, which no filter distinguishes.
///
/// ```
/// use tamis::summary::FilterStack;
/// use tamis::table::Multilevel;
///
/// let builder = Multilevel::builder().items(1000).buckets_per_item(3.0);
/// let mut table = builder.build_with(&FilterStack::builder())?;
/// for i in 0..1000u32 {
///     table.insert(i, i * i)?;
/// }
/// table.audit();
/// assert!((0..1000u32).all(|i| table.lookup(&i).reads == 1));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone)]
pub struct FilterStack {
    layers: Vec<Layer>,
    stale: StaleKeys,
    deletion: Deletion,
}

/// Settings of a [`FilterStack`]: its filters, or their target rates.
///
/// ```
/// use tamis::summary::{FilterStack, TableShape};
///
/// let levels = [19_000, 6500, 2500, 1500, 500];
/// let shape = TableShape::new(10_000, &levels, 1)?;
/// let builder = FilterStack::builder().false_positive(0.01).misnamed(1e-3);
/// let prediction = builder.predict(&shape)?;
/// assert!(prediction.false_positive <= 0.0101);
/// // Misnamed keys among 10,000.
/// assert!(prediction.failure <= 10.0);
/// assert!(prediction.bits_per_item < 15.0);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FilterStackBuilder {
    filters: Option<Vec<LevelFilter>>,
    rates: Rates,
}

impl FilterStackBuilder {
    /// The filters (B_0, B_1, ..), one for each level: the first for all
    /// keys, every other one for the keys of its level and later ones.
    /// Replaces the target rates.
    ///
    /// A hash list takes 64 bits per key, whatever the length of its strings,
    /// and with long strings is exact: it suits the few keys of the last
    /// levels. An insertion moves half the list.
    ///
    /// ```
    /// use tamis::summary::{
    ///     FilterStack, LevelFilter, Summary, SummaryBuilder, TableShape,
    /// };
    /// let shape = TableShape::new(100, &[200, 80], 1)?;
    /// let filters = [
    ///     LevelFilter::Bloom { cells: 1000, probes: 7 },
    ///     LevelFilter::HashList { bits: 64 },
    /// ];
    /// let builder = FilterStack::builder().filters(&filters);
    /// let mut summary = builder.build(&shape)?;
    /// summary.insert(1, 1);
    /// assert_eq!(summary.locate(1).level, Some(1));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn filters(self, filters: &[LevelFilter]) -> Self {
        Self { filters: Some(filters.to_vec()), ..self }
    }

    /// The share of absent keys for which a bucket is read; default 1 %, at
    /// most 50 %.
    ///
    /// ```
    /// use tamis::summary::{FilterStack, TableShape};
    /// let shape = TableShape::new(1000, &[1900, 650, 250, 100], 1)?;
    /// let builder = FilterStack::builder();
    /// let [less, more] = [0.05, 0.001].map(|rate| {
    ///     builder.clone().false_positive(rate).predict(&shape)
    /// });
    /// assert!(less?.bits_per_item < more?.bits_per_item);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn false_positive(self, rate: f64) -> Self {
        let rates = Rates { false_positive: rate, ..self.rates };
        Self { rates, ..self }
    }

    /// The share of present keys whose level may be named wrongly; default
    /// one in a thousand. Such a key is still found, and after an
    /// [audit](crate::table::Multilevel::audit) with one read.
    ///
    /// The paper requires that *no* key is misnamed, up to a small
    /// probability. That is a share of this probability divided by the number
    /// of keys, and takes more memory.
    ///
    /// ```
    /// use tamis::summary::{FilterStack, TableShape};
    /// let shape = TableShape::new(1000, &[1900, 650, 250, 100], 1)?;
    /// let builder = FilterStack::builder();
    /// let [some, none] = [1e-3, 1e-6 / 1000.0].map(|share| {
    ///     builder.clone().misnamed(share).predict(&shape)
    /// });
    /// let (some, none) = (some?, none?);
    /// assert!(some.failure <= 1.0 && none.failure <= 1e-6);
    /// assert!(some.bits_per_item < none.bits_per_item);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn misnamed(self, share: f64) -> Self {
        let rates = Rates { misnamed: share, ..self.rates };
        Self { rates, ..self }
    }

    /// How keys are removed; default lazy, with a share of a quarter.
    ///
    /// ```
    /// use tamis::summary::{
    ///     Deletion, FilterStack, Summary, SummaryBuilder, TableShape,
    /// };
    /// let shape = TableShape::new(100, &[200, 80], 1)?;
    /// let builder = FilterStack::builder().deletion(Deletion::Counting);
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
    /// use tamis::summary::{FilterStack, TableShape};
    /// let shape = TableShape::new(100, &[200, 80], 1)?;
    /// assert!(FilterStack::builder().predict(&shape)?.failure < 0.1);
    /// assert!(FilterStack::builder().filters(&[]).predict(&shape).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn predict(&self, shape: &TableShape) -> Result<Prediction> {
        let filters = self.filters_for(shape)?;
        Ok(summary::filter_stack(&shape.occupancy()?, &filters)?)
    }

    /// The smallest filters that achieve the target rates. A level with few
    /// keys gets a hash list, which is about as large as the filter and stays
    /// exact if the level holds more keys than expected.
    fn smallest(&self, shape: &TableShape) -> Result<Vec<LevelFilter>> {
        let misnamed = self.rates.misnamed_items(shape);
        let (table, rate) = (shape.occupancy()?, self.rates.false_positive);
        let filters = summary::smallest_filter_stack(&table, misnamed, rate)?;
        let list = LevelFilter::HashList { bits: 64 };
        let keys = table.passed_on().iter();
        let fitting = filters
            .into_iter()
            .zip(keys)
            .map(|(filter, &keys)| if keys < LISTED { list } else { filter });
        Ok(fitting.collect())
    }

    fn filters_for(&self, shape: &TableShape) -> Result<Vec<LevelFilter>> {
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

impl SummaryBuilder for FilterStackBuilder {
    type Summary = FilterStack;

    fn build(&self, shape: &TableShape) -> Result<FilterStack> {
        let deletion = self.rates.deletion;
        let layers = (0..)
            .zip(self.filters_for(shape)?)
            .map(|(lane, filter)| Layer::new(filter, lane, deletion));
        Ok(FilterStack {
            layers: layers.collect::<Result<_>>()?,
            stale: deletion.stale_keys(shape)?,
            deletion,
        })
    }
}

impl FilterStack {
    /// A builder with 1 % false positives and one key in a thousand misnamed.
    ///
    /// ```
    /// use tamis::summary::{FilterStack, SummaryBuilder, TableShape};
    /// let shape = TableShape::new(100, &[200, 80], 1)?;
    /// assert!(FilterStack::builder().build(&shape).is_ok());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn builder() -> FilterStackBuilder {
        FilterStackBuilder { filters: None, rates: Rates::default() }
    }

    /// The number of filters that hold a key of `level`.
    fn layers_of(&self, level: u32) -> usize {
        (level as usize).min(self.layers.len() - 1) + 1
    }
}

impl fmt::Debug for FilterStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_size("FilterStack", self, f)
    }
}

impl Summary for FilterStack {
    #[inline]
    fn locate(&self, hash: u64) -> Located {
        let key = MixedHash::new(hash);
        let passed =
            self.layers.iter().take_while(|layer| layer.contains(key)).count();
        match passed {
            0 => Located::ABSENT,
            _ => Located::at_most(passed as u32 - 1),
        }
    }

    fn insert(&mut self, hash: u64, level: u32) -> bool {
        let key = MixedHash::new(hash);
        let layers = self.layers_of(level);
        let mut may_misname = false;
        for (number, layer) in self.layers[..layers].iter_mut().enumerate() {
            let changed = layer.insert(key);
            // Layer 0 decides presence, not the level.
            may_misname |= changed && number > 0;
        }
        may_misname
    }

    fn remove(&mut self, hash: u64, level: u32) {
        let key = MixedHash::new(hash);
        let layers = self.layers_of(level);
        for layer in &mut self.layers[..layers] {
            layer.remove(key);
        }
        if let Deletion::Lazy { .. } = self.deletion {
            self.stale.count += 1;
        }
    }

    fn clear(&mut self) {
        self.layers.iter_mut().for_each(Layer::clear);
        self.stale.count = 0;
    }

    fn stale(&self) -> u64 {
        self.stale.count
    }

    fn needs_rebuild(&self) -> bool {
        self.stale.exceed_quota()
    }

    fn bits(&self) -> u64 {
        self.layers.iter().map(Layer::bits).sum()
    }

    fn false_positive(&self) -> f64 {
        self.layers[0].hit_rate()
    }
}
