//! Shares and thresholds of the levels: a fluid model, and a search over it.

use tamis_theory::tinyset::{self, Block};
use tamis_theory::{Prediction, multilevel};

/// A block of one cache line with 64 chains, the library's default.
pub(crate) const LINE: Block = Block::new(512, 64);

/// Levels of blocks, all but the last of which refuse keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Design {
    /// Share of the blocks in each level (alpha).
    pub(crate) level_shares: Vec<f64>,
    /// Load below which a block admits every key (h).
    pub(crate) threshold: u32,
    /// Probability that a block at the threshold admits a key (p).
    pub(crate) admission: f64,
    /// Bits of each block that can refuse keys, one per class of keys.
    pub(crate) tracking_bits: u32,
}

impl Design {
    /// Average bits of a block, tracking bits included.
    pub(crate) fn block_bits(&self) -> f64 {
        let last = self.level_shares.last().copied().unwrap_or(1.0);
        let tracking = f64::from(self.tracking_bits) * (1.0 - last);
        f64::from(LINE.block_bits) + tracking
    }
}

/// Rates of a block by its number of keys, cached: a search compares
/// thousands of designs.
pub(crate) struct Model {
    rates: Vec<f64>,
}

/// Fluid model of one level.
struct Level {
    /// False-positive rate of the block itself.
    rate: f64,
    /// Share of absent keys that a lookup passes to the next level.
    on: f64,
    /// Share of keys refused.
    refused: f64,
}

impl Model {
    pub(crate) fn new() -> Self {
        // Blocks with more keys than twice the bits have a rate of 1.
        let most = 2 * LINE.array_bits();
        Self { rates: (0..most).map(|keys| LINE.fpr(keys)).collect() }
    }

    fn rate(&self, keys: usize) -> f64 {
        self.rates.get(keys).copied().unwrap_or(1.0)
    }

    /// A filter of many blocks with `load` keys per block.
    pub(crate) fn predict(&self, design: &Design, load: f64) -> Prediction {
        let last = design.level_shares.len().saturating_sub(1);
        // Shares of absent and of present keys that reach this level.
        let (mut strangers, mut keys) = (1.0, 1.0);
        let (mut fpr, mut reads_miss, mut reads_hit) = (0.0, 0.0, 0.0);
        for (j, share) in design.level_shares.iter().enumerate() {
            let arrivals = load * keys / share;
            let level = if j < last {
                self.refusing(design, arrivals)
            } else {
                self.absorbing(arrivals)
            };
            // A lookup's rate is the sum over the blocks it reads.
            fpr += strangers * level.rate;
            reads_miss += strangers;
            reads_hit += keys;
            strangers *= level.on;
            keys *= level.refused;
        }
        let bits_per_key = design.block_bits() / load;
        Prediction { bits_per_key, probes: 0, fpr, reads_hit, reads_miss }
    }

    fn absorbing(&self, arrivals: f64) -> Level {
        if arrivals > self.rates.len() as f64 {
            return Level { rate: 1.0, on: 0.0, refused: 0.0 };
        }
        let chances = poisson(arrivals);
        let terms = chances.iter().enumerate();
        let rate = terms.map(|(keys, chance)| chance * self.rate(keys)).sum();
        Level { rate, on: 0.0, refused: 0.0 }
    }

    fn refusing(&self, design: &Design, arrivals: f64) -> Level {
        let threshold = design.threshold as usize;
        let refusing = 1.0 - design.admission;
        let unmarked = match design.tracking_bits {
            0 => 0.0,
            classes => 1.0 - 1.0 / f64::from(classes),
        };
        let (at, above) = (self.rate(threshold), self.rate(threshold + 1));
        if arrivals > self.rates.len() as f64 {
            // All blocks are full. The search visits such designs.
            let refused = 1.0 - f64::from(design.threshold + 1) / arrivals;
            return Level { rate: above, on: 1.0 - above, refused };
        }
        let (mut rate, mut on, mut refused) = (0.0, 0.0, 0.0);
        // After n arrivals at the threshold: the probability that none was
        // admitted, and that none of n refused keys had a given class.
        let (mut none, mut missed) = (1.0, 1.0);
        for (keys, chance) in poisson(arrivals).into_iter().enumerate() {
            let Some(late) = keys.checked_sub(threshold) else {
                rate += chance * self.rate(keys);
                continue;
            };
            let taken = 1.0 - none;
            rate += chance * (none * at + taken * above);
            refused += chance * (late as f64 - taken);
            // A block that admitted one key refused one fewer. Without
            // tracking bits a lookup continues from every block that would
            // refuse its key.
            let marked = match (design.tracking_bits, late) {
                (0, _) => [1.0, 1.0],
                (_, 0) => [0.0, 0.0],
                (1, 1) => [1.0, 0.0],
                (1, _) => [1.0, 1.0],
                _ => [1.0 - missed, 1.0 - missed / unmarked],
            };
            on += chance * none * refusing * marked[0] * (1.0 - at);
            on += chance * taken * marked[1] * (1.0 - above);
            none *= refusing;
            missed *= unmarked;
        }
        Level { rate, on, refused: refused / arrivals.max(f64::MIN_POSITIVE) }
    }

