//! Items passed on by a level of buckets of any size, by numerical inversion.
//!
//! The chance that a items in m buckets pass c on is a coefficient of the
//! power of a generating function ([`super::bucket`]), hence an integral over
//! two circles. Around the saddle point the integrand is nearly Gaussian, so
//! sums over about forty points of each circle give all digits. Three
//! techniques keep small chances accurate:
//!
//! * *tilting*: circles through the saddle point of c give the chances near c
//!   with an error relative to that of c, not to the largest of all. A ladder
//!   of tilts covers the distribution;
//! * *chunks*: the random number of arrivals is divided into ranges that
//!   share one radius;
//! * *arcs*: only the arc on which the integrand is not negligible is summed.
//!   If few buckets, or few that pass items on, keep the integrand from
//!   decaying, the whole circle is.
//!
//! Plain Fourier inversion loses every chance below 1e-16; the chance of a
//! crisis is often smaller.

mod circle;
mod rung;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use super::few;
use super::insert_only;
use super::pass::{CUT, Passed};
use crate::load::Load;
use rung::Rung;

pub(super) use circle::{Circle, log_over_power};

/// The rounding error grows with the number of buckets, and as e^(s^2/2) with
/// each size s of a grain.
const FINE: Grain = Grain { chunk: 1.5, rung: 3.5 };
const COARSE: Grain = Grain { chunk: 2.5, rung: 5.0 };
/// Fewest buckets that need the fine grain.
const MANY_BUCKETS: f64 = 20_000.0;
/// Steps below this are not halved further.
const MIN_STEP: f64 = 1e-7;
const MAX_RUNGS: usize = 300;
/// Most free entries, on average, of a level that counts as full.
const ROOM: f64 = 1e-12;

/// The items passed on by a level of `buckets` buckets of `bucket` entries.
pub(super) fn pass(arrivals: &Load, buckets: u64, bucket: u32) -> Passed {
    let level = Level { buckets: buckets as f64, bucket };
    if let Some(certain) = level.certain(arrivals) {
        return certain;
    }
    let mut passed = Passed::zeros(0, 0);
    let mut first = 0;
    let few = few::most(bucket).min(arrivals.max());
    if arrivals.first <= few {
        let laws = few::laws(few, buckets, bucket);
        let all = (arrivals.first..).zip(&arrivals.chance);
        for ((a, chance), law) in all.zip(&laws[arrivals.first..]) {
            let weighed = |p: &f64| [p * chance, p * chance * a as f64];
            let values: Vec<[f64; 2]> = law.iter().map(weighed).collect();
            passed.add_patch(0, &values);
            first += 1;
        }
    }
    while first < arrivals.chance.len() {
        let start = (arrivals.first + first) as f64;
        let width =
            (2.0 * level.grain().chunk * libm::sqrt(start)) as usize + 1;
        let end = (first + width).min(arrivals.chance.len());
        let chunk = Chunk {
            level,
            first: arrivals.first + first,
            chance: &arrivals.chance[first..end],
        };
        for patch in chunk.ladder() {
            passed.add_patch(patch.first, &patch.values);
        }
        first = end;
    }
    passed.trimmed()
}

/// Sizes of chunks and rungs.
#[derive(Clone, Copy)]
struct Grain {
    /// Half a chunk of arrivals, in standard deviations of the arrivals at
    /// one radius.
    chunk: f64,
    /// Distance of tilts, in standard deviations of the items passed on.
    rung: f64,
}

#[derive(Clone, Copy)]
struct Level {
    buckets: f64,
    bucket: u32,
}

impl Level {
    fn grain(self) -> Grain {
        if self.buckets < MANY_BUCKETS { COARSE } else { FINE }
    }

    /// The result for a level that is full with near certainty.
    fn certain(self, arrivals: &Load) -> Option<Passed> {
        let h = f64::from(self.bucket);
        let mean = arrivals.first as f64 / self.buckets;
        let room = h - mean * (1.0 - insert_only(self.bucket, mean));
        if mean <= h || room * self.buckets >= ROOM {
            return None;
        }
        let kept = (self.buckets * h) as usize;
        let len = arrivals.chance.len();
        let mut passed = Passed::zeros(arrivals.first - kept, len);
        for (a, chance) in (arrivals.first..).zip(&arrivals.chance) {
            passed.add(a - kept, &[1.0], *chance, a);
        }
        Some(passed)
    }
}

