//! A block that takes keys up to some point and refuses all that follow.
//!
//! Whether the point is a number of keys or a number of set bits, all that
//! matters is, for each i, the chance that the block becomes full with its
//! i-th key and how likely it then says "maybe". The arrivals come in as
//! weights, so that one table serves every load.

use alloc::vec::Vec;

use crate::dot::dot;
use crate::poisson::Poisson;
use crate::{coverage, prediction::MAX_PROBES};

/// The refusing block.
pub(crate) struct Refuser {
    /// E[rate; not full] after i keys.
    open: Vec<f64>,
    /// The first i for which the next two are listed.
    first: usize,
    /// P(full with exactly the i-th key), i = `first`, ...
    fills: Vec<f64>,
    /// E[rate; full with exactly the i-th key].
    filled: Vec<f64>,
}

/// What it does at a given load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    /// Chance that it says "maybe".
    pub(crate) maybe: f64,
    /// Keys refused per block.
    pub(crate) refused: f64,
    /// Chance that a lookup would go on whatever it says.
    pub(crate) go_on: f64,
    /// Chance that it says "no" and the lookup goes on.
    pub(crate) passed: f64,
}

impl Refuser {
    /// Refuses once it holds `threshold` keys.
    pub(crate) fn at_load(bits: u32, probes: u32, threshold: usize) -> Self {
        let rates = coverage::by_items(bits, probes, threshold);
        Self::from_rates(&rates, threshold)
    }

    /// The same, with the rates of a block by its number of keys at hand.
    pub(crate) fn from_rates(rates: &[f64], threshold: usize) -> Self {
        let threshold = threshold.min(rates.len() - 1);
        Refuser {
            open: rates[..threshold].to_vec(),
            first: threshold,
            fills: alloc::vec![1.0],
            filled: alloc::vec![rates[threshold]],
        }
    }

    /// Refuses once `set_bits` of its bits are set, or after `most` keys.
    pub(crate) fn at_popcount(
        bits: u32,
        probes: u32,
        set_bits: u32,
        most: usize,
    ) -> Self {
        let chain = PopcountChain::new(bits, probes);
        let mut all = chain.refusers(&[set_bits], most);
        all.pop().unwrap_or(Refuser {
            open: Vec::new(),
            first: 0,
            fills: Vec::new(),
            filled: Vec::new(),
        })
    }

    /// Drops the numbers of keys that never fill a block.
    fn trim(&mut self, nothing: f64) {
        let never = self.fills.iter().take_while(|f| **f < nothing).count();
        self.fills.drain(..never);
        self.filled.drain(..never);
        self.first += never;
    }

    /// The outcome with given arrivals. `marks[i]` is the chance that a
    /// block that became full with its i-th key makes a lookup go on.
    pub(crate) fn outcome(
        &self,
        arrivals: &Poisson,
        marks: &[f64],
    ) -> Outcome {
        let from = |all: &'_ [f64]| -> usize { self.first.min(all.len()) };
        let tails = &arrivals.tails()[from(arrivals.tails())..];
        let excesses = &arrivals.excesses()[from(arrivals.excesses())..];
        let marks = &marks[from(marks)..];
        let go_on = dot(&self.fills, marks);
        Outcome {
            maybe: dot(&self.open, arrivals.chances())
                + dot(&self.filled, tails),
            refused: dot(&self.fills, excesses),
            go_on,
            passed: (go_on - dot(&self.filled, marks)).max(0.0),
        }
    }
}

/// The chances that a block which became full with its i-th key makes a
/// lookup go on: if it is full at all without tracking bits, if some refused
/// key marked the lookup's class with them.
pub(crate) fn marks(arrivals: &Poisson, tracking_bits: u32) -> Vec<f64> {
    let tails = arrivals.tails();
    if tracking_bits == 0 {
        return tails.to_vec();
    }
    // E[1-z^(N-i); N > i] = (1-z) P(N > i) + z E[1-z^(N-i-1); N > i+1].
    let hit = 1.0 / f64::from(tracking_bits);
    let mut marks = alloc::vec![0.0; tails.len()];
    let (mut above, mut later) = (0.0, 0.0);
    for (mark, tail) in marks.iter_mut().zip(tails).rev() {
        later = hit * above + (1.0 - hit) * later;
        *mark = later;
        above = *tail;
    }
    marks
}