    /// The largest load at which a design meets the rate and the limit of
    /// reads. `load` is that of a filter with one level.
    fn fullest(
        &self,
        load: f64,
        target: f64,
        most_reads: f64,
        design: impl Fn(f64) -> Option<Design>,
    ) -> Option<(Design, Prediction)> {
        let at = |load: f64| {
            let design = design(load)?;
            let p = self.predict(&design, load);
            let good = p.fpr <= target && p.reads_miss <= most_reads;
            good.then_some((design, p))
        };
        // Even perfect balance gains less than 20 %.
        let (mut low, mut high) = (0.8 * load, 1.2 * load);
        let mut best = at(low)?;
        for _ in 0..18 {
            let middle = 0.5 * (low + high);
            match at(middle) {
                Some(found) => (low, best) = (middle, found),
                None => high = middle,
            }
        }
        Some(best)
    }

    /// The design with the least memory and at most `most_reads` reads of an
    /// absent key, among levels of geometrically falling size.
    pub(crate) fn best(
        &self,
        target: f64,
        most_reads: f64,
        choices: u32,
        tracking_bits: u32,
    ) -> Option<(Design, Prediction)> {
        let load = plain_load(target)?;
        // Threshold plus admission is one parameter: admission 1 equals
        // admission 0 at a threshold one higher.
        let at = |[cut, log_ratio]: [f64; 2]| {
            let threshold = cut.max(1.0).floor();
            let design = Design {
                level_shares: geometric(log_ratio.exp(), choices),
                threshold: threshold as u32,
                admission: cut.max(1.0) - threshold,
                tracking_bits,
            };
            self.fullest(load, target, most_reads, |_| Some(design.clone()))
        };
        let mut best: Option<(Design, Prediction)> = None;
        let mut place = [0.0; 2];
        let mut attempt = |candidate, place: &mut [f64; 2]| {
            let Some(found) = at(candidate) else { return false };
            let less = |(_, p): &(Design, Prediction)| {
                found.1.bits_per_key < p.bits_per_key
            };
            let better = best.as_ref().is_none_or(less);
            if better {
                (best, *place) = (Some(found), candidate);
            }
            better
        };
        let (from, to) = ((0.85 * load) as u32, (1.4 * load) as u32);
        for cut in from..=to {
            for step in 0..12 {
                let log_ratio = f64::from(step) * 0.4 - 6.0;
                attempt([f64::from(cut), log_ratio], &mut place);
            }
        }
        let mut step = [0.5, 0.2];
        while step[0] > 0.02 {
            let mut moved = false;
            for (cut, ratio) in
                [(1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1)]
            {
                let candidate = [
                    place[0] + f64::from(cut) * step[0],
                    place[1] + f64::from(ratio) * step[1],
                ];
                moved |= attempt(candidate, &mut place);
            }
            if !moved {
                step = step.map(|step| 0.5 * step);
            }
        }
        best
    }

    /// The paper's shares, threshold and admission, for the best of some
    /// access budgets, without a limit on the reads of absent keys.
    pub(crate) fn of_paper(
        &self,
        target: f64,
    ) -> Option<(Design, Prediction)> {
        let plain = plain_load(target)?;
        let mut best: Option<(Design, Prediction)> = None;
        for choices in 2..=4 {
            for access_budget in [1.02, 1.05, 1.1, 1.2, 1.3] {
                let design = |load| {
                    let (levels, bound) =
                        multilevel::optimal(access_budget, load, choices)
                            .ok()?;
                    Some(Design {
                        level_shares: levels.level_shares,
                        threshold: bound.threshold()?,
                        admission: bound.admission(),
                        tracking_bits: 0,
                    })
                };
                let Some(found) =
                    self.fullest(plain, target, f64::MAX, design)
                else {
                    continue;
                };
                let less = |(_, p): &(Design, Prediction)| {
                    found.1.bits_per_key < p.bits_per_key
                };
                if best.as_ref().is_none_or(less) {
                    best = Some(found);
                }
            }
        }
        best
    }
}