/// A range of arrivals that share one radius.
struct Chunk<'a> {
    level: Level,
    first: usize,
    chance: &'a [f64],
}

/// A tilt and the range of values it covers.
#[derive(Clone, Copy)]
struct Frame {
    tilt: f64,
    /// The chance of c is at most e^(`log_scale` - `tilt` c).
    log_scale: f64,
    first: usize,
    last: usize,
}

/// The chances of a range of values, from one tilt.
struct Patch {
    frame: Frame,
    first: usize,
    /// P(L_j = c) and E(L_(j-1); L_j = c).
    values: Vec<[f64; 2]>,
}

impl Chunk<'_> {
    /// Patches that do not overlap, in increasing order of values.
    fn ladder(&self) -> Vec<Patch> {
        let mut patches = self.climb(-1.0);
        // Both directions start from the same rung.
        patches.reverse();
        patches.pop();
        patches.extend(self.climb(1.0));
        let mut least = 0;
        for i in 1..patches.len() {
            let seam = patches[i - 1].frame.seam(&patches[i].frame);
            // A value on the seam belongs to the smaller tilt, which is more
            // accurate.
            let seam = if patches[i].frame.tilt > 0.0 {
                libm::floor(seam + 1e-6) + 1.0
            } else {
                libm::ceil(seam - 1e-6)
            };
            // Rounding may swap nearly equal seams.
            let seam = (seam.max(0.0) as usize).max(least);
            least = seam;
            patches[i - 1].cut_from(seam);
            patches[i].cut_to(seam);
        }
        patches
    }

    /// Patches of tilts in one direction, until the chances are negligible.
    fn climb(&self, direction: f64) -> Vec<Patch> {
        let room = self.level.buckets * f64::from(self.level.bucket);
        let least = (self.first as f64 - room).max(0.0);
        let mut rung = Rung::new(self, 0.0, self.arrivals());
        let mut patches = alloc::vec![rung.patch()];
        let mut step = rung.step();
        // Terminates on non-finite numbers too; about 12 rungs are typical.
        for _ in 0..MAX_RUNGS {
            // A rung this near the least value covers all values below.
            if direction < 0.0 && rung.centre < least + 0.3 {
                break;
            }
            let tilt = rung.tilt + direction * step;
            let next = Rung::new(self, tilt, rung.x);
            let (last, frame) = (rung.frame(), next.frame());
            let seam = frame.seam(&last);
            if step > MIN_STEP && !(last.covers(seam) && frame.covers(seam)) {
                step *= 0.5;
                continue;
            }
            let end = frame.bound(seam) < libm::log(CUT);
            patches.push(next.patch());
            if end {
                break;
            }
            step = next.step();
            rung = next;
        }
        patches
    }

    /// Mean arrivals per bucket, in the middle of the chunk.
    fn arrivals(&self) -> f64 {
        let half = 0.5 * (self.chance.len() - 1) as f64;
        (self.first as f64 + half) / self.level.buckets
    }
}

impl Frame {
    /// The value at which both tilts give the same bound, hence the same
    /// rounding error.
    fn seam(&self, other: &Self) -> f64 {
        (self.log_scale - other.log_scale) / (self.tilt - other.tilt)
    }

    /// ln of a bound on the chance of any value beyond `value`.
    fn bound(&self, value: f64) -> f64 {
        self.log_scale - self.tilt * value - self.tilt.abs()
    }

    fn covers(&self, value: f64) -> bool {
        value < self.last as f64
            && (self.first == 0 || value >= self.first as f64)
    }
}

impl Patch {
    fn cut_from(&mut self, end: usize) {
        self.values.truncate(end.saturating_sub(self.first));
    }

    fn cut_to(&mut self, start: usize) {
        let drop = start.saturating_sub(self.first).min(self.values.len());
        self.values.drain(..drop);
        self.first += drop;
    }
}
