//! Memory addressed by bits.

use super::Lines;

/// An array of bits, read and written in fields of up to 64.
#[derive(Debug, Clone)]
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
