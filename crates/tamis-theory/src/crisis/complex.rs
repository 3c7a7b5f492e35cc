//! Complex arithmetic, as far as the contour integrals need it.

use core::ops::{Add, AddAssign, Div, Mul, Sub};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Complex {
    pub(super) re: f64,
    pub(super) im: f64,
}

impl Complex {
    pub(super) const ZERO: Self = Complex { re: 0.0, im: 0.0 };

    pub(super) fn real(re: f64) -> Self {
        Complex { re, im: 0.0 }
    }

    pub(super) fn polar(radius: f64, angle: f64) -> Self {
        let (sin, cos) = libm::sincos(angle);
        Complex { re: radius * cos, im: radius * sin }
    }

    pub(super) fn conj(self) -> Self {
        Complex { re: self.re, im: -self.im }
    }

    pub(super) fn abs(self) -> f64 {
        libm::hypot(self.re, self.im)
    }

    pub(super) fn scale(self, by: f64) -> Self {
        Complex { re: self.re * by, im: self.im * by }
    }

    pub(super) fn exp(self) -> Self {
        Self::polar(libm::exp(self.re), self.im)
    }

    /// e^z-1, accurate for small z.
    pub(super) fn exp_m1(self) -> Self {
        let half = libm::sin(0.5 * self.im);
        let (sin, cos) = libm::sincos(self.im);
        Complex {
            re: libm::expm1(self.re) * cos - 2.0 * half * half,
            im: libm::exp(self.re) * sin,
        }
    }

    pub(super) fn ln(self) -> Self {
        Complex {
            re: libm::log(self.abs()),
            im: libm::atan2(self.im, self.re),
        }
    }

    /// ln(1+z), accurate for small z.
    pub(super) fn ln_1p(self) -> Self {
        let square = self.re * self.re + self.im * self.im;
        Complex {
            re: 0.5 * libm::log1p(2.0 * self.re + square),
            im: libm::atan2(self.im, 1.0 + self.re),
        }
    }
}

impl Add for Complex {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }
}

impl Sub for Complex {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Complex { re: self.re - other.re, im: self.im - other.im }
    }
}

impl Mul for Complex {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Complex {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

impl Div for Complex {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        let square = other.re * other.re + other.im * other.im;
        (self * other.conj()).scale(1.0 / square)
    }
}

impl AddAssign for Complex {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
