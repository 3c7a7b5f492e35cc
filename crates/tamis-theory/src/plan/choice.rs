//! The rule of the recommendation, and its reasons.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::{Candidate, Kind, Size, Task};
use crate::Prediction;

/// Smallest share of the memory that a candidate must save at equal rate.
const MIN_MEMORY_GAIN: f64 = 0.05;
/// Smallest share of the false positives that a candidate must save at equal
/// memory.
const MIN_FPR_GAIN: f64 = 0.25;
/// Largest average number of reads per lookup of a recommended candidate.
const MAX_READS: f64 = 1.3;
/// Bits per key up to which balanced filters are not recommended.
const MIN_BALANCED_BITS: f64 = 12.0;
/// Rates at which a TinySet is recommended. Above, the Bloom kinds are
/// smaller; below, several kinds are worth comparing.
const TINYSET_RATES: RangeInclusive<f64> = 0.0001..=0.03;

/// Objective of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefer {
    /// The least memory.
    Space,
    /// The fastest lookups: testing bits takes a fraction of the time of
    /// searching fingerprints.
    Speed,
}

/// Default of `build` among the kinds that read one block per lookup: whether
/// a TinySet with the prediction `tinyset` is taken, or a blocked filter with
/// the prediction `blocked`.
///
/// ```
/// use tamis_theory::plan::{Kind, Prefer, Size, prefers_tinyset};
///
/// let size = Size::Fpr(0.01);
/// let blocked = Kind::Blocked.predict(size, 512)?;
/// let tinyset = Kind::TinySet.predict(size, 512)?;
/// let taken = |prefer| prefers_tinyset(size, prefer, &blocked, &tinyset);
/// assert!(taken(Prefer::Space) && !taken(Prefer::Speed));
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn prefers_tinyset(
    size: Size,
    prefer: Prefer,
    blocked: &Prediction,
    tinyset: &Prediction,
) -> bool {
    let (rate, smaller) = match size {
        Size::Fpr(fpr) => (fpr, tinyset.bits_per_key < blocked.bits_per_key),
        Size::BitsPerKey(_) => (tinyset.fpr, tinyset.fpr < blocked.fpr),
    };
    prefer == Prefer::Space && smaller && TINYSET_RATES.contains(&rate)
}

impl Candidate {
    fn searches_fingerprints(&self) -> bool {
        self.kind.levels().is_some()
    }

    fn too_dense(&self) -> bool {
        self.kind == Kind::Balanced
            && self.prediction.bits_per_key <= MIN_BALANCED_BITS
    }
}

/// The choice among candidates, of which the first is blocked.
pub(super) struct Choice<'a> {
    /// The rate is given and memory is compared.
    by_memory: bool,
    prefer: Prefer,
    /// Default kind of `build`.
    start: usize,
    candidates: &'a [Candidate],
}

impl<'a> Choice<'a> {
    pub(super) fn new(task: &Task, candidates: &'a [Candidate]) -> Self {
        let blocked = &candidates[0].prediction;
        let start = candidates.iter().position(|one| {
            one.kind == Kind::TinySet
                && prefers_tinyset(
                    task.size,
                    task.prefer,
                    blocked,
                    &one.prediction,
                )
        });
        Self {
            by_memory: matches!(task.size, Size::Fpr(_)),
            prefer: task.prefer,
            start: start.unwrap_or(0),
            candidates,
        }
    }

    /// Share of the memory or of the false positives that `candidate` saves.
    fn gain(&self, candidate: &Candidate, over: &Candidate) -> f64 {
        let (one, other) = (&candidate.prediction, &over.prediction);
        match self.by_memory {
            true => 1.0 - one.bits_per_key / other.bits_per_key,
            false => 1.0 - one.fpr / other.fpr,
        }
    }

    fn min_gain(&self) -> f64 {
        if self.by_memory { MIN_MEMORY_GAIN } else { MIN_FPR_GAIN }
    }

    /// Gain as text, such as "5.2 % less memory than blocked".
    fn compare(&self, candidate: &Candidate, with: &Candidate) -> String {
        let gain = self.gain(candidate, with);
        let title = with.kind.title();
        if !self.by_memory && gain <= -1.0 {
            let times = 1.0 - gain;
            return format!("{times:.1} times the false positives of {title}");
        }
        let percent = 100.0 * gain;
        let quantity = match (self.by_memory, percent >= 0.0) {
            (true, true) => "less memory",
            (true, false) => "more memory",
            (false, true) => "fewer false positives",
            (false, false) => "more false positives",
        };
        format!("{:.1} % {quantity} than {title}", percent.abs())
    }

    fn eligible(&self, candidate: &Candidate) -> bool {
        candidate.reads <= MAX_READS
            && !candidate.too_dense()
            // Removals cost memory; recommended only on request.
            && !candidate.kind.removable()
            && !self.too_slow(candidate)
    }

    fn too_slow(&self, candidate: &Candidate) -> bool {
        self.prefer == Prefer::Speed && candidate.searches_fingerprints()
    }

    /// Index of the recommended candidate.
    pub(super) fn best(&self) -> usize {
        let all = self.candidates;
        let mut others: Vec<usize> =
            (0..all.len()).filter(|i| self.eligible(&all[*i])).collect();
        others.sort_by(|a, b| all[*a].reads.total_cmp(&all[*b].reads));
        let mut best = self.start;
        for other in others {
            if self.gain(&all[other], &all[best]) >= self.min_gain() {
                best = other;
            }
        }
        best
    }

    pub(super) fn reason(&self, best: usize) -> String {
        let start = &self.candidates[self.start];
        let chosen = &self.candidates[best];
        let mut reason = if best != self.start {
            format!(
                "It has {} and reads {:.3} blocks per lookup.",
                self.compare(chosen, start),
                chosen.reads
            )
        } else if chosen.searches_fingerprints() {
            format!(
                "It reads one block per lookup and has {}.",
                self.compare(chosen, &self.candidates[0])
            )
        } else {
            format!(
                "It reads one block per lookup, and no other kind that reads \
                 at most {MAX_READS} saves {:.0} % of the {}.",
                100.0 * self.min_gain(),
                if self.by_memory { "memory" } else { "false positives" },
            )
        };
        if chosen.searches_fingerprints() {
            reason += " While the filter fits the cache, lookups of single \
                       keys take several times as long as in blocked: \
                       prefer speed if that matters.";
        }
        reason
    }

    /// Notes on the candidates other than `best`.
    pub(super) fn notes(&self, best: usize) -> Vec<String> {
        let all = self.candidates.iter().enumerate();
        let others = all.filter(|(i, _)| *i != best);
        others.map(|(_, other)| self.note(other, best)).collect()
    }

    fn note(&self, candidate: &Candidate, best: usize) -> String {
        let why = if candidate.kind.removable() {
            "needed only to remove keys".into()
        } else if candidate.too_dense() {
            "below about 12 bits per key perfect balance gains a few percent, \
             and tracking bits and second reads cost as much"
                .into()
        } else if self.too_slow(candidate) {
            "searching the fingerprints of a single key takes several times \
             as long as testing its bits"
                .into()
        } else if candidate.reads == 1.0 {
            "reads one block per lookup".into()
        } else {
            format!("reads {:.3} blocks per lookup", candidate.reads)
        };
        let compare = self.compare(candidate, &self.candidates[best]);
        format!("{}: {compare}; {why}.", candidate.kind.title())
    }
}
