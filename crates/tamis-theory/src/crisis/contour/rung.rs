//! Inversion of the generating function at one tilt.

use alloc::vec::Vec;

use super::super::bucket::{Moments, Series};
use super::super::complex::Complex;
use super::circle::{ARC, Circle, log_over_power};
use super::{Chunk, Frame, Level, Patch};

/// The largest step of ln y, which multiplies the items passed on by at most
/// about e^`MAX_STEP`.
const MAX_STEP: f64 = 6.0;

/// One tilt: circles of radius `x` and e^`tilt`.
pub(super) struct Rung<'a> {
    chunk: &'a Chunk<'a>,
    pub(super) tilt: f64,
    pub(super) x: f64,
    moments: Moments,
    /// Mean of the items passed on.
    pub(super) centre: f64,
    /// Standard deviation of the items passed on.
    deviation: f64,
    /// The mean given the middle number of arrivals of the chunk.
    given_centre: f64,
    /// The deviation given the middle number of arrivals of the chunk.
    given_deviation: f64,
    /// Half the range of the mean over the arrivals of the chunk.
    spread: f64,
    /// ln of the largest weight of the arrivals.
    log_scale: f64,
    /// Weights of the arrivals, relative to the largest.
    weights: Vec<f64>,
}

impl<'a> Rung<'a> {
    /// Searches x from `near`, the x of another tilt.
    pub(super) fn new(chunk: &'a Chunk<'a>, tilt: f64, near: f64) -> Self {
        let Level { buckets: m, bucket } = chunk.level;
        let y = libm::exp(tilt);
        let arrivals = chunk.arrivals();
        let (x, moments) = Moments::with_arrivals(arrivals, near, y, bucket);
        let logs: Vec<f64> = (chunk.first..)
            .zip(chunk.chance)
            .map(|(a, chance)| {
                libm::log(*chance) + log_over_power(a, m, x) + m * moments.log
            })
            .collect();
        let log_scale = logs.iter().copied().fold(f64::MIN, f64::max);
        let weights: Vec<f64> =
            logs.iter().map(|log| libm::exp(log - log_scale)).collect();
        let half = 0.5 * (chunk.chance.len() - 1) as f64;
        let (offset, variance) =
            spread_of(&weights, m * moments.arrivals_variance);
        let slope = moments.slope();
        let given_variance = m * moments.conditional_variance();
        let variance = given_variance + slope * slope * variance;
        Rung {
            chunk,
            tilt,
            x,
            moments,
            centre: m * moments.passed + slope * offset,
            deviation: libm::sqrt(variance),
            given_centre: m * moments.passed,
            given_deviation: libm::sqrt(given_variance),
            spread: half * slope.abs(),
            log_scale,
            weights,
        }
    }

    /// Whether the chance that all buckets are of one kind, with this share,
    /// is not negligible. The integrand then decays to a plateau instead of
    /// zero.
    fn plateau(&self, (share, _): (f64, f64)) -> bool {
        let log = self.chunk.level.buckets * libm::log(share.max(1e-300));
        log > -0.5 * ARC * ARC
    }

    fn clumps(&self) -> bool {
        self.plateau(self.moments.fits) || self.plateau(self.moments.overflows)
    }

    /// The Gaussian width, wider for sums of few terms with longer tails.
    fn margin(&self, gaussian: f64) -> f64 {
        if self.clumps() { 1.5 * gaussian } else { gaussian }
    }

    fn rung(&self) -> f64 {
        self.chunk.level.grain().rung
    }

    /// Distance to the next tilt.
    pub(super) fn step(&self) -> f64 {
        (self.rung() / self.deviation.max(1e-9)).min(MAX_STEP)
    }

    /// Half width of the frame.
    fn reach(&self) -> f64 {
        self.rung() * self.deviation + 6.0
    }

    pub(super) fn frame(&self) -> Frame {
        Frame {
            tilt: self.tilt,
            log_scale: self.log_scale,
            first: libm::floor(self.centre - self.reach()).max(0.0) as usize,
            last: libm::ceil(self.centre + self.reach()) as usize,
        }
    }

    /// The circle of y, with enough points to prevent aliasing.
    fn circle(&self) -> Circle {
        let beyond = ARC * self.given_deviation + self.spread + 25.0;
        let apart = (self.centre - self.given_centre).abs();
        let points = self.reach() + self.margin(beyond) + apart;
        let variance = self.given_deviation * self.given_deviation;
        let circle = Circle::new(points, variance);
        if self.clumps() { circle.whole() } else { circle }
    }

