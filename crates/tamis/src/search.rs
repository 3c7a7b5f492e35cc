//! Interpolation search in sorted, uniform values.

use core::cmp::Ordering;
use core::ops::RangeInclusive;

/// Interpolation search in `len` ascending values within `bounds`: `Ok` with
/// the index of a value equal to `wanted`, or `Err` with the index to insert
/// it at.
///
/// Hashes are uniform, so that the first probe is off by about the square root
/// of `len`, and the second by the fourth root. A probe that does not halve the
/// range is followed by a bisecting one. Values of any other distribution thus
/// cost at most twice a binary search, and unsorted values cannot prevent
/// termination.
#[inline]
pub(crate) fn interpolate(
    len: usize,
    bounds: RangeInclusive<u64>,
    wanted: u64,
    at: impl Fn(usize) -> u64,
) -> Result<usize, usize> {
    let (mut low, mut high) = (0, len);
    // Bounds of the values in `low..high`.
    let (mut least, mut most) = bounds.into_inner();
    let mut interpolating = true;
    while low < high {
        let size = high - low;
        let middle = if interpolating && wanted >= least && wanted <= most {
            // Floating point, because a probe need not be exact: a 128-bit
            // division takes longer than the rest of the search.
            let share =
                (wanted - least) as f64 / ((most - least) as f64 + 1.0);
            low + ((share * size as f64) as usize).min(size - 1)
        } else {
            low + size / 2
        };
        let value = at(middle);
        match value.cmp(&wanted) {
            Ordering::Equal => return Ok(middle),
            Ordering::Less => (low, least) = (middle + 1, value),
            Ordering::Greater => (high, most) = (middle, value),
        }
        interpolating = !interpolating || high - low <= size / 2;
    }
    Err(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::cell::Cell;

    /// The result of a search and the number of values it read.
    fn counted_search(
        values: &[u64],
        wanted: u64,
    ) -> (Result<usize, usize>, u32) {
        let reads = Cell::new(0);
        let found = interpolate(values.len(), 0..=u64::MAX, wanted, |i| {
            reads.set(reads.get() + 1);
            values[i]
        });
        (found, reads.get())
    }

    /// Asserts the bound on the reads of a search; returns their mean.
    fn check(what: &str, values: &[u64]) -> f64 {
        assert!(values.is_sorted());
        // Two probes per halving of the range.
        let bound = 2 * (values.len() + 1).ilog2() + 2;
        let (mut all, mut searches) = (0, 0);
        for &value in values.iter().step_by(values.len() / 500 + 1) {
            for wanted in [value, value.wrapping_add(1), value / 2] {
                let (found, reads) = counted_search(values, wanted);
                match found {
                    Ok(at) => assert_eq!(values[at], wanted, "{what}"),
                    Err(at) => {
                        let place = values.partition_point(|&v| v < wanted);
                        assert_eq!(at, place, "{what}");
                    }
                }
                assert!(reads <= bound, "{what}: {reads} of {bound}");
                all += reads;
                searches += 1;
            }
        }
        f64::from(all) / f64::from(searches)
    }

    #[test]
    fn a_short_segment_takes_few_reads() {
        for len in [64, 128] {
            // The mean of 200 segments.
            let reads = (0..200u64).map(|segment| {
                let values = (0..len).map(|i| segment * len + i);
                let mut values: Vec<u64> =
                    values.map(crate::key::finalise).collect();
                values.sort_unstable();
                check("segment", &values)
            });
            let mean = reads.sum::<f64>() / 200.0;
            assert!((4.0..5.0).contains(&mean), "{len}: {mean}");
        }
    }

    /// The bound holds for every input: of two probes one halves the range.
    #[test]
    fn no_distribution_costs_more_than_two_binary_searches() {
        const LEN: u64 = 1 << 16;
        let of = |f: &dyn Fn(u64) -> u64| -> Vec<u64> {
            let mut values: Vec<u64> = (0..LEN).map(f).collect();
            values.sort_unstable();
            values
        };
        let uniform = check("uniform", &of(&|i| crate::key::finalise(i)));
        // Half the reads of a binary search.
        assert!(uniform < 8.0, "{uniform}");
        check("all small", &of(&|i| i));
        check("all large", &of(&|i| u64::MAX - i));
        check("all equal", &of(&|_| 1 << 40));
        check("two heaps", &of(&|i| if i % 2 == 0 { i } else { !i }));
        check("powers", &of(&|i| 1 << (i % 64)));
        // Without bisecting probes this takes hundreds of reads.
        let powers = check("fourth powers", &of(&|i| i.pow(4)));
        assert!(powers > uniform, "{powers} and {uniform}");
    }
}
