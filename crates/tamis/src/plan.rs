//! Comparison of all kinds of filters for a task, and the recommended one.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use tamis_theory::{Prediction, blocked, split, standard};

use crate::error::{Error, Result};
use crate::filter::{Balanced, Prefer, Size, TinySet};
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
        let start = Kind::recommended(size, block_bits, prefer)?;
        let designs = designs(size, block_bits, |kind, prediction| {
            PlannedDesign::new(kind, prediction, items, miss_share)
        })?;
        let rule = SelectionRule {
            by_memory: matches!(size, Size::Fpr(_)),
            prefer,
            start,
            designs: &designs,
        };
        let recommended = rule.best();
        let reason = rule.reason(recommended);
        let notes = rule.notes(recommended);
        Ok(Self { designs, reason, notes, recommended })
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

/// Blocked first. Kinds that cannot reach the rate or the memory are left
/// out, except the Bloom kinds, which reach all that blocked reaches.
fn designs(
    size: Size,
    block_bits: u32,
    design: impl Fn(Kind, Prediction) -> PlannedDesign,
) -> Result<Vec<PlannedDesign>> {
    // Builders round the memory of the Bloom kinds up; these are exact.
    let [blocked, split, bloom] = match size {
        Size::Fpr(fpr) => [
            blocked::for_fpr(block_bits, fpr)?,
            split::for_fpr(block_bits, fpr)?,
            standard::for_fpr(fpr)?,
        ],
        Size::BitsPerKey(bits) => [
            blocked::best(block_bits, bits)?,
            split::best(block_bits, bits)?,
            standard::best(bits)?,
        ],
    };
    let mut designs = vec![
        design(Kind::Blocked, blocked),
        design(Kind::Split, split),
        design(Kind::Bloom, bloom),
    ];
    let builder = TinySet::builder().size(size).block_bits(block_bits);
    if let Ok(tinyset) = builder.predict() {
        designs.push(design(Kind::TinySet, tinyset));
    }
    if let Ok(removable) = builder.removable().predict() {
        let row = design(Kind::TinySet, removable);
        designs.push(PlannedDesign { removable: true, ..row });
    }
    if let Ok(two) = builder.two_level().predict() {
        let row = design(Kind::TinySet, two);
        designs.push(PlannedDesign {
            levels: Some(2),
            mergeable: false,
            ..row
        });
    }
    let builder = Balanced::builder().size(size).block_bits(block_bits);
    if let Ok(balanced) = builder.predict() {
        designs.push(design(Kind::Balanced, balanced));
    }
    Ok(designs)
}

/// Smallest share of the memory that a design must save at equal rate.
const MIN_MEMORY_GAIN: f64 = 0.05;
/// Smallest share of the false positives that a design must save at equal
/// memory.
const MIN_FPR_GAIN: f64 = 0.25;
/// Largest average number of reads per lookup of a recommended design.
const MAX_READS: f64 = 1.3;
/// Bits per key up to which balanced filters are not recommended.
const MIN_BALANCED_BITS: f64 = 12.0;

impl PlannedDesign {
    fn new(
        kind: Kind,
        prediction: Prediction,
        items: u64,
        miss_share: f64,
    ) -> Self {
        let Prediction { bits_per_key, reads_hit, reads_miss, .. } =
            prediction;
        Self {
            kind,
            levels: (kind == Kind::TinySet).then_some(1),
            prediction,
            bytes: libm::ceil(items as f64 * bits_per_key / 8.0) as u64,
            reads: miss_share * reads_miss + (1.0 - miss_share) * reads_hit,
            removable: false,
            mergeable: kind != Kind::Balanced,
        }
    }

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
            (true, _) => format!("{kind}, removable"),
            (_, Some(levels @ 2..)) => format!("{kind}, {levels} levels"),
            _ => kind.to_owned(),
        }
    }

    fn too_dense(&self) -> bool {
        self.kind == Kind::Balanced
            && self.prediction.bits_per_key <= MIN_BALANCED_BITS
    }
}

/// Rule of the recommendation: [`Kind::recommended`], unless another
/// design of at most `MAX_READS` reads saves `MIN_MEMORY_GAIN` of the
/// memory (at a given rate) or `MIN_FPR_GAIN` of the false positives (at given
/// bits per key).
struct SelectionRule<'a> {
    /// The rate is given and memory is compared.
    by_memory: bool,
    prefer: Prefer,
    start: Kind,
    /// Blocked first.
    designs: &'a [PlannedDesign],
}