/// The number of set bits as keys are added without refusal. It never
/// falls, so that a block refusing at any popcount can be read off the same
/// chain.
pub(crate) struct PopcountChain {
    bits: usize,
    probes: usize,
    /// (x/bits)^probes.
    rate: Vec<f64>,
    /// The mean of `rate` after one more key.
    next: Vec<f64>,
}

impl PopcountChain {
    pub(crate) fn new(bits: u32, probes: u32) -> Self {
        let (bits, probes) = (bits as usize, probes.min(MAX_PROBES) as usize);
        let rate: Vec<f64> = (0..=bits)
            .map(|x| libm::pow(x as f64 / bits as f64, probes as f64))
            .collect();
        let mut next = rate.clone();
        for _ in 0..probes {
            for x in 0..bits {
                let known = x as f64 / bits as f64;
                next[x] = known * next[x] + (1.0 - known) * next[x + 1];
            }
        }
        PopcountChain { bits, probes, rate, next }
    }

    /// A refuser for each of `set_bits`, for up to `most` keys.
    pub(crate) fn refusers(
        &self,
        set_bits: &[u32],
        most: usize,
    ) -> Vec<Refuser> {
        const NOTHING: f64 = 1e-35;
        let highest = set_bits.iter().max().copied().unwrap_or(0) as usize;
        let mut out: Vec<Refuser> = set_bits
            .iter()
            .map(|pop| {
                // An empty block is full already if no bit need be set.
                let full = f64::from(*pop == 0);
                Refuser {
                    open: alloc::vec![(1.0 - full) * self.rate[0]],
                    first: 0,
                    fills: alloc::vec![full],
                    filled: alloc::vec![full * self.rate[0]],
                }
            })
            .collect();
        let mut mass = alloc::vec![0.0; self.bits + 1];
        mass[0] = 1.0;
        // Only these states have mass, and those at `highest` or above are
        // never asked for.
        let (mut low, mut high) = (0, 0);
        // Sums of mass, mass * rate and mass * next below each popcount.
        let mut before: Vec<[f64; 3]> = Vec::new();
        self.below(&mass, (low, high), set_bits, &mut before);
        for _ in 0..most {
            for _ in 0..self.probes {
                high = (high + 1).min(self.bits).min(highest);
                for x in (low..=high).rev() {
                    let stay = mass[x] * x as f64 / self.bits as f64;
                    let from = match x.checked_sub(1) {
                        Some(y) => {
                            mass[y] * (self.bits - y) as f64 / self.bits as f64
                        }
                        None => 0.0,
                    };
                    mass[x] = stay + from;
                }
                while low < high && mass[low] < NOTHING {
                    mass[low] = 0.0;
                    low += 1;
                }
            }
            let mut after = Vec::with_capacity(before.len());
            self.below(&mass, (low, high), set_bits, &mut after);
            let mut left = 0.0;
            for ((refuser, before), after) in
                out.iter_mut().zip(&before).zip(&after)
            {
                left += after[0];
                refuser.open.push(after[1]);
                refuser.fills.push((before[0] - after[0]).max(0.0));
                refuser.filled.push((before[2] - after[1]).max(0.0));
            }
            before = after;
            if left < NOTHING {
                break;
            }
        }
        for refuser in &mut out {
            refuser.trim(NOTHING);
        }
        out
    }