/// Keys per block of a filter with one level.
fn plain_load(target: f64) -> Option<f64> {
    let plain = tinyset::for_fpr(LINE, target).ok()?;
    Some(f64::from(LINE.block_bits) / plain.bits_per_key)
}

/// Shares that fall by the same ratio from level to level.
fn geometric(ratio: f64, choices: u32) -> Vec<f64> {
    let powers: Vec<f64> =
        (0..choices).map(|j| ratio.powf(f64::from(j))).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

/// Probabilities of 0, 1, 2, ... arrivals. The omitted tail is below 1e-16.
fn poisson(mean: f64) -> Vec<f64> {
    let mode = mean as usize;
    let len = mode + (9.0 * mean.sqrt()) as usize + 20;
    let mut chances = vec![0.0; len];
    // From the mode outwards, so that only negligible terms underflow.
    chances[mode] = 1.0;
    for n in mode + 1..len {
        chances[n] = chances[n - 1] * mean / n as f64;
    }
    for n in (0..mode).rev() {
        chances[n] = chances[n + 1] * (n + 1) as f64 / mean;
    }
    let sum: f64 = chances.iter().sum();
    chances.iter_mut().for_each(|chance| *chance /= sum);
    chances
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64) {
        assert!((got / want - 1.0).abs() < 1e-9, "{got} is not {want}");
    }

    #[test]
    fn one_level_is_a_tinyset() {
        let design = Design {
            level_shares: vec![1.0],
            threshold: 9,
            admission: 0.0,
            tracking_bits: 0,
        };
        let got = Model::new().predict(&design, 40.0);
        close(got.fpr, tinyset::predict(LINE, 40.0).unwrap().fpr);
        assert_eq!((got.reads_hit, got.reads_miss), (1.0, 1.0));
        assert_eq!(got.bits_per_key, 12.8);
    }

    /// The same levels in the theory of balanced placement.
    #[test]
    fn levels_are_those_of_the_theory() {
        let design = Design {
            level_shares: geometric(0.08, 3),
            threshold: 35,
            admission: 0.3,
            tracking_bits: 0,
        };
        let load = 34.0;
        let run =
            multilevel::run(load, &design.level_shares, 35, 0.3).unwrap();
        let model = Model::new();
        for level in &run.levels {
            let got = model.refusing(&design, level.arrivals);
            let rate = level.distribution.cost(|i| LINE.fpr(i as u32));
            close(got.refused, level.refused);
            close(got.rate, rate);
            let full = &level.distribution.as_slice()[35..];
            let on = full[0] * 0.7 * (1.0 - LINE.fpr(35))
                + full[1] * (1.0 - LINE.fpr(36));
            close(got.on, on);
        }
        // The last level absorbs all keys; its reads are the same.
        close(model.predict(&design, load).reads_hit, run.access_budget);
    }

    /// With 2^20 classes almost every refused key has a mark of its own.
    #[test]
    fn marks_are_fewer_than_refused_keys() {
        let model = Model::new();
        let with = |tracking_bits| {
            let design = Design {
                level_shares: geometric(0.05, 2),
                threshold: 40,
                admission: 0.5,
                tracking_bits,
            };
            model.refusing(&design, 40.0)
        };
        let on: Vec<f64> =
            [0, 1, 2, 3, 4, 8].map(|bits| with(bits).on).to_vec();
        assert!(on.windows(2).all(|pair| pair[0] > pair[1]), "{on:?}");
        let many = with(1 << 20);
        let marks = many.on * f64::from(1 << 20);
        let refused = many.refused * 40.0;
        // A coin admits some keys of a marked class.
        assert!(marks < refused && marks > 0.8 * refused);
    }

    #[test]
    fn designs_keep_their_promises() {
        let model = Model::new();
        let plain = tinyset::for_fpr(LINE, 1e-4).unwrap().bits_per_key;
        let (design, p) = model.best(1e-4, 1.25, 2, 4).unwrap();
        assert!(p.fpr <= 1e-4 && p.reads_miss <= 1.25);
        assert!(p.bits_per_key < plain - 0.8, "{}", p.bits_per_key);
        assert_eq!(design.level_shares.len(), 2);
        assert!((30..40).contains(&design.threshold));
        // More reads never cost memory.
        let (_, fewer) = model.best(1e-4, 1.06, 2, 4).unwrap();
        assert!(fewer.bits_per_key > p.bits_per_key);
        let (_, paper) = model.of_paper(1e-4).unwrap();
        assert!(paper.fpr <= 1e-4 && paper.reads_miss > 1.25);
    }
}
