//! Gauss-Legendre quadrature over panels.

/// Nodes per panel: integrates a bell curve of width one panel to rounding.
const NODES: usize = 16;

/// Nodes in [-1, 1] and their weights.
pub(crate) struct Quadrature {
    nodes: [(f64, f64); NODES],
}

impl Quadrature {
    pub(crate) fn new() -> Self {
        let n = NODES as f64;
        let nodes = core::array::from_fn(|i| {
            // The standard approximation of the roots of the Legendre
            // polynomial; four Newton steps reach rounding.
            let angle = (i as f64 + 0.75) / (n + 0.5);
            let mut x = libm::cos(core::f64::consts::PI * angle);
            for _ in 0..6 {
                let (value, slope) = legendre(x);
                x -= value / slope;
            }
            let slope = legendre(x).1;
            (x, 2.0 / ((1.0 - x * x) * slope * slope))
        });
        Quadrature { nodes }
    }

    /// The integral of `f` over `from..to`, in panels no wider than `width`.
    pub(crate) fn integrate<const N: usize>(
        &self,
        (from, to): (f64, f64),
        width: f64,
        mut f: impl FnMut(f64) -> [f64; N],
    ) -> [f64; N] {
        const MOST: f64 = 10_000.0;
        let panels = libm::ceil((to - from) / width).clamp(1.0, MOST);
        let half = 0.5 * (to - from) / panels;
        let mut sum = [0.0; N];
        for panel in 0..panels as u32 {
            let middle = from + (2.0 * f64::from(panel) + 1.0) * half;
            for (x, weight) in self.nodes {
                let value = f(middle + half * x);
                for (sum, value) in sum.iter_mut().zip(value) {
                    *sum += half * weight * value;
                }
            }
        }
        sum
    }
}

/// The Legendre polynomial of degree [`NODES`] and its derivative.
fn legendre(x: f64) -> (f64, f64) {
    let (mut before, mut value) = (1.0, x);
    for n in 2..=NODES {
        let n = n as f64;
        let next = ((2.0 * n - 1.0) * x * value - (n - 1.0) * before) / n;
        (before, value) = (value, next);
    }
    let slope = NODES as f64 * (x * value - before) / (x * x - 1.0);
    (value, slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_closed_integrals() {
        let rule = Quadrature::new();
        let [one, bell] = rule.integrate((0.0, 9.0), 1.0, |x| {
            [libm::pow(x, 7.0), libm::exp(-x * x)]
        });
        assert!((one / (libm::pow(9.0, 8.0) / 8.0) - 1.0).abs() < 1e-14);
        let half = libm::sqrt(core::f64::consts::PI) / 2.0;
        assert!((bell - half).abs() < 1e-14);
    }
}
