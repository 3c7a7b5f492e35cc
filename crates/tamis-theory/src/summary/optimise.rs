//! Search for the smallest summary within a budget of crises and failures.

use alloc::vec::Vec;

use super::sizing::{
    Target, rough_cells, smallest_filter_stack, smallest_type_filter,
};
use super::{
    Filter, Prediction, bits, bits_per_cell, filter_stack, interpolation,
    level_width, type_filter,
};
use crate::check::{self, MAX_CHOICES};
use crate::crisis::{Division, MIN_BUDGET, Occupancy, check_table};
use crate::crisis::{divide, least_crisis, whole};
use crate::{Error, Result};

/// Numbers of levels considered by default: beyond eight the cells of a
/// summary need another bit and the gain is below 1 %.
const LEVELS: core::ops::RangeInclusive<u32> = 2..=8;
/// Candidates, best by the heuristic, that are computed exactly.
const FINALISTS: usize = 2;
/// Ratio of estimate to budget above which the exact chance exceeds the
/// budget too.
const HOPELESS: f64 = 1e3;
/// Rounds of correcting the heuristic by the exact chance.
const ROUNDS: usize = 8;
/// Largest share of the budget that crises take in the search.
const CRISIS_SHARE: f64 = 0.9;

/// Requirements of a summary.
///
/// ```
/// use tamis_theory::summary::{Goal, optimise};
///
/// let goal = Goal { choices: Some(6), ..Goal::new(10_000, 3.0) };
/// assert_eq!((goal.budget, goal.max_false_positive), (1e-9, 0.01));
/// assert_eq!(optimise(goal)?.filter_stack.levels.len(), 6);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Items in the table, n.
    pub items: u64,
    /// Buckets of all levels, per item.
    pub buckets_per_item: f64,
    /// Entries per bucket, h.
    pub bucket: u32,
    /// Number of levels, d; `None` for the best of 2 to 8.
    pub choices: Option<u32>,
    /// Largest sum of the chance of a crisis and the failures.
    pub budget: f64,
    /// Largest false-positive rate.
    pub max_false_positive: f64,
}

impl Goal {
    /// Buckets of one entry, any number of levels, a budget of 1e-9, and a
    /// false-positive rate of at most 0.01.
    ///
    /// ```
    /// use tamis_theory::summary::Goal;
    ///
    /// assert_eq!(Goal::new(1000, 3.0).bucket, 1);
    /// ```
    pub fn new(items: u64, buckets_per_item: f64) -> Self {
        Goal {
            items,
            buckets_per_item,
            bucket: 1,
            choices: None,
            budget: 1e-9,
            max_false_positive: 0.01,
        }
    }

    fn buckets(&self) -> Result<u64> {
        check_table(self.items, &[1], self.bucket)?;
        check::in_range("budget", self.budget, MIN_BUDGET, 0.5)?;
        let (least, rate) = (check::MIN_FPR, self.max_false_positive);
        check::in_range("max_false_positive", rate, least, 0.5)?;
        if let Some(choices) = self.choices {
            check::choices(choices, 2)?;
        }
        let ratio = self.buckets_per_item;
        check::in_range("buckets_per_item", ratio, 1e-4, 1000.0)?;
        let buckets = libm::floor(self.items as f64 * ratio);
        check::in_range("buckets", buckets, f64::from(MAX_CHOICES), 1e15)?;
        Ok(buckets as u64)
    }

    fn division(&self) -> Division {
        Division { items: self.items as f64, bucket: self.bucket }
    }

    fn choices(&self) -> Vec<u32> {
        self.choices.map_or_else(|| LEVELS.collect(), |d| alloc::vec![d])
    }
}

/// The smallest summary of each kind.
///
/// ```
/// use tamis_theory::summary::{Goal, optimise};
///
/// let found = optimise(Goal::new(10_000, 3.0))?;
/// let stack = &found.filter_stack;
/// assert!((stack.prediction.bits_per_item / 23.69 - 1.0).abs() < 0.02);
/// assert!(stack.crisis + stack.prediction.failure <= 1e-9);
/// let cells = &found.type_filter.prediction;
/// assert!(stack.prediction.bits_per_item < cells.bits_per_item);
/// assert!(cells.bits_per_item < found.interpolation.prediction.bits_per_item);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Designs {
    /// The stack of Bloom filters.
    pub filter_stack: StackDesign,
    /// The single filter of cells.
    pub type_filter: TypeFilterDesign,
    /// The sorted strings.
    pub interpolation: InterpolationDesign,
}

/// Levels and a stack of filters for them.
///
/// ```
/// use tamis_theory::summary::{Goal, optimise};
///
/// let stack = optimise(Goal::new(10_000, 2.0))?.filter_stack;
/// assert_eq!(stack.filters.len(), stack.levels.len());
/// // Recording failures instead of avoiding them.
/// assert!(4.0 * stack.level_bits_with_exceptions < stack.level_bits);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct StackDesign {
    /// Buckets of each level.
    pub levels: Vec<u64>,
    /// Exact chance of a crisis.
    pub crisis: f64,
    /// B_0, B_1, ...
    pub filters: Vec<Filter>,
    /// Memory and error rates of the stack.
    pub prediction: Prediction,
    /// Bits per item without B_0, which record the levels.
    pub level_bits: f64,
    /// Bits per item that record the levels if failures are stored as
    /// exceptions, see [`super::level_bits_with_exceptions`].
    pub level_bits_with_exceptions: f64,
}

