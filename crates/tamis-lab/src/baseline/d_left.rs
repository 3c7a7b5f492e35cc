//! The d-left counting Bloom filter of Bonomi, Mitzenmacher, Panigrahy,
//! Singh and Varghese, *An Improved Construction for Counting Bloom
//! Filters* (ESA 2006), as its authors configure it: four tables, buckets of
//! eight cells, six keys per bucket on average.
//!
//! A key has one fingerprint f of q bits. The permutation i of the q-bit
//! numbers turns it into a bucket of table i (the leading bits) and a
//! remainder (the r trailing bits). It is stored in the table whose bucket
//! has the lowest load, of equals the leftmost. Different fingerprints never
//! have the same bucket and remainder in a table, because a permutation
//! keeps them apart; so a remainder that is found in one of the four buckets
//! belongs to f alone, and a removal never takes the wrong cell. A second
//! insertion of f increments the cell's counter of two bits; zero marks an
//! empty cell, and three is never left.
//!
//! A stranger is a false positive exactly if its fingerprint is one of the
//! stored, so the rate is `1-(1-1/(B 2^r))^n` for B buckets per table: to
//! first order 24 * 2^-r. The memory is 4(r+2)/3 bits per key, 17.64, 22.07
//! and 26.50 at 1, 0.1 and 0.01 %, where r need not be whole.
//!
//! Inferred, as only the abstract and descriptions were at hand: the
//! permutations, f -> a f mod 2^q with an odd constant a per table; empty
//! cells as a counter of zero; and the counter that is never left at three,
//! without which a fourth insertion would lose keys.

use super::bits::{Bits, mask};
use super::{Baseline, Error, Lines};
use crate::simulation::mix;

const TABLES: u64 = 4;
const CELLS: u64 = 8;
/// Average keys per bucket at the nominal load.
const LOAD: u64 = 6;
const COUNTER_BITS: u32 = 2;
/// A counter with this value no longer changes.
const STUCK: u64 = (1 << COUNTER_BITS) - 1;

/// A d-left counting Bloom filter.
///
/// ```
/// use tamis_lab::baseline::{Baseline, DLeft};
///
/// let mut filter = DLeft::new(6, 11);
/// filter.insert(1)?;
/// assert!(filter.contains(1));
/// filter.remove(1)?;
/// assert!(!filter.contains(1));
/// # Ok::<(), tamis_lab::baseline::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DLeft {
    /// Tables, buckets and cells in order.
    cells: Bits,
    bucket_bits: u32,
    remainder_bits: u32,
}

/// A cell: the remainder above the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    remainder: u64,
    counter: u64,
}

impl DLeft {
    /// A filter with 2^`bucket_bits` buckets per table and remainders of
    /// `remainder_bits`, together at most 60.
    ///
    /// ```
    /// use tamis_lab::baseline::{Baseline, DLeft};
    /// assert_eq!(DLeft::new(6, 11).bits(), 4 * 64 * 8 * (11 + 2));
    /// ```
    pub fn new(bucket_bits: u32, remainder_bits: u32) -> Self {
        let cells = (TABLES * CELLS) << bucket_bits;
        let width = u64::from(remainder_bits + COUNTER_BITS);
        Self { cells: Bits::new(cells * width), bucket_bits, remainder_bits }
    }

    /// Keys at the nominal load of six per bucket.
    ///
    /// ```
    /// assert_eq!(tamis_lab::baseline::DLeft::new(6, 11).nominal(), 1536);
    /// ```
    pub fn nominal(&self) -> u64 {
        (TABLES * LOAD) << self.bucket_bits
    }

    /// Bits per key at the nominal load, for remainders of a length that
    /// need not be whole.
    ///
    /// ```
    /// use tamis_lab::baseline::DLeft;
    /// assert!((DLeft::bits_per_key(0.01) - 17.64).abs() < 0.01);
    /// ```
    pub fn bits_per_key(rate: f64) -> f64 {
        let candidates = (TABLES * LOAD) as f64;
        let width = (candidates / rate).log2() + f64::from(COUNTER_BITS);
        width * CELLS as f64 / LOAD as f64
    }

    /// False-positive rate after `keys` different keys.
    ///
    /// ```
    /// let rate = tamis_lab::baseline::DLeft::new(6, 11).expected_rate(1536);
    /// assert!((rate * 2048.0 / 24.0 - 1.0).abs() < 0.01);
    /// ```
    pub fn expected_rate(&self, keys: u64) -> f64 {
        let fingerprints = 2f64.powi(self.fingerprint_bits() as i32);
        -(keys as f64 * (-fingerprints.recip()).ln_1p()).exp_m1()
    }

