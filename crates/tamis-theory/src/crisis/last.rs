//! The last level, whose overflow is a crisis.

use super::ITEM_BY_ITEM;
use super::bucket::Series;
use super::complex::Complex;
use super::contour::{Circle, log_over_power};
use super::fluid::excess;
use crate::load::Load;

/// The chance that a last level with these arrivals overflows, and the mean
/// number of items without room.
pub(super) fn crisis(
    arrivals: &Load,
    buckets: u64,
    bucket: u32,
) -> (f64, f64) {
    let (mut crisis, mut left) = (0.0, 0.0);
    let mut single = Single::new(buckets);
    for (items, &weight) in (arrivals.first..).zip(&arrivals.chance) {
        let chance = if bucket == 1 && items <= ITEM_BY_ITEM {
            single.collides(items)
        } else {
            overflows(items, buckets, bucket)
        };
        crisis += weight * chance;
        left += weight * mean_excess(items, buckets, bucket);
    }
    (crisis.clamp(0.0, 1.0), left)
}

/// Buckets of one entry: all items must be in different ones.
struct Single {
    buckets: f64,
    items: usize,
    log_all_differ: f64,
}

impl Single {
    fn new(buckets: u64) -> Self {
        Single { buckets: buckets as f64, items: 0, log_all_differ: 0.0 }
    }

    /// The chance that two items share a bucket. Calls must have increasing
    /// numbers of items.
    fn collides(&mut self, items: usize) -> f64 {
        while self.items < items {
            let taken = self.items as f64 / self.buckets;
            self.log_all_differ += libm::log1p(-taken.min(1.0));
            self.items += 1;
        }
        -libm::expm1(self.log_all_differ)
    }
}

/// The mean number of `items` without room in `buckets`: exact, by the
/// binomial distribution of one bucket.
pub(super) fn mean_excess(items: usize, buckets: u64, bucket: u32) -> f64 {
    let (n, m) = (items as f64, buckets as f64);
    let h = f64::from(bucket);
    if buckets == 1 || n <= h {
        return (n - h).max(0.0);
    }
    let log_chance = |i: f64| {
        let choose = libm::lgamma(n + 1.0)
            - libm::lgamma(i + 1.0)
            - libm::lgamma(n - i + 1.0);
        choose - i * libm::log(m) + (n - i) * libm::log1p(-1.0 / m)
    };
    let up = |i: f64| (n - i) / ((i + 1.0) * (m - 1.0));
    m * excess(h, n / m, log_chance, up)
}

/// The chance that one of `buckets` of `bucket` entries overflows.
///
/// a! m^-a \[x^a\] (e^(mx) - T(x)^m), where T is e^x cut after x^h. The form
/// e^(mx) (1 - (1-Q)^m), with Q the tail of the exponential, avoids
/// cancellation.
fn overflows(items: usize, buckets: u64, bucket: u32) -> f64 {
    let (n, m, h) = (items as f64, buckets as f64, f64::from(bucket));
    if n <= h {
        return 0.0;
    }
    if n > m * h {
        return 1.0;
    }
    let x = saddle(n, m, bucket);
    // Aliased coefficients, `points` apart, are negligible beside the
    // smallest relevant ones.
    let points = 18.0 * libm::sqrt(n) + 120.0;
    let circle = Circle::new(points, m * x);
    let series = Series::new(x, 1.0, bucket);
    let mut sum = 0.0;
    for j in circle.around(0.0) {
        let angle = circle.angle(j);
        // ln of e^(mx) x^-a, relative to its value on the positive axis.
        let half = libm::sin(0.5 * angle);
        let power = Complex {
            re: -2.0 * m * x * half * half,
            im: m * x * libm::sin(angle) - n * angle,
        };
        let factor = overflow_factor(&series, (x, angle), m);
        sum += (power.exp() * factor).re;
    }
    let scale = log_over_power(items, m, x) + m * x;
    (libm::exp(scale) * sum / circle.points()).clamp(0.0, 1.0)
}

/// 1-(1-Q)^m.
fn overflow_factor(
    series: &Series,
    (radius, angle): (f64, f64),
    buckets: f64,
) -> Complex {
    let x = Complex::polar(radius, angle);
    let parts = series.parts(x, angle, Complex::real(1.0));
    // Not divided by the sum of both parts, which equals e^x but cancels
    // where the real part is negative.
    let power = Complex { re: series.log_scale - x.re, im: -x.im };
    let tail = parts.overflows * power.exp();
    let log = tail.scale(-1.0).ln_1p();
    log.scale(buckets).exp_m1().scale(-1.0)
}

/// The saddle point: the x that minimises e^(mx) (1-(1-Q)^m) x^-n, where m x
/// plus the logarithmic derivative of the factor equals n.
fn saddle(items: f64, buckets: f64, bucket: u32) -> f64 {
    let factor = |x: f64| {
        let series = Series::new(x, 1.0, bucket);
        overflow_factor(&series, (x, 0.0), buckets).re
    };
    let exponent = |x: f64| {
        // A finite difference: the saddle need not be exact.
        let step = 1e-4;
        let (one, two) = (factor(x), factor(x * (1.0 + step)));
        if one > 0.0 { (two / one - 1.0) / step } else { 0.0 }
    };
    let (mut low, mut high) = (0.0, items / buckets);
    for _ in 0..30 {
        let x = 0.5 * (low + high);
        if buckets * x + exponent(x) > items {
            high = x;
        } else {
            low = x;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contour_matches_the_birthday_probability() {
        for (items, buckets) in [(2, 365), (23, 365), (70, 365), (500, 9000)] {
            let product = Single::new(buckets).collides(items);
            let contour = overflows(items, buckets, 1);
            let ratio = contour / product - 1.0;
            assert!(ratio.abs() < 1e-11, "{items} {buckets}: {ratio}");
        }
    }

    #[test]
    fn rare_overflows_have_relative_accuracy() {
        // Either of two buckets overflows: 2 P(Bin(70, 1/2) >= 65).
        let chance = |i: i32| {
            let steps = (1..=i).map(|j| f64::from(71 - j) / f64::from(j));
            steps.product::<f64>() * 0.5f64.powi(70)
        };
        let expected = 2.0 * (65..=70).map(chance).sum::<f64>();
        let ratio = overflows(70, 2, 64) / expected - 1.0;
        assert!(ratio.abs() < 1e-9, "{ratio}");
    }
}