/// Levels and a filter of cells for them.
///
/// ```
/// use tamis_theory::summary::{Goal, optimise};
///
/// let cells = optimise(Goal::new(10_000, 2.0))?.type_filter;
/// assert!(cells.cells % u64::from(cells.probes) == 0);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct TypeFilterDesign {
    /// Buckets of each level.
    pub levels: Vec<u64>,
    /// Exact chance of a crisis.
    pub crisis: f64,
    /// Cells, all groups together.
    pub cells: u64,
    /// Cells an item is hashed to, k.
    pub probes: u32,
    /// Memory and error rates of the filter.
    pub prediction: Prediction,
}

/// Levels and the strings that record them.
///
/// ```
/// use tamis_theory::summary::{Goal, optimise};
///
/// let strings = optimise(Goal::new(10_000, 2.0))?.interpolation;
/// assert_eq!(strings.bits, 56);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct InterpolationDesign {
    /// Buckets of each level.
    pub levels: Vec<u64>,
    /// Exact chance of a crisis.
    pub crisis: f64,
    /// Bits of a string, without the level.
    pub bits: u32,
    /// Memory and error rates of the list.
    pub prediction: Prediction,
}

/// Finds level sizes and the smallest summary of each kind that keep crises,
/// failures and false positives within bounds.
///
/// The sizes come from a search with the heuristic, corrected by the exact
/// chance of a crisis; the predictions returned are exact. The minimum is the
/// result of a search, without a proof.
///
/// ```
/// use tamis_theory::summary::{Goal, optimise};
///
/// let tight = Goal { budget: 1e-6, ..Goal::new(10_000, 1.0) };
/// assert!(optimise(Goal { choices: Some(3), ..tight }).is_err());
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn optimise(goal: Goal) -> Result<Designs> {
    let buckets = goal.buckets()?;
    Ok(Designs {
        filter_stack: stack(&goal, buckets)?,
        type_filter: cells(&goal, buckets)?,
        interpolation: strings(&goal, buckets)?,
    })
}

fn stack(goal: &Goal, buckets: u64) -> Result<StackDesign> {
    let cost = |passed_on: &[f64], failures: f64| {
        bits::stack_bits(passed_on, failures)
    };
    let finalists = finalists(goal, buckets, &cost)?;
    let designs = finalists.into_iter().map(|table| {
        let failures = goal.budget - table.crisis();
        let rate = goal.max_false_positive;
        let filters = smallest_filter_stack(&table, failures, rate)?;
        let prediction = filter_stack(&table, &filters)?;
        let first = filters[0].bits(goal.items as f64);
        let passed_on = table.passed_on();
        Ok(StackDesign {
            levels: table.levels().to_vec(),
            crisis: table.crisis(),
            level_bits: prediction.bits_per_item - first / goal.items as f64,
            level_bits_with_exceptions: bits::level_bits_with_exceptions(
                passed_on,
            )?,
            filters,
            prediction,
        })
    });
    smallest(goal, designs, |design| &design.prediction)
}

fn cells(goal: &Goal, buckets: u64) -> Result<TypeFilterDesign> {
    let n = goal.items as f64;
    let rate = goal.max_false_positive;
    let cost = |passed_on: &[f64], failures: f64| {
        let below = passed_on[1];
        let target =
            Target { items: n, rate, below, stay: n - below, failures };
        let (cells, _) = rough_cells(&target);
        cells * bits_per_cell(passed_on.len() - 1)
    };
    let finalists = finalists(goal, buckets, &cost)?;
    let designs = finalists.into_iter().map(|table| {
        let failures = goal.budget - table.crisis();
        let (cells, probes) = smallest_type_filter(&table, failures, rate)?;
        let prediction = type_filter(&table, cells, probes)?;
        let (levels, crisis) = (table.levels().to_vec(), table.crisis());
        Ok(TypeFilterDesign { levels, crisis, cells, probes, prediction })
    });
    smallest(goal, designs, |design| &design.prediction)
}

