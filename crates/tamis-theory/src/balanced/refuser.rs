//! A block that takes keys up to some point and refuses all that follow.
//!
//! Whether the point is a number of keys or a number of set bits, all that
//! matters is, for each i, the chance that the block becomes full with its
//! i-th key and its false-positive rate then. The arrivals come in as
//! weights, so that one table serves every load.

use alloc::vec::Vec;

use crate::dot::dot;
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

/// Rates and refusals at a given load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    /// Chance that it answers "maybe".
    pub(crate) maybe: f64,
    /// Keys refused per block.
    pub(crate) refused: f64,
    /// Chance that a lookup may not stop here, whatever the answer.
    pub(crate) go_on: f64,
    /// Chance that it answers "no" and the lookup goes on.
    pub(crate) passed: f64,
}

/// The blocks that a lookup of a non-member passes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Passed {
    pub(crate) chance: f64,
    /// Mean keys refused, and mean keys that arrived.
    pub(crate) refused: f64,
    pub(crate) arrived: f64,
    /// Variance of the refused, covariance, variance of the arrived.
    pub(crate) covariances: [f64; 3],
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
        let highest = set_bits;
        PopcountChain::new(bits, probes, highest, most, NOTHING)
            .refuser(set_bits)
    }

    /// The mean of `values[i]` over the number of keys i that fills the block.
    pub(crate) fn mean(&self, values: &[f64]) -> f64 {
        dot(&self.fills, values.get(self.first..).unwrap_or_default())
    }

    /// The blocks that a lookup passes, from the chances of 0, 1, .. arrivals.
    pub(crate) fn passed(
        &self,
        chances: &[f64],
        tracking_bits: u32,
    ) -> Passed {
        // Chances that a block with 0, 1, .. refused keys is not marked.
        let clean = match tracking_bits {
            0 => 0.0,
            bits => 1.0 - 1.0 / f64::from(bits),
        };
        let (mut sum, mut refused, mut arrived) = (0.0, 0.0, 0.0);
        let [mut refused_2, mut cross, mut arrived_2] = [0.0; 3];
        let fills = self.fills.iter().zip(&self.filled);
        for (i, (fills, filled)) in (self.first..).zip(fills) {
            let Some(chances) = chances.get(i..) else { break };
            let mut unmarked = f64::from(tracking_bits > 0);
            // Sums of 1, m and m^2 over m refused keys.
            let [mut one, mut first, mut second] = [0.0; 3];
            for (m, chance) in (0u32..).zip(chances) {
                let (m, chance) = (f64::from(m), chance * (1.0 - unmarked));
                one += chance;
                first += chance * m;
                second += chance * m * m;
                unmarked *= clean;
            }
            let (i, pass) = (i as f64, (fills - filled).max(0.0));
            sum += pass * one;
            refused += pass * first;
            arrived += pass * (i * one + first);
            refused_2 += pass * second;
            cross += pass * (i * first + second);
            arrived_2 += pass * (i * (i * one + 2.0 * first) + second);
        }
        if sum <= 0.0 {
            return Passed::default();
        }
        let (refused, arrived) = (refused / sum, arrived / sum);
        Passed {
            chance: sum,
            refused,
            arrived,
            covariances: [
                refused_2 / sum - refused * refused,
                cross / sum - refused * arrived,
                arrived_2 / sum - arrived * arrived,
            ],
        }
    }

    /// The outcome with some tracking bits, from the chances of 0, 1, ...
    /// arrivals.
    ///
    /// Without tracking bits a lookup goes on past every full block; with them
    /// only if a refused key marked the lookup's class. The chance of a mark,
    /// E[1-z^(N-i); N > i] with z = 1-1/`tracking_bits`, is (1-z) P(N > i) +
    /// z E[1-z^(N-i-1); N > i+1], so that all sums are taken from above.
    pub(crate) fn outcome(
        &self,
        chances: &[f64],
        tracking_bits: u32,
    ) -> Outcome {
        let first = self.first.min(chances.len());
        let chances_of_full = &chances[first..];
        let filling = self.fills.len().min(chances_of_full.len());
        let hit = match tracking_bits {
            0 => 1.0,
            bits => 1.0 / f64::from(bits),
        };
        // P(N >= i), E(N-i)^+ and the chance of a mark.
        let (mut above, mut more, mut marked) = (0.0, 0.0, 0.0);
        let mut step = |chance: f64| {
            more += above;
            marked = hit * above + (1.0 - hit) * marked;
            above += chance;
            let goes_on = if tracking_bits == 0 { above } else { marked };
            (above, more, goes_on)
        };
        for chance in chances_of_full[filling..].iter().rev() {
            step(*chance);
        }
        let mut maybe = dot(&self.open, chances);
        let (mut refused, mut go_on, mut found) = (0.0, 0.0, 0.0);
        let fills = self.fills[..filling].iter().zip(&self.filled).rev();
        let chances = chances_of_full[..filling].iter().rev();
        for (chance, (fills, filled)) in chances.zip(fills) {
            let (above, more, goes_on) = step(*chance);
            maybe += filled * above;
            refused += fills * more;
            go_on += fills * goes_on;
            found += filled * goes_on;
        }
        let passed = (go_on - found).max(0.0);
        Outcome { maybe, refused, go_on, passed }
    }
}

