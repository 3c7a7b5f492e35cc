//! The generating function of one bucket.
//!
//! With i arrivals a bucket of h entries passes (i-h)^+ on, so
//!
//! B(x, y) = sum over i of x^i/i! y^((i-h)^+)
//!
//! is its generating function, and B^m that of a level: a items in m buckets
//! pass c on with chance a! m^-a \[x^a y^c\] B(x, y)^m.

use super::complex::Complex;

/// Relative size of a term that ends the series.
const NEGLIGIBLE: f64 = 1e-18;

/// Start and scale of the series of B: the largest term is about 1, and
/// negligible terms at the start are skipped.
#[derive(Clone, Copy)]
pub(super) struct Series {
    bucket: u32,
    first: f64,
    /// ln of the largest term.
    pub(super) log_scale: f64,
    /// ln of the first term, relative to the largest.
    log_first: f64,
}

impl Series {
    pub(super) fn new(x: f64, y: f64, bucket: u32) -> Self {
        let h = f64::from(bucket);
        let log_term = |i: f64| {
            let beyond = (i - h).max(0.0) * libm::log(y);
            i * libm::log(x) - libm::lgamma(i + 1.0) + beyond
        };
        let top = libm::floor((x * y).max(h));
        let low = log_term(libm::floor(x.min(h)));
        let log_scale = low.max(log_term(top));
        let mut first = 0.0;
        while first < top && log_term(first) < log_scale - 80.0 {
            first += 1.0;
        }
        let log_first = log_term(first) - log_scale;
        Series { bucket, first, log_scale, log_first }
    }

    /// The two parts of B at `x` and `y`, which have the absolute values
    /// given to [`Series::new`], scaled by e^-`log_scale`.
    pub(super) fn parts(&self, x: Complex, angle: f64, y: Complex) -> Parts {
        let mut term =
            Complex::polar(libm::exp(self.log_first), angle * self.first);
        let h = f64::from(self.bucket);
        let mut i = self.first;
        let (mut fits, mut overflows) = (term, Complex::ZERO);
        if i > h {
            core::mem::swap(&mut fits, &mut overflows);
            // The phase of y^(i-h); its size is in `log_first`.
            let turn = libm::atan2(y.im, y.re) * (i - h);
            overflows = overflows * Complex::polar(1.0, turn);
            term = overflows;
        }
        while i < h {
            i += 1.0;
            term = (term * x).scale(1.0 / i);
            fits += term;
        }
        let product = x * y;
        let size = product.abs();
        let mut largest = 0.0f64;
        loop {
            i += 1.0;
            term = (term * product).scale(1.0 / i);
            overflows += term;
            let now = term.re.abs() + term.im.abs();
            largest = largest.max(now);
            // An infinity or a NaN ends the series too.
            let matters = now > NEGLIGIBLE * largest;
            if i > size && !matters {
                return Parts { fits, overflows };
            }
        }
    }
}

/// The terms of buckets that pass nothing on, and of those that do.
pub(super) struct Parts {
    pub(super) fits: Complex,
    pub(super) overflows: Complex,
}

/// Moments of the distribution with weights x^i/i! y^((i-h)^+), for positive
/// x and y: means, variances and covariance of the arrivals and of the items
/// passed on.
#[derive(Clone, Copy)]
pub(super) struct Moments {
    /// ln B.
    pub(super) log: f64,
    pub(super) arrivals: f64,
    pub(super) passed: f64,
    pub(super) arrivals_variance: f64,
    pub(super) passed_variance: f64,
    pub(super) covariance: f64,
    /// Share of the buckets that pass nothing on, and variance of their
    /// arrivals.
    pub(super) fits: (f64, f64),
    /// The same for the buckets that pass items on.
    pub(super) overflows: (f64, f64),
}