    /// Number of buckets of each table with each load.
    ///
    /// ```
    /// let empty = tamis_lab::baseline::DLeft::new(3, 8);
    /// assert_eq!(empty.loads()[2], [8, 0, 0, 0, 0, 0, 0, 0, 0]);
    /// ```
    pub fn loads(&self) -> [[u64; CELLS as usize + 1]; TABLES as usize] {
        let mut loads = [[0; CELLS as usize + 1]; TABLES as usize];
        for (table, loads) in (0u64..).zip(&mut loads) {
            for bucket in 0..1 << self.bucket_bits {
                loads[self.load(table, bucket) as usize] += 1;
            }
        }
        loads
    }

    fn fingerprint_bits(&self) -> u32 {
        self.bucket_bits + self.remainder_bits
    }

    fn fingerprint(&self, key: u64) -> u64 {
        mix(key, 0) >> (64 - self.fingerprint_bits())
    }

    /// Bucket and remainder of a fingerprint in `table`.
    fn place(&self, fingerprint: u64, table: u64) -> (u64, u64) {
        let odd = mix(0, table) | 1;
        let permuted =
            fingerprint.wrapping_mul(odd) & mask(self.fingerprint_bits());
        let remainder = permuted & mask(self.remainder_bits);
        (permuted >> self.remainder_bits, remainder)
    }

    fn width(&self) -> u32 {
        self.remainder_bits + COUNTER_BITS
    }

    fn at(&self, table: u64, bucket: u64, slot: u64) -> u64 {
        let bucket = (table << self.bucket_bits) + bucket;
        (bucket * CELLS + slot) * u64::from(self.width())
    }

    fn cell(&self, at: u64, lines: &mut Lines) -> Cell {
        let field = self.cells.read(at, self.width(), lines);
        let counter = field & mask(COUNTER_BITS);
        Cell { remainder: field >> COUNTER_BITS, counter }
    }

    fn write(&mut self, at: u64, cell: Cell) {
        let field = cell.remainder << COUNTER_BITS | cell.counter;
        self.cells.set(at, self.width(), field);
    }

    fn load(&self, table: u64, bucket: u64) -> u64 {
        let taken = |slot: &u64| {
            let at = self.at(table, bucket, *slot);
            self.cell(at, &mut Lines::ignored()).counter > 0
        };
        (0..CELLS).filter(taken).count() as u64
    }

    /// The cell of a fingerprint.
    fn find(
        &self,
        fingerprint: u64,
        lines: &mut Lines,
    ) -> Option<(u64, Cell)> {
        (0..TABLES).find_map(|table| {
            let (bucket, remainder) = self.place(fingerprint, table);
            (0..CELLS).find_map(|slot| {
                let at = self.at(table, bucket, slot);
                let cell = self.cell(at, lines);
                let found = cell.counter > 0 && cell.remainder == remainder;
                found.then_some((at, cell))
            })
        })
    }
}