/// The number of set bits X as keys are added without refusal, key by key.
///
/// X never falls, so one chain serves every threshold: a block that refuses
/// at `set_bits` is full after `n` keys exactly if X >= `set_bits`.
pub(crate) struct PopcountChain {
    rows: Vec<Row>,
    /// Sums of mass, mass * rate and mass * next over the states of a row up
    /// to and including each; all rows in one vector.
    sums: Vec<[f64; 3]>,
}

/// States with mass after some number of keys.
struct Row {
    /// The first state.
    low: usize,
    /// Its place in `sums`.
    start: usize,
}

impl PopcountChain {
    /// Follows up to `most` keys of `probes` bits each through a block of
    /// `bits`, for thresholds up to `highest`. States with less mass than
    /// `cut` are dropped.
    pub(crate) fn new(
        bits: u32,
        probes: u32,
        highest: u32,
        most: usize,
        cut: f64,
    ) -> Self {
        let (bits, probes) = (bits as usize, probes.min(MAX_PROBES) as usize);
        let highest = (highest as usize).min(bits + 1);
        let states = (highest + probes).min(bits) + 1;
        let share = |x: usize| x as f64 / bits as f64;
        let hit: Vec<f64> = (0..states).map(share).collect();
        // `rise[x]` is the chance to get from x - 1 to x.
        let rise: Vec<f64> =
            (0..states).map(|x| share(bits + 1 - x.max(1))).collect();
        // (x/bits)^probes, and its mean after one more key.
        let rate: Vec<f64> =
            hit.iter().map(|hit| power(*hit, probes)).collect();
        let mut next = rate.clone();
        for _ in 0..probes {
            for x in 0..states - 1 {
                next[x] = hit[x] * next[x] + rise[x + 1] * next[x + 1];
            }
        }
        let mut chain = PopcountChain { rows: Vec::new(), sums: Vec::new() };
        // `mass[x + 1]` is the mass of state x: `mass[0]` feeds state 0.
        let mut mass = alloc::vec![0.0; states + 1];
        let mut after = mass.clone();
        mass[1] = 1.0;
        let (mut low, mut high) = (0, 0);
        for keys in 0..=most {
            let start = chain.sums.len();
            chain.rows.push(Row { low, start });
            let mut sum = [0.0; 3];
            // A threshold looks below itself only.
            for x in low..(high + 1).min(highest) {
                let mass = mass[x + 1];
                sum[0] += mass;
                sum[1] += mass * rate[x];
                sum[2] += mass * next[x];
                chain.sums.push(sum);
            }
            if sum[0] < cut || keys == most {
                break;
            }
            for _ in 0..probes {
                high = (high + 1).min(highest).min(states - 1);
                throw(
                    &mut after[low + 1..=high + 1],
                    (&mass[low + 1..=high + 1], &hit[low..=high]),
                    (&mass[low..=high], &rise[low..=high]),
                );
                core::mem::swap(&mut mass, &mut after);
            }
            while low < high && mass[low + 1] < cut {
                low += 1;
            }
            while high > low && mass[high + 1] < cut {
                high -= 1;
            }
            // Both buffers are read one state beyond each end.
            for buffer in [&mut mass, &mut after] {
                buffer[low] = 0.0;
                let end = (high + 2 + probes).min(states + 1);
                buffer[high + 2..end].fill(0.0);
            }
        }
        chain
    }