/// The smallest list; its memory depends on the levels only through the
/// budget that crises leave for failures.
fn strings(goal: &Goal, buckets: u64) -> Result<InterpolationDesign> {
    let n = goal.items as f64;
    let mut best: Option<(u32, Occupancy, u32)> = None;
    let mut lowest = 1.0f64;
    for choices in goal.choices() {
        let levels = least_crisis(goal.items, buckets, choices, goal.bucket)?;
        // Skips the exact chance, which is slow.
        let estimate = goal.division().estimate(&levels);
        if estimate > HOPELESS * goal.budget {
            lowest = lowest.min(estimate);
            continue;
        }
        let table = Occupancy::new(goal.items, &levels, goal.bucket)?;
        lowest = lowest.min(table.crisis());
        let left = goal.budget - table.crisis();
        if left <= 0.0 {
            continue;
        }
        let width = libm::log2(n * (n - 1.0).max(1.0) / (2.0 * left));
        let string = libm::ceil(width).max(1.0) as u32;
        let bits = string + level_width(levels.len());
        if best.as_ref().is_none_or(|(least, ..)| bits < *least) {
            best = Some((bits, table, string));
        } else {
            break;
        }
    }
    let Some((_, table, bits)) = best else {
        return Err(Error::Budget { budget: goal.budget, best: lowest });
    };
    let prediction = interpolation(&table, bits)?;
    let (levels, crisis) = (table.levels().to_vec(), table.crisis());
    Ok(InterpolationDesign { levels, crisis, bits, prediction })
}

fn smallest<T>(
    goal: &Goal,
    designs: impl Iterator<Item = Result<T>>,
    prediction: impl Fn(&T) -> &Prediction,
) -> Result<T> {
    let mut best: Option<T> = None;
    for design in designs {
        let design = design?;
        let bits = prediction(&design).bits_per_item;
        let less = |other: &T| bits < prediction(other).bits_per_item;
        if best.as_ref().is_none_or(less) {
            best = Some(design);
        }
    }
    best.ok_or(Error::Budget { budget: goal.budget, best: 1.0 })
}

/// Tables of the best level sizes, for up to [`FINALISTS`] numbers of levels,
/// whose exact chance of a crisis is below the budget.
fn finalists(
    goal: &Goal,
    buckets: u64,
    cost: &impl Fn(&[f64], f64) -> f64,
) -> Result<Vec<Occupancy>> {
    let mut ranked: Vec<(f64, u32)> = goal
        .choices()
        .into_iter()
        .filter(|choices| u64::from(*choices) <= buckets)
        .map(|choices| {
            let sizes = sizes(goal, buckets, choices, 1.0, cost);
            let mut all = Vec::new();
            let crisis = goal.division().passed_on(&sizes, &mut all);
            let left = goal.budget - crisis;
            let bits = if left > 0.0 { cost(&all, left) } else { 1e300 };
            (bits, choices)
        })
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut found = Vec::new();
    let mut lowest = 1.0f64;
    for (_, choices) in ranked {
        match exact(goal, buckets, choices, cost)? {
            Ok(table) => found.push(table),
            Err(crisis) => lowest = lowest.min(crisis),
        }
        if found.len() == FINALISTS {
            break;
        }
    }
    if found.is_empty() {
        return Err(Error::Budget { budget: goal.budget, best: lowest });
    }
    Ok(found)
}

/// Corrects the heuristic by the exact chance until both agree. The inner
/// error is the lowest chance of a crisis, if above the budget.
fn exact(
    goal: &Goal,
    buckets: u64,
    choices: u32,
    cost: &impl Fn(&[f64], f64) -> f64,
) -> Result<core::result::Result<Occupancy, f64>> {
    let mut correction = 1.0;
    let mut best: Option<(f64, Occupancy)> = None;
    let mut lowest = 1.0f64;
    for _ in 0..ROUNDS {
        let sizes = sizes(goal, buckets, choices, correction, cost);
        let levels = whole(&sizes, buckets);
        let table = Occupancy::new(goal.items, &levels, goal.bucket)?;
        let estimate = goal.division().estimate(&levels);
        let (crisis, left) = (table.crisis(), goal.budget - table.crisis());
        lowest = lowest.min(crisis);
        if left > 0.0 {
            let bits = cost(table.passed_on(), left);
            if best.as_ref().is_none_or(|(least, _)| bits < *least) {
                best = Some((bits, table));
            }
        }
        let next = crisis / estimate.max(f64::MIN_POSITIVE);
        // A negligible chance needs no correction.
        let settled = crisis < 1e-3 * goal.budget
            || (next / correction - 1.0).abs() < 0.05;
        let hopeless = estimate > HOPELESS * goal.budget;
        if (left > 0.0 && settled) || (left <= 0.0 && hopeless) {
            break;
        }
        // Overcorrects after a failure: the error of the heuristic grows as
        // the last levels shrink.
        let more = if left > 0.0 { 1.0 } else { 3.0 };
        correction = more * next.clamp(1e-3, 1e200);
    }
    Ok(best.map(|(_, table)| table).ok_or(lowest))
}

/// The sizes of least cost by the corrected heuristic.
fn sizes(
    goal: &Goal,
    buckets: u64,
    choices: u32,
    correction: f64,
    cost: &impl Fn(&[f64], f64) -> f64,
) -> Vec<f64> {
    let division = goal.division();
    let mut all = Vec::new();
    let limit = CRISIS_SHARE * goal.budget;
    divide(buckets as f64, choices, |sizes| {
        let crisis = correction * division.passed_on(sizes, &mut all);
        if crisis > limit {
            // A penalty above any cost, decreasing towards the limit.
            return 1e100 * (1.0 + libm::log(crisis / limit));
        }
        cost(&all, goal.budget - crisis)
    })
}
