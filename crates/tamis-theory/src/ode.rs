//! Dormand and Prince's adaptive Runge-Kutta method of order 5(4).

use alloc::vec::Vec;

use crate::{Error, Result};

/// Error allowed per step, absolute: the unknowns are shares of one.
const TOLERANCE: f64 = 1e-12;
/// Enough for loads of several thousand keys per block.
const MAX_STEPS: usize = 200_000;

const C: [f64; 7] = [0.0, 0.2, 0.3, 0.8, 8.0 / 9.0, 1.0, 1.0];
const A: [&[f64]; 7] = [
    &[],
    &[0.2],
    &[3.0 / 40.0, 9.0 / 40.0],
    &[44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0],
    &[19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0],
    &[
        9017.0 / 3168.0,
        -355.0 / 33.0,
        46732.0 / 5247.0,
        49.0 / 176.0,
        -5103.0 / 18656.0,
    ],
    &[
        35.0 / 384.0,
        0.0,
        500.0 / 1113.0,
        125.0 / 192.0,
        -2187.0 / 6784.0,
        11.0 / 84.0,
    ],
];
/// Difference between the fifth- and the fourth-order solution.
const E: [f64; 7] = [
    71.0 / 57600.0,
    0.0,
    -71.0 / 16695.0,
    71.0 / 1920.0,
    -17253.0 / 339200.0,
    22.0 / 525.0,
    -1.0 / 40.0,
];

/// Carries `y` from time 0 to `end` along dy/dt = `f(t, y)`.
pub(crate) fn solve(
    y: &mut Vec<f64>,
    end: f64,
    mut f: impl FnMut(f64, &[f64], &mut [f64]),
) -> Result<()> {
    let n = y.len();
    let mut slope: [Vec<f64>; 7] =
        core::array::from_fn(|_| alloc::vec![0.0; n]);
    let mut trial = y.clone();
    let (mut t, mut step) = (0.0, 1e-3 * end);
    f(t, y, &mut slope[0]);
    for _ in 0..MAX_STEPS {
        if t >= end {
            return Ok(());
        }
        // Extends the last step: a remainder of rounding size would never
        // be accepted.
        let last = t + 1.000_001 * step >= end;
        if last {
            step = end - t;
        }
        for stage in 1..7 {
            let (before, rest) = slope.split_at_mut(stage);
            for i in 0..n {
                let terms = A[stage].iter().zip(&*before);
                let rise: f64 = terms.map(|(a, k)| a * k[i]).sum();
                trial[i] = y[i] + step * rise;
            }
            f(t + C[stage] * step, &trial, &mut rest[0]);
        }
        let error = (0..n)
            .map(|i| {
                let terms = E.iter().zip(&slope);
                terms.map(|(e, k)| e * k[i]).sum::<f64>().abs()
            })
            .fold(0.0, f64::max)
            * step;
        if error <= TOLERANCE {
            t = if last { end } else { t + step };
            core::mem::swap(y, &mut trial);
            // The last stage is the first of the next step (FSAL).
            slope.swap(0, 6);
        }
        let ratio = TOLERANCE / error.max(1e-6 * TOLERANCE);
        step *= (0.9 * libm::pow(ratio, 0.2)).clamp(0.2, 5.0);
    }
    Err(Error::TooManySteps { steps: MAX_STEPS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_closed_solutions() {
        // A rotation, and a relaxation that the rotation drives.
        let mut y = alloc::vec![1.0, 0.0, 0.0];
        solve(&mut y, 2.0, |_, y, dy| {
            dy[0] = -3.0 * y[1];
            dy[1] = 3.0 * y[0];
            dy[2] = y[0] - 50.0 * y[2];
        })
        .unwrap();
        let driven = (50.0 * libm::cos(6.0) + 3.0 * libm::sin(6.0)) / 2509.0;
        assert!((y[0] - libm::cos(6.0)).abs() < 1e-10);
        assert!((y[1] - libm::sin(6.0)).abs() < 1e-10);
        assert!((y[2] - driven).abs() < 1e-11);
    }

    #[test]
    fn passes_the_time_to_the_equations() {
        let mut y = alloc::vec![0.0];
        solve(&mut y, 3.0, |t, _, dy| dy[0] = t * t * t).unwrap();
        assert!((y[0] - 81.0 / 4.0).abs() < 1e-11);
    }

    #[test]
    fn a_stiff_problem_is_an_error() {
        let mut y = alloc::vec![1.0];
        let result = solve(&mut y, 1.0, |t, y, dy| {
            dy[0] = 1e9 * (libm::cos(t) - y[0]);
        });
        let steps = MAX_STEPS;
        assert_eq!(result, Err(Error::TooManySteps { steps }));
    }
}