    fn below(
        &self,
        mass: &[f64],
        (low, high): (usize, usize),
        set_bits: &[u32],
        out: &mut Vec<[f64; 3]>,
    ) {
        // Popcounts come in ascending order, so that one pass serves all.
        let mut sum = [0.0; 3];
        let mut x = low;
        for pop in set_bits {
            let end = (*pop as usize).min(high + 1);
            while x < end {
                sum[0] += mass[x];
                sum[1] += mass[x] * self.rate[x];
                sum[2] += mass[x] * self.next[x];
                x += 1;
            }
            out.push(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows every block state by state: arrivals one at a time, set bits
    /// and refused keys together.
    fn brute_force(
        bits: usize,
        probes: u32,
        pop: usize,
        classes: u32,
        arrivals: &Poisson,
    ) -> Outcome {
        let most = arrivals.chances().len();
        let mut mass = alloc::vec![alloc::vec![0.0; most + 1]; bits + 1];
        mass[0][0] = 1.0;
        let mut out =
            Outcome { maybe: 0.0, refused: 0.0, go_on: 0.0, passed: 0.0 };
        for weight in arrivals.chances() {
            for (x, row) in mass.iter().enumerate() {
                let rate =
                    libm::pow(x as f64 / bits as f64, f64::from(probes));
                for (refused, chance) in row.iter().enumerate() {
                    let chance = chance * weight;
                    let on = match classes {
                        0 => f64::from(x >= pop),
                        t => {
                            let clean = 1.0 - 1.0 / f64::from(t);
                            1.0 - libm::pow(clean, refused as f64)
                        }
                    };
                    out.maybe += chance * rate;
                    out.refused += chance * refused as f64;
                    out.go_on += chance * on;
                    out.passed += chance * on * (1.0 - rate);
                }
            }
            let mut next = alloc::vec![alloc::vec![0.0; most + 1]; bits + 1];
            for x in 0..=bits {
                for refused in 0..most {
                    let chance = mass[x][refused];
                    if x >= pop {
                        next[x][refused + 1] += chance;
                    } else if chance > 0.0 {
                        let mut spread = alloc::vec![0.0; bits + 1];
                        spread[x] = chance;
                        for _ in 0..probes {
                            for y in (0..=bits).rev() {
                                let known = y as f64 / bits as f64;
                                let below = if y == 0 {
                                    0.0
                                } else {
                                    spread[y - 1] * (bits - y + 1) as f64
                                        / bits as f64
                                };
                                spread[y] = spread[y] * known + below;
                            }
                        }
                        for (y, c) in spread.iter().enumerate() {
                            next[y][refused] += c;
                        }
                    }
                }
            }
            mass = next;
        }
        out
    }

    fn close(x: Outcome, y: Outcome) {
        for (x, y) in [
            (x.maybe, y.maybe),
            (x.refused, y.refused),
            (x.go_on, y.go_on),
            (x.passed, y.passed),
        ] {
            assert!((x - y).abs() <= 1e-12 * y.abs(), "{x} {y}");
        }
    }

    #[test]
    fn popcount_agrees_with_every_state() {
        let arrivals = Poisson::new(3.0);
        for (pop, classes) in [(9, 0), (9, 3), (20, 1), (0, 0), (1, 8)] {
            let fast = Refuser::at_popcount(32, 4, pop, 200)
                .outcome(&arrivals, &marks(&arrivals, classes));
            let slow = brute_force(32, 4, pop as usize, classes, &arrivals);
            close(fast, slow);
        }
    }

    #[test]
    fn one_probe_per_key_is_a_load_when_none_collide() {
        // In a huge block a key sets a new bit of its own.
        let arrivals = Poisson::new(5.0);
        let marks = marks(&arrivals, 4);
        let by_bits = Refuser::at_popcount(4_000_000, 1, 6, 100)
            .outcome(&arrivals, &marks);
        let by_keys =
            Refuser::at_load(4_000_000, 1, 6).outcome(&arrivals, &marks);
        assert!((by_bits.refused - by_keys.refused).abs() < 1e-5);
        assert!((by_bits.go_on - by_keys.go_on).abs() < 1e-5);
    }

    #[test]
    fn several_popcounts_agree_with_one() {
        let arrivals = Poisson::new(12.0);
        let marks = marks(&arrivals, 0);
        let pops = [40, 60, 61, 100];
        let all = PopcountChain::new(128, 8).refusers(&pops, 300);
        for (refuser, pop) in all.iter().zip(pops) {
            let one = Refuser::at_popcount(128, 8, pop, 300);
            close(
                refuser.outcome(&arrivals, &marks),
                one.outcome(&arrivals, &marks),
            );
        }
    }
}