impl Moments {
    pub(super) fn new(x: f64, y: f64, bucket: u32) -> Self {
        let series = Series::new(x, y, bucket);
        let h = f64::from(bucket);
        let mut term = libm::exp(series.log_first);
        // Moments of i - h, which lose fewer digits than moments of i.
        let mut sums = [0.0; 6];
        let mut fits = [0.0; 3];
        let mut i = series.first;
        loop {
            let (a, c) = (i - h, (i - h).max(0.0));
            let values = [1.0, a, c, a * a, c * c, a * c];
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += term * value;
            }
            if i <= h {
                for (sum, value) in fits.iter_mut().zip([1.0, a, a * a]) {
                    *sum += term * value;
                }
            }
            i += 1.0;
            term *= x / i * if i > h { y } else { 1.0 };
            let next = i - h;
            let matters = term * next * next > NEGLIGIBLE * sums[0];
            if next > 0.0 && i > x * y && !matters {
                break;
            }
        }
        let [total, a, c, aa, cc, ac] = sums;
        let (a, c) = (a / total, c / total);
        Moments {
            log: libm::log(total) + series.log_scale,
            arrivals: a + h,
            passed: c,
            arrivals_variance: variance([total, sums[1], aa]),
            passed_variance: variance([total, sums[2], cc]),
            covariance: ac / total - a * c,
            fits: (fits[0] / total, variance(fits)),
            // Beyond h, the items passed on are the arrivals less h.
            overflows: (
                1.0 - fits[0] / total,
                variance([total - fits[0], c * total, cc]),
            ),
        }
    }

    /// The x at which the mean is `arrivals`, searched from `start`.
    pub(super) fn with_arrivals(
        arrivals: f64,
        start: f64,
        y: f64,
        bucket: u32,
    ) -> (f64, Self) {
        let mut log = libm::log(start);
        let mut here = Self::new(start, y, bucket);
        let (mut low, mut high) = (f64::MIN, f64::MAX);
        for _ in 0..200 {
            let gap = arrivals - here.arrivals;
            if gap.abs() <= 1e-9 * arrivals {
                break;
            }
            if gap > 0.0 {
                low = log;
            } else {
                high = log;
            }
            // The derivative of the mean by ln x is the variance. The step
            // is limited, because with a strong tilt the mean jumps.
            let step = gap / here.arrivals_variance.max(1e-12);
            let next = log + step.clamp(-1.0, 1.0);
            let within = next > low && next < high;
            log = if within { next } else { 0.5 * (low + high) };
            here = Self::new(libm::exp(log), y, bucket);
        }
        (libm::exp(log), here)
    }

    /// Variance of the items passed on, given the number of arrivals.
    pub(super) fn conditional_variance(&self) -> f64 {
        let explained = self.covariance * self.slope();
        (self.passed_variance - explained).max(0.0)
    }

    /// Additional items passed on per additional arrival.
    pub(super) fn slope(&self) -> f64 {
        self.covariance / self.arrivals_variance.max(1e-300)
    }
}

/// Variance from the sums of weights, of values and of their squares.
fn variance([total, sum, squares]: [f64; 3]) -> f64 {
    let mean = sum / total.max(f64::MIN_POSITIVE);
    (squares / total.max(f64::MIN_POSITIVE) - mean * mean).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_exponential_without_tilt() {
        for (x, bucket) in [(0.5, 1), (62.0, 64), (1100.0, 1024)] {
            let one = Moments::new(x, 1.0, bucket);
            assert!((one.log - x).abs() < 1e-13 * x.max(1.0));
            assert!((one.arrivals - x).abs() < 1e-12 * x);
            assert!((one.arrivals_variance - x).abs() < 1e-9 * x);
            let excess = super::super::insert_only(bucket, x) * x;
            assert!((one.passed - excess).abs() < 1e-10 * x);
            let angle = 0.3 / x;
            let at = Complex::polar(x, angle);
            let series = Series::new(x, 1.0, bucket);
            let parts = series.parts(at, angle, Complex::real(1.0));
            let sum = (parts.fits + parts.overflows).ln();
            let log = sum.re + series.log_scale;
            assert!((log - at.re).abs() < 1e-12 * x.max(1.0));
        }
    }
}
