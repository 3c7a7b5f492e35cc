//! Small numbers, packed as digits of a base.

use alloc::vec::Vec;

use super::zeroed;
use crate::error::Result;

/// An array of digits, `powers.len()` of them in each word.
///
/// A word is a binary fraction, and digit i is the integer part of
/// `fract(word * base^i) * base`: two multiplications, where a digit of an
/// integer takes two divisions. Bit fields would be cheaper to read, but take
/// 3 bits per cell for base 5, which packs into 2.37.
#[derive(Clone)]
pub(super) struct Cells {
    words: Vec<u64>,
    base: u64,
    /// `base^i` for every digit i of a word.
    powers: Vec<u64>,
    /// `base^digits`, the number of values of a word.
    values: u128,
}

/// The position of a digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CellAt {
    pub(super) word: usize,
    pub(super) digit: usize,
}

impl Cells {
    /// `words` words of `digits` zero digits each. Requires
    /// `base^digits <= 2^64`.
    pub(super) fn new(words: u64, base: u64, digits: u32) -> Result<Self> {
        Ok(Self {
            words: zeroed(words)?,
            base,
            powers: (0..digits).map(|i| base.pow(i)).collect(),
            values: u128::from(base).pow(digits),
        })
    }

    #[inline(always)]
    pub(super) fn get(&self, at: CellAt) -> u64 {
        let fraction = self.words[at.word].wrapping_mul(self.powers[at.digit]);
        ((u128::from(fraction) * u128::from(self.base)) >> 64) as u64
    }

    /// Replaces a digit. The word becomes the smallest fraction that is not
    /// below the number: the rounding error, less than 2^-64, times the
    /// largest power stays below one digit.
    pub(super) fn set(&mut self, at: CellAt, digit: u64) {
        let old = self.get(at);
        let unit = self.powers[self.powers.len() - 1 - at.digit];
        let unit = u128::from(unit);
        let word = &mut self.words[at.word];
        let number = (u128::from(*word) * self.values) >> 64;
        let number = number + u128::from(digit) * unit;
        let number = number - u128::from(old) * unit;
        *word = (number << 64).div_ceil(self.values) as u64;
    }

    /// The position of cell number `index`.
    pub(super) fn at(&self, index: u64) -> CellAt {
        let digits = self.powers.len() as u64;
        let word = (index / digits) as usize;
        CellAt { word, digit: (index % digits) as usize }
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
    }

    pub(super) fn bits(&self) -> u64 {
        64 * self.words.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tamis_theory::summary::cells_per_word;

    fn zero_cells(words: u64, base: u64) -> Cells {
        let digits = cells_per_word(base as usize - 1);
        Cells::new(words, base, digits).unwrap()
    }

    proptest! {
        #[test]
        fn setting_a_digit_leaves_the_others(
            base in 2u64..=9,
            changes in proptest::collection::vec(
                (0u64..100, any::<u64>()), 0..300,
            ),
        ) {
            let mut cells = zero_cells(5, base);
            let mut model = [0; 100];
            for (index, value) in changes {
                // Favours the largest digit: a rounding error in a word
                // shows there first.
                let value = (value % (2 * base)).min(base - 1);
                cells.set(cells.at(index), value);
                model[index as usize] = value;
                for (index, &value) in (0..).zip(&model) {
                    prop_assert_eq!(cells.get(cells.at(index)), value);
                }
            }
        }
    }

    #[test]
    fn words_of_largest_digits_are_read_back() {
        for base in 2..=9 {
            let mut cells = zero_cells(1, base);
            let digits = cells.powers.len() as u64;
            for index in 0..digits {
                cells.set(cells.at(index), base - 1);
            }
            for index in 0..digits {
                assert_eq!(cells.get(cells.at(index)), base - 1);
            }
        }
    }
}
