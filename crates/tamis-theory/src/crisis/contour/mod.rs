//! What a level of buckets of any size passes on, by numerical inversion.
//!
//! The chance that a items in m buckets pass c on is a coefficient of the
//! power of a generating function ([`super::bucket`]), and a coefficient is
//! an integral over two circles. Seen from the saddle point the integrand is
//! nearly Gaussian, so that sums over some forty points of each circle give
//! all digits. Three devices keep the small chances accurate:
//!
//! * *tilting*: circles through a saddle point at c give the chances near c
//!   relative to the one of c, not to the largest of all. A ladder of tilts
//!   covers the law;
//! * *chunks*: the number of arrivals is random too, and is treated in
//!   pieces that one radius serves;
//! * only the arc on which the integrand is not negligible is summed, and
//!   the whole circle where few buckets, or few that pass anything on, keep
//!   it from falling.
//!
//! The plain Fourier inversion would lose every chance below 1e-16, and a
//! crisis is often one of those.

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

/// Rounding grows with the number of buckets, and with the exponential of
/// half the square of both numbers of a grain.
const FINE: Grain = Grain { chunk: 1.5, rung: 3.5 };
const COARSE: Grain = Grain { chunk: 2.5, rung: 5.0 };
/// From so many buckets on the fine grain is needed.
const MANY_BUCKETS: f64 = 20_000.0;
/// Smaller steps are taken as they are.
const MIN_STEP: f64 = 1e-7;
const MAX_RUNGS: usize = 300;
/// Entries left free on average in a level that counts as full.
const ROOM: f64 = 1e-12;

/// What a level passes on.
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

/// How finely a law is cut.
#[derive(Clone, Copy)]
struct Grain {
    /// Half a chunk of arrivals, in deviations of those that one radius
    /// stands for.
    chunk: f64,
    /// From one tilt to the next, in deviations of what is passed on.
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

    /// So many arrivals that no bucket is likely to have room left.
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

/// Arrivals that one radius serves.
struct Chunk<'a> {
    level: Level,
    first: usize,
    chance: &'a [f64],
}

/// A tilt and the values it serves.
#[derive(Clone, Copy)]
struct Frame {
    tilt: f64,
    /// With the tilt, a bound on the chances: e^(log_scale - tilt c).
    log_scale: f64,
    first: usize,
    last: usize,
}

/// The chances of some values, from one tilt.
struct Patch {
    frame: Frame,
    first: usize,
    /// P(L_j = c) and E(L_(j-1); L_j = c).
    values: Vec<[f64; 2]>,
}

impl Chunk<'_> {
    /// Patches that do not overlap, from the smallest value on.
    fn ladder(&self) -> Vec<Patch> {
        let mut patches = self.climb(-1.0);
        // Both directions start from the same rung.
        patches.reverse();
        patches.pop();
        patches.extend(self.climb(1.0));
        let mut least = 0;
        for i in 1..patches.len() {
            let seam = patches[i - 1].frame.seam(&patches[i].frame);
            // A value on the seam is better off with the smaller tilt.
            let seam = if patches[i].frame.tilt > 0.0 {
                libm::floor(seam + 1e-6) + 1.0
            } else {
                libm::ceil(seam - 1e-6)
            };
            // Rounding may exchange seams that are nearly the same.
            let seam = (seam.max(0.0) as usize).max(least);
            least = seam;
            patches[i - 1].cut_from(seam);
            patches[i].cut_to(seam);
        }
        patches
    }

    /// Tilts in one direction until the chances are negligible.
    fn climb(&self, direction: f64) -> Vec<Patch> {
        let room = self.level.buckets * f64::from(self.level.bucket);
        let least = (self.first as f64 - room).max(0.0);
        let mut rung = Rung::new(self, 0.0, self.arrivals());
        let mut patches = alloc::vec![rung.patch()];
        let mut step = rung.step();
        // A bound for numbers out of range; a dozen is usual.
        for _ in 0..MAX_RUNGS {
            // So near the least it can be, this rung has all below.
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

    /// Of each bucket, in the middle of the chunk.
    fn arrivals(&self) -> f64 {
        let half = 0.5 * (self.chance.len() - 1) as f64;
        (self.first as f64 + half) / self.level.buckets
    }
}

impl Frame {
    /// Where both tilts bound the chances equally, and so round equally.
    fn seam(&self, other: &Self) -> f64 {
        (self.log_scale - other.log_scale) / (self.tilt - other.tilt)
    }

    /// ln of a bound on the chance of any value beyond this one.
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
