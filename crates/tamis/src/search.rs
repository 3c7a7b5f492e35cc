//! Searching what is sorted and uniform.

use core::cmp::Ordering;
use core::ops::RangeInclusive;

/// Interpolation search in `len` ascending values, all within `bounds`: the
/// index of one that is `wanted`, or the one it would have.
///
/// Hashes are uniform, so the place of one is known to within a square root,
/// and the next guess to within a fourth root. A guess that does not halve
/// the range is followed by one that does, so that values of any other
/// distribution cost no more than twice a binary search, and values that are
/// not sorted at all cannot keep it from ending.
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
    let mut guess_by_value = true;
    while low < high {
        let size = high - low;
        let middle = if guess_by_value && wanted >= least && wanted <= most {
            // Rounded, which a guess may be: the exact quotient of 128 bits
            // takes longer than all the rest.
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
        guess_by_value = !guess_by_value || high - low <= size / 2;
    }
    Err(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::cell::Cell;

    /// Searches, and says how many values were looked at.
    fn search(values: &[u64], wanted: u64) -> (Result<usize, usize>, u32) {
        let looks = Cell::new(0);
        let found = interpolate(values.len(), 0..=u64::MAX, wanted, |i| {
            looks.set(looks.get() + 1);
            values[i]
        });
        (found, looks.get())
    }

    /// No search takes more than its bound; how many it takes on average.
    fn check(what: &str, values: &[u64]) -> f64 {
        assert!(values.is_sorted());
        // Twice as many halvings as there are.
        let bound = 2 * (values.len() + 1).ilog2() + 2;
        let (mut all, mut searches) = (0, 0);
        for &value in values.iter().step_by(values.len() / 500 + 1) {
            for wanted in [value, value.wrapping_add(1), value / 2] {
                let (found, looks) = search(values, wanted);
                match found {
                    Ok(at) => assert_eq!(values[at], wanted, "{what}"),
                    Err(at) => {
                        let place = values.partition_point(|&v| v < wanted);
                        assert_eq!(at, place, "{what}");
                    }
                }
                assert!(looks <= bound, "{what}: {looks} of {bound}");
                all += looks;
                searches += 1;
            }
        }
        f64::from(all) / f64::from(searches)
    }

    #[test]
    fn a_short_segment_takes_few_looks() {
        for len in [64, 128] {
            // Of many segments, to get an average.
            let looks = (0..200u64).map(|segment| {
                let values = (0..len).map(|i| segment * len + i);
                let mut values: Vec<u64> =
                    values.map(crate::key::finalise).collect();
                values.sort_unstable();
                check("segment", &values)
            });
            let mean = looks.sum::<f64>() / 200.0;
            assert!((4.0..5.0).contains(&mean), "{len}: {mean}");
        }
    }

    /// The bound is proved: of two guesses one halves the range.
    #[test]
    fn no_distribution_costs_more_than_two_binary_searches() {
        const LEN: u64 = 1 << 16;
        let of = |f: &dyn Fn(u64) -> u64| -> Vec<u64> {
            let mut values: Vec<u64> = (0..LEN).map(f).collect();
            values.sort_unstable();
            values
        };
        let uniform = check("uniform", &of(&|i| crate::key::finalise(i)));
        // Half of what a binary search takes.
        assert!(uniform < 8.0, "{uniform}");
        check("all small", &of(&|i| i));
        check("all large", &of(&|i| u64::MAX - i));
        check("all equal", &of(&|_| 1 << 40));
        check("two heaps", &of(&|i| if i % 2 == 0 { i } else { !i }));
        check("powers", &of(&|i| 1 << (i % 64)));
        // Without the guesses that halve it would look at hundreds.
        let powers = check("fourth powers", &of(&|i| i.pow(4)));
        assert!(powers > uniform, "{powers} and {uniform}");
    }
}
