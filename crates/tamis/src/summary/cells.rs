//! Small numbers packed without waste.

use alloc::vec::Vec;

use super::zeroed;
use crate::error::Result;

/// Digits of a base, as many to a word as fit.
///
/// A word is read as a fraction, whose i-th digit is what stands before the
/// point after a multiplication with base^i and one with the base. Two
/// multiplications, where the digits of an integer would need two divisions;
/// bit fields would be cheaper still, and take 3 bits for a base of 5.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    words: Vec<u64>,
    base: u64,
    /// Of the base, one for each digit.
    powers: Vec<u64>,
    /// How many values a word can have.
    values: u128,
}

/// Where a digit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CellAt {
    pub(super) word: usize,
    pub(super) digit: usize,
}

impl Cells {
    /// Words of so many digits of a base each, all zero; base^digits must
    /// not be above 2^64.
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

    /// Changes a digit. The word becomes the smallest fraction that is not
    /// below the number: the error, less than 2^-64, times the largest power
    /// stays below one digit.
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

    /// The cell at a position.
    pub(super) fn at(&self, position: u64) -> CellAt {
        let digits = self.powers.len() as u64;
        let word = (position / digits) as usize;
        CellAt { word, digit: (position % digits) as usize }
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

    fn made(words: u64, base: u64) -> Cells {
        let digits = cells_per_word(base as usize - 1);
        Cells::new(words, base, digits).unwrap()
    }

    proptest! {
        #[test]
        fn digits_stay_apart(
            base in 2u64..=9,
            changes in proptest::collection::vec(
                (0u64..100, any::<u64>()), 0..300,
            ),
        ) {
            let mut cells = made(5, base);
            let mut model = [0; 100];
            for (position, value) in changes {
                // The largest digits are those that rounding would spoil.
                let value = (value % (2 * base)).min(base - 1);
                cells.set(cells.at(position), value);
                model[position as usize] = value;
                for (position, &value) in (0..).zip(&model) {
                    prop_assert_eq!(cells.get(cells.at(position)), value);
                }
            }
        }
    }

    #[test]
    fn full_words_are_read_back() {
        for base in 2..=9 {
            let mut cells = made(1, base);
            let digits = cells.powers.len() as u64;
            for position in 0..digits {
                cells.set(cells.at(position), base - 1);
            }
            for position in 0..digits {
                assert_eq!(cells.get(cells.at(position)), base - 1);
            }
        }
    }
}