impl SelectionRule<'_> {
    /// Share of the memory or of the false positives that `design` saves.
    fn gain(&self, design: &PlannedDesign, over: &PlannedDesign) -> f64 {
        match self.by_memory {
            true => {
                let over = over.prediction.bits_per_key;
                1.0 - design.prediction.bits_per_key / over
            }
            false => 1.0 - design.prediction.fpr / over.prediction.fpr,
        }
    }

    fn min_gain(&self) -> f64 {
        if self.by_memory { MIN_MEMORY_GAIN } else { MIN_FPR_GAIN }
    }

    /// Gain as text, such as "5.2 % less memory than blocked".
    fn compare(&self, design: &PlannedDesign, with: &PlannedDesign) -> String {
        let gain = self.gain(design, with);
        if !self.by_memory && gain <= -1.0 {
            let times = 1.0 - gain;
            return format!(
                "{times:.1} times the false positives of {}",
                with.name()
            );
        }
        let percent = 100.0 * gain;
        let what = match (self.by_memory, percent >= 0.0) {
            (true, true) => "less memory",
            (true, false) => "more memory",
            (false, true) => "fewer false positives",
            (false, false) => "more false positives",
        };
        format!("{:.1} % {what} than {}", percent.abs(), with.name())
    }

    fn eligible(&self, design: &PlannedDesign) -> bool {
        design.reads <= MAX_READS
            && !design.too_dense()
            // Removals cost memory; recommended only on request.
            && !design.removable
            && !self.too_slow(design)
    }

    fn too_slow(&self, design: &PlannedDesign) -> bool {
        self.prefer == Prefer::Speed && design.kind == Kind::TinySet
    }

    /// The index of the first design of the kind `start`.
    fn start(&self) -> usize {
        let found = self.designs.iter().position(|d| d.kind == self.start);
        // `start` is a kind of `designs`, whose first is blocked.
        found.unwrap_or(0)
    }

    fn best(&self) -> usize {
        let mut others: Vec<usize> = (0..self.designs.len())
            .filter(|&at| self.eligible(&self.designs[at]))
            .collect();
        others.sort_by(|&a, &b| {
            self.designs[a].reads.total_cmp(&self.designs[b].reads)
        });
        let mut best = self.start();
        for at in others {
            let gain = self.gain(&self.designs[at], &self.designs[best]);
            if gain >= self.min_gain() {
                best = at;
            }
        }
        best
    }

    fn reason(&self, best: usize) -> String {
        let start = self.start();
        let is_start = best == start;
        let (best, start) = (&self.designs[best], &self.designs[start]);
        let searches = best.kind == Kind::TinySet;
        let mut reason = if !is_start {
            format!(
                "It has {} and reads {:.3} blocks per lookup.",
                self.compare(best, start),
                best.reads
            )
        } else if searches {
            format!(
                "It reads one block per lookup and has {}.",
                self.compare(best, &self.designs[0])
            )
        } else {
            format!(
                "It reads one block per lookup, and no other kind that reads \
                 at most {MAX_READS} saves {:.0} % of the {}.",
                100.0 * self.min_gain(),
                if self.by_memory { "memory" } else { "false positives" },
            )
        };
        if searches {
            reason += " While the filter fits the cache, lookups of single \
                       keys take several times as long as in blocked: \
                       prefer speed if that matters.";
        }
        reason
    }

    /// Notes on the designs other than `best`.
    fn notes(&self, best: usize) -> Vec<String> {
        let others = (0..self.designs.len()).filter(|&at| at != best);
        others
            .map(|at| {
                let design = &self.designs[at];
                let why = if design.removable {
                    "needed only to remove keys".to_owned()
                } else if design.too_dense() {
                    "below about 12 bits per key perfect balance gains a few \
                     percent, and tracking bits and second reads cost as much"
                        .to_owned()
                } else if self.too_slow(design) {
                    "searching the fingerprints of a single key takes \
                     several times as long as testing its bits"
                        .to_owned()
                } else if design.reads == 1.0 {
                    "reads one block per lookup".to_owned()
                } else {
                    format!("reads {:.3} blocks per lookup", design.reads)
                };
                let compare = self.compare(design, &self.designs[best]);
                format!("{}: {compare}; {why}.", design.name())
            })
            .collect()
    }
}
