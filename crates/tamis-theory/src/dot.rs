//! Sums of products.

/// Over the shorter of the two.
///
/// Four sums side by side: one alone would wait for each addition before
/// the next. The order is fixed, so that the result is the same everywhere.
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
    fn any_length() {
        let x: [f64; 11] = core::array::from_fn(|i| i as f64);
        for n in 0..=11 {
            let expected: f64 = (0..n).map(|i| (i * i) as f64).sum();
            assert_eq!(dot(&x[..n], &x), expected);
            assert_eq!(dot(&x, &x[..n]), expected);
        }
    }
}