impl Baseline for DLeft {
    fn name(&self) -> &'static str {
        "d-left CBF"
    }

    fn insert(&mut self, key: u64) -> Result<(), Error> {
        let fingerprint = self.fingerprint(key);
        let ignored = &mut Lines::ignored();
        if let Some((at, cell)) = self.find(fingerprint, ignored) {
            let counter = (cell.counter + 1).min(STUCK);
            self.write(at, Cell { counter, ..cell });
            return Ok(());
        }
        let loads = (0..TABLES).map(|table| {
            let (bucket, remainder) = self.place(fingerprint, table);
            (self.load(table, bucket), table, bucket, remainder)
        });
        let (_, table, bucket, remainder) = loads.min().ok_or(Error::Full)?;
        let mut slots = (0..CELLS).map(|slot| self.at(table, bucket, slot));
        let free = slots.find(|at| self.cell(*at, ignored).counter == 0);
        self.write(free.ok_or(Error::Full)?, Cell { remainder, counter: 1 });
        Ok(())
    }

    fn look_up(&self, key: u64, lines: &mut Lines) -> bool {
        self.find(self.fingerprint(key), lines).is_some()
    }

    fn remove(&mut self, key: u64) -> Result<(), Error> {
        let found = self.find(self.fingerprint(key), &mut Lines::ignored());
        let (at, cell) = found.ok_or(Error::Absent)?;
        if cell.counter != STUCK {
            let counter = cell.counter - 1;
            self.write(at, Cell { counter, ..cell });
        }
        Ok(())
    }

    fn bits(&self) -> u64 {
        self.cells.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::simulation::{Keys, Rate, fill};

    #[test]
    fn permutations_keep_fingerprints_apart() {
        let filter = DLeft::new(5, 7);
        for table in 0..TABLES {
            let places: BTreeSet<_> =
                (0..1 << 12).map(|f| filter.place(f, table)).collect();
            assert_eq!(places.len(), 1 << 12);
            assert_eq!(places.last(), Some(&(31, 127)));
        }
    }

    #[test]
    fn a_key_finds_its_cell_in_each_table() {
        for table in 0..TABLES {
            for key in Keys::new(1).members(1000) {
                let mut filter = DLeft::new(5, 7);
                let fingerprint = filter.fingerprint(key);
                let (bucket, remainder) = filter.place(fingerprint, table);
                let at = filter.at(table, bucket, key % CELLS);
                let cell = Cell { remainder, counter: 1 };
                filter.write(at, cell);
                let found = filter.find(fingerprint, &mut Lines::ignored());
                assert_eq!(found, Some((at, cell)));
            }
        }
    }

    #[test]
    fn a_fingerprint_has_one_cell_in_all_tables() {
        let mut filter = DLeft::new(5, 4);
        // 512 fingerprints, of which many are inserted several times.
        let fingerprints = |filter: &DLeft, count| -> BTreeSet<u64> {
            let keys = Keys::new(1).members(count);
            keys.map(|key| filter.fingerprint(key)).collect()
        };
        for (count, key) in (1..=600).zip(Keys::new(1).members(600)) {
            filter.insert(key).unwrap();
            let loads = filter.loads();
            let cells: u64 = loads
                .iter()
                .flat_map(|loads| (0..).zip(loads).map(|(i, n)| i * n))
                .sum();
            assert_eq!(cells, fingerprints(&filter, count).len() as u64);
        }
    }

    /// Shares of buckets with at least i keys, in the limit of many buckets:
    /// dy(j,i)/dt = 4 (y(j,i-1)-y(j,i)) prod(k<j) y(k,i) prod(k>j) y(k,i-1)
    /// (Vöcking; Mitzenmacher), by Euler's method with `steps` per key.
    fn fluid(load: f64, steps: u32) -> [[f64; 12]; TABLES as usize] {
        let mut y = [[0.0; 12]; TABLES as usize];
        y.iter_mut().for_each(|table| table[0] = 1.0);
        let step = 1.0 / f64::from(steps);
        for _ in 0..(load * f64::from(steps)) as u64 {
            let before = y;
            for (j, table) in y.iter_mut().enumerate() {
                for i in 1..12 {
                    let left = before[..j].iter().map(|t| t[i]);
                    let right = before[j + 1..].iter().map(|t| t[i - 1]);
                    let others: f64 = left.chain(right).product();
                    let here = before[j][i - 1] - before[j][i];
                    table[i] += step * TABLES as f64 * here * others;
                }
            }
        }
        y
    }

    #[test]
    fn loads_are_those_of_the_differential_equation() {
        let expected = fluid(LOAD as f64, 4000);
        let mut filter = DLeft::new(15, 20);
        let keys = filter.nominal();
        fill(&mut filter, Keys::new(3).members(keys)).unwrap();
        let mut overfull = 0.0;
        for (loads, expected) in filter.loads().into_iter().zip(expected) {
            let trials = loads.iter().sum();
            for least in 1..=CELLS as usize {
                let rate = Rate { hits: loads[least..].iter().sum(), trials };
                let expected = expected[least];
                let near = (rate.value() - expected).abs() < 0.005;
                assert!(near, "{least}: {rate:?} {expected}");
            }
            overfull += expected[CELLS as usize + 1];
        }
        // A ninth key in a bucket is an overflow.
        assert!(overfull < 1e-15, "{overfull}");
    }

    #[test]
    fn overflows_change_nothing() {
        let mut filter = DLeft::new(1, 20);
        let mut keys = Keys::new(1).members(1000);
        let fits = |filter: &mut DLeft, key| {
            let before = filter.cells.clone();
            let result = filter.insert(key);
            assert_eq!(before == filter.cells, result.is_err());
            result.is_ok()
        };
        let stored = keys.by_ref().filter(|key| fits(&mut filter, *key));
        // Two buckets of eight cells in four tables.
        assert_eq!(stored.count(), 64);
    }
}