    pub(super) fn patch(&self) -> Patch {
        let frame = self.frame();
        let circle = self.circle();
        let table = Table::new(self, circle.angle(*circle.half().end()));
        let middle = libm::round(self.centre);
        let mut values = alloc::vec![[0.0; 2]; frame.last - frame.first + 1];
        for k in circle.half() {
            let angle = circle.angle(k);
            let line = self.line(&table, angle, middle);
            // Conjugate points occur in pairs, except angles 0 and pi.
            let once = k == 0 || 2 * k == circle.n;
            let pairs = if once { 1.0 } else { 2.0 };
            let start = frame.first as f64 - middle;
            let mut turn = Complex::polar(pairs, -angle * start);
            let step = Complex::polar(1.0, -angle);
            for sums in &mut values {
                for (sum, part) in sums.iter_mut().zip(line) {
                    *sum += part.re * turn.re - part.im * turn.im;
                }
                turn = turn * step;
            }
        }
        for (c, sums) in (frame.first..).zip(&mut values) {
            let log = self.log_scale - self.tilt * c as f64;
            let scale = libm::exp(log) / circle.points();
            // Negligible chances may be negative by rounding.
            *sums = sums.map(|sum| (sum * scale).max(0.0));
        }
        Patch { frame, first: frame.first, values }
    }

    /// The integral over x for one y: of the chance, and of the chance times
    /// the arrivals.
    fn line(&self, table: &Table, angle: f64, middle: f64) -> [Complex; 2] {
        let Level { buckets: m, bucket } = self.chunk.level;
        let radius = libm::exp(self.tilt);
        let y = Complex::polar(radius, angle);
        let series = Series::new(self.x, radius, bucket);
        let start = self.chunk.first as f64;
        let mut sums = [Complex::ZERO; 2];
        for (turn, kernels) in table.around(angle) {
            let at = Complex::polar(self.x, turn);
            let parts = series.parts(at, turn, y);
            let mut log = (parts.fits + parts.overflows).ln();
            log.re += series.log_scale - self.moments.log;
            let mut power = log.scale(m);
            power.im -= start * turn + middle * angle;
            let value = power.exp();
            for (sum, kernel) in sums.iter_mut().zip(kernels) {
                *sum += value * *kernel;
            }
        }
        sums.map(|sum| sum.scale(1.0 / table.circle.points()))
    }

    /// Sum over the arrivals of their weight, and of their number times
    /// their weight, at one point of the circle of x.
    fn kernel(&self, angle: f64) -> [Complex; 2] {
        let step = Complex::polar(1.0, -angle);
        let mut turn = Complex::real(1.0);
        let mut sums = [Complex::ZERO; 2];
        for (a, weight) in (self.chunk.first..).zip(&self.weights) {
            let part = turn.scale(*weight);
            sums[0] += part;
            sums[1] += part.scale(a as f64);
            turn = turn * step;
        }
        sums
    }
}

/// Mean, relative to the middle, and variance of the arrivals, with these
/// weights times a Gaussian of the given variance around the middle.
fn spread_of(weights: &[f64], variance: f64) -> (f64, f64) {
    let middle = 0.5 * (weights.len() - 1) as f64;
    let mut sums = [0.0; 3];
    for (i, weight) in weights.iter().enumerate() {
        let offset = i as f64 - middle;
        let here = weight * libm::exp(-0.5 * offset * offset / variance);
        for (sum, value) in sums.iter_mut().zip([1.0, offset, offset * offset])
        {
            *sum += here * value;
        }
    }
    let mean = sums[1] / sums[0];
    (mean, (sums[2] / sums[0] - mean * mean).max(0.0))
}

/// Kernels (sums over the arrivals) at the points of the circle of x.
struct Table {
    circle: Circle,
    /// Derivatives of the two ends of the arc by the angle of y.
    slopes: [f64; 2],
    first: i64,
    kernels: Vec<[Complex; 2]>,
}

impl Table {
    /// Kernels for all angles of y up to `last_angle`.
    fn new(rung: &Rung<'_>, last_angle: f64) -> Self {
        let m = rung.chunk.level.buckets;
        let moments = &rung.moments;
        let mut variance = m * moments.arrivals_variance;
        let margin = rung.margin(ARC * libm::sqrt(variance) + 40.0);
        let points = rung.weights.len() as f64 + margin;
        // Buckets that pass nothing on do not depend on y, those that pass
        // all further arrivals on depend on the product of x and y only.
        let mut slopes = [-moments.slope(); 2];
        if rung.plateau(moments.overflows) {
            slopes[0] = -1.0;
            variance = variance.min(m * moments.overflows.1);
        }
        if rung.plateau(moments.fits) {
            slopes[1] = 0.0;
            variance = variance.min(m * moments.fits.1);
        }
        let circle = Circle::new(points, variance);
        let first = *circle.between(slopes.map(|s| s * last_angle)).start();
        let first = first.min(*circle.around(0.0).start());
        let end = circle.between([0.0; 2]);
        let kernels = (first..=*end.end())
            .map(|j| rung.kernel(circle.angle(j)))
            .collect();
        Table { circle, slopes, first, kernels }
    }

    fn around(
        &self,
        angle: f64,
    ) -> impl Iterator<Item = (f64, &[Complex; 2])> {
        let arc = self.circle.between(self.slopes.map(|s| s * angle));
        let skip = (arc.start() - self.first) as usize;
        let angles = arc.map(|j| self.circle.angle(j));
        angles.zip(self.kernels.iter().skip(skip))
    }
}
