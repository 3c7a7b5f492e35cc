//! Equally spaced points on a circle around zero.

use core::f64::consts::PI;
use core::ops::RangeInclusive;

/// Standard deviations beyond which an integrand is negligible.
pub(super) const ARC: f64 = 8.8;
/// Circles of at most `WHOLE` points are summed whole.
const WHOLE: i64 = 256;

/// Equally spaced points on a circle, and the arc that is summed.
pub(in crate::crisis) struct Circle {
    pub(super) n: i64,
    /// Half the arc, in points.
    arc: i64,
}

impl Circle {
    /// A circle of at least `points` points, for an integrand that decays as
    /// e^(-2 variance sin^2(angle/2)).
    pub(in crate::crisis) fn new(points: f64, variance: f64) -> Self {
        let n = libm::ceil(points) as i64;
        let sin = 0.5 * ARC / libm::sqrt(variance.max(1e-300));
        // The integrand of few items has further peaks.
        let sin = if n <= WHOLE { 1.0 } else { sin.min(1.0) };
        let angle = 2.0 * libm::asin(sin);
        let arc = libm::ceil(angle / (2.0 * PI) * n as f64);
        Circle { n, arc: arc as i64 }
    }

    pub(super) fn whole(self) -> Self {
        Circle { arc: self.n, ..self }
    }

    pub(in crate::crisis) fn points(&self) -> f64 {
        self.n as f64
    }

    pub(in crate::crisis) fn angle(&self, j: i64) -> f64 {
        2.0 * PI * j as f64 / self.points()
    }

    /// The points of the arc around an angle.
    pub(in crate::crisis) fn around(&self, angle: f64) -> RangeInclusive<i64> {
        let middle = libm::round(angle / (2.0 * PI) * self.points()) as i64;
        if 2 * self.arc + 1 >= self.n {
            // All points, once.
            let first = middle - self.n / 2;
            first..=first + self.n - 1
        } else {
            middle - self.arc..=middle + self.arc
        }
    }

    /// The points from the arc around `from` to the arc around `to`, each
    /// once.
    pub(super) fn between(&self, [from, to]: [f64; 2]) -> RangeInclusive<i64> {
        let start = *self.around(from).start();
        let end = *self.around(to).end();
        start..=end.min(start + self.n - 1)
    }

    /// The upper half of the arc around 0; the lower half is its conjugate.
    pub(super) fn half(&self) -> RangeInclusive<i64> {
        0..=self.arc.min(self.n / 2)
    }
}

/// ln(a! / (m x)^a), by Stirling's series so that large terms do not cancel.
pub(in crate::crisis) fn log_over_power(a: usize, m: f64, x: f64) -> f64 {
    if a == 0 {
        return 0.0;
    }
    let n = a as f64;
    let stirling = if a < 30 {
        libm::lgamma(n + 1.0) - n * libm::log(n) + n
    } else {
        let square = n * n;
        0.5 * libm::log(2.0 * PI * n)
            + (1.0 - (1.0 - 2.0 / (7.0 * square)) / (30.0 * square))
                / (12.0 * n)
    };
    stirling + n * libm::log(n / (m * x)) - n
}
