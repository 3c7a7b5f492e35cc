//! Memory addressed by bits.

use super::Lines;

/// An array of bits, read and written in fields of up to 64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
    len: u64,
}

impl Bits {
    /// `len` zeros.
    pub(crate) fn new(len: u64) -> Self {
        Self { words: vec![0; len.div_ceil(64) as usize], len }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The field of `width` bits at bit `at`.
    pub(crate) fn get(&self, at: u64, width: u32) -> u64 {
        let (word, shift) = place(at);
        let low = self.words[word] >> shift;
        let within = 64 - shift;
        let high = match width > within {
            true => self.words[word + 1] << within,
            false => 0,
        };
        (low | high) & mask(width)
    }

    /// Overwrites the field of `width` bits at bit `at` with `value`.
    pub(crate) fn set(&mut self, at: u64, width: u32, value: u64) {
        debug_assert!(value <= mask(width));
        let (word, shift) = place(at);
        let within = 64 - shift;
        self.words[word] &= !(mask(width) << shift);
        self.words[word] |= value << shift;
        if width > within {
            self.words[word + 1] &= !(mask(width) >> within);
            self.words[word + 1] |= value >> within;
        }
    }

    /// Overwrites the `len` bits from bit `at` with zeros.
    pub(crate) fn clear(&mut self, at: u64, len: u64) {
        for from in (at..at + len).step_by(64) {
            self.set(from, (at + len - from).min(64) as u32, 0);
        }
    }

    /// Number of ones among the `len` bits from bit `at`.
    pub(crate) fn ones(&self, at: u64, len: u64, lines: &mut Lines) -> u64 {
        let fields = (at..at + len).step_by(64).map(|from| {
            let width = (at + len - from).min(64) as u32;
            self.read(from, width, lines).count_ones()
        });
        fields.map(u64::from).sum()
    }

    /// As [`get`](Self::get), and records the cache lines of the field.
    pub(crate) fn read(&self, at: u64, width: u32, lines: &mut Lines) -> u64 {
        lines.read(at, u64::from(width));
        self.get(at, width)
    }
}

fn place(at: u64) -> (usize, u32) {
    ((at / 64) as usize, (at % 64) as u32)
}

/// The lowest `width` bits.
pub(crate) fn mask(width: u32) -> u64 {
    u64::MAX.checked_shr(64 - width).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Keys;

    #[test]
    fn ones_are_those_of_each_bit() {
        let mut bits = Bits::new(640);
        for (i, word) in (0..).zip(Keys::new(1).members(10)) {
            bits.set(64 * i, 64, word);
        }
        let ignored = &mut Lines::ignored();
        for (at, len) in [(0, 640), (3, 0), (60, 7), (63, 65), (100, 500)] {
            let expected: u64 = (at..at + len).map(|i| bits.get(i, 1)).sum();
            assert_eq!(bits.ones(at, len, ignored), expected);
            let all = bits.ones(0, 640, ignored);
            let mut cleared = bits.clone();
            cleared.clear(at, len);
            assert_eq!(cleared.ones(at, len, ignored), 0);
            assert_eq!(cleared.ones(0, 640, ignored), all - expected);
        }
    }

    #[test]
    fn fields_keep_their_values_and_their_neighbours() {
        for width in 1..=64 {
            let count = 40;
            let mut bits = Bits::new(count * u64::from(width));
            let at = |i: u64| i * u64::from(width);
            let value = |i| Keys::new(1).member(i) & mask(width);
            // Written twice, so that old bits are overwritten.
            for i in (0..count).rev() {
                bits.set(at(i), width, mask(width));
            }
            for i in 0..count {
                bits.set(at(i), width, value(i));
            }
            for i in 0..count {
                assert_eq!(bits.get(at(i), width), value(i), "{width} {i}");
            }
        }
    }
}