    /// The block that refuses at `set_bits`, which the chain must cover.
    pub(crate) fn refuser(&self, set_bits: u32) -> Refuser {
        let set_bits = set_bits as usize;
        let below = |row: &Row, end: usize| {
            let states = set_bits.saturating_sub(row.low).min(end - row.start);
            match states.checked_sub(1) {
                Some(last) => self.sums[row.start + last],
                None => [0.0; 3],
            }
        };
        let keys = self.rows.len();
        let mut refuser = Refuser {
            open: Vec::with_capacity(keys),
            first: 0,
            fills: Vec::with_capacity(keys),
            filled: Vec::with_capacity(keys),
        };
        // An empty block is full already if no bit need be set; its rate is
        // zero.
        let mut before = [1.0, 0.0, 0.0];
        let ends = self.rows.iter().skip(1).map(|row| row.start);
        let ends = ends.chain([self.sums.len()]);
        for (row, end) in self.rows.iter().zip(ends) {
            let after = below(row, end);
            let fills = (before[0] - after[0]).max(0.0);
            refuser.open.push(after[1]);
            // Key numbers that never fill a block need no entry.
            if fills >= NOTHING || !refuser.fills.is_empty() {
                refuser.fills.push(fills);
                refuser.filled.push((before[2] - after[1]).max(0.0));
            } else {
                refuser.first += 1;
            }
            if after[0] <= 0.0 {
                break;
            }
            before = after;
        }
        refuser
    }
}

/// A chance below this never shows in a rate.
pub(crate) const NOTHING: f64 = 1e-35;

/// One throw: a block keeps its state if the bit is set already, and comes
/// from the state below otherwise.
fn throw(
    to: &mut [f64],
    (same, hit): (&[f64], &[f64]),
    (below, rise): (&[f64], &[f64]),
) {
    let same = same.iter().zip(hit);
    let below = below.iter().zip(rise);
    for (to, ((same, hit), (below, rise))) in
        to.iter_mut().zip(same.zip(below))
    {
        *to = same * hit + below * rise;
    }
}

/// x^n by squaring: a hundred times faster than `libm::pow`, and as exact
/// as the exponents here need.
pub(crate) fn power(x: f64, n: usize) -> f64 {
    let (mut result, mut square, mut n) = (1.0, x, n);
    while n > 0 {
        if n & 1 == 1 {
            result *= square;
        }
        square *= square;
        n >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poisson::Poisson;

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
                .outcome(arrivals.chances(), classes);
            let slow = brute_force(32, 4, pop as usize, classes, &arrivals);
            close(fast, slow);
        }
    }

    #[test]
    fn one_probe_per_key_is_a_load_when_none_collide() {
        // In a huge block a key sets a new bit of its own.
        let arrivals = Poisson::new(5.0);
        let chances = arrivals.chances();
        let by_bits =
            Refuser::at_popcount(4_000_000, 1, 6, 100).outcome(chances, 4);
        let by_keys = Refuser::at_load(4_000_000, 1, 6).outcome(chances, 4);
        assert!((by_bits.refused - by_keys.refused).abs() < 1e-5);
        assert!((by_bits.go_on - by_keys.go_on).abs() < 1e-5);
    }

    #[test]
    fn several_popcounts_agree_with_one() {
        let arrivals = Poisson::new(12.0);
        let chances = arrivals.chances();
        let chain = PopcountChain::new(128, 8, 100, 300, NOTHING);
        for pop in [40, 60, 61, 100] {
            let one = Refuser::at_popcount(128, 8, pop, 300);
            let several = chain.refuser(pop);
            close(several.outcome(chances, 0), one.outcome(chances, 0));
        }
    }
}
