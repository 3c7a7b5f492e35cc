//! Dot product.

/// Dot product over the length of the shorter slice.
///
/// Four independent sums hide the latency of the additions. The order of
/// summation is fixed, so the result is the same on every machine.
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    let n = x.len().min(y.len());
    let (x, y) = (x[..n].chunks_exact(4), y[..n].chunks_exact(4));
    let rest: f64 =
        x.remainder().iter().zip(y.remainder()).map(|(x, y)| x * y).sum();
    let mut sums = [0.0; 4];
    for (x, y) in x.zip(y) {
        for i in 0..4 {
            sums[i] += x[i] * y[i];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

#[cfg(test)]
mod tests {
    use super::dot;

    #[test]
    fn all_lengths() {
        let x: [f64; 11] = core::array::from_fn(|i| i as f64);
        for n in 0..=11 {
            let expected: f64 = (0..n).map(|i| (i * i) as f64).sum();
            assert_eq!(dot(&x[..n], &x), expected);
            assert_eq!(dot(&x, &x[..n]), expected);
        }
    }
}
