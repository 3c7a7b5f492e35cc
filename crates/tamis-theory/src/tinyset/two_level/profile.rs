//! Distribution of one primary block, key by key.
//!
//! Keys are uniform on the chains of a block until a chain moves; the keys
//! that stay are uniform on the chains that stay. A block that spilled
//! therefore has three state variables: its highest chain, the keys on that
//! chain, and all its keys. Exact: the order of arrivals matters, because a
//! chain between the highest one and the one that moved is closed although
//! the block has room.

use alloc::vec;
use alloc::vec::Vec;

use super::super::block::Block;
use super::super::rate;

/// Chances below this are dropped. The table has fewer than 1e6 entries, so
/// the loss is below the first nine digits.
const NEGLIGIBLE: f64 = 1e-16;

/// A block after 0, 1, 2, ... keys.
pub(super) struct Profile {
    chains: usize,
    cap: usize,
    block: Block,
    /// `rates[n]`: false-positive rate of the primary alone after n keys.
    pub(super) rates: Vec<f64>,
    /// `above[n][j]`: mean number of chains that are in level 2 with j keys
    /// after n keys.
    pub(super) above: Vec<Vec<f64>>,
    /// `rows[h * (cap + 2) + k][x]`: chance of highest chain h with k keys and
    /// x keys in all; rows of zeros are empty.
    rows: Vec<Vec<f64>>,
    /// `empty[h][r]`: chance that r keys on h + 1 chains leave the last one
    /// empty.
    empty: Vec<Vec<f64>>,
    /// `match_rates[h][x]`: false-positive rate with x keys on h + 1 chains.
    match_rates: Vec<Vec<f64>>,
    /// Fewest keys of any block that spilled.
    fewest: usize,
}

impl Profile {
    pub(super) fn new(block: Block, cap: u32) -> Self {
        let (base, extended) = block.widths(cap);
        let chains = block.chains;
        let cells = f64::from(chains);
        let empty = (0..chains).map(|h| {
            let stays = f64::from(h) / f64::from(h + 1);
            let mut chance = 1.0;
            let mut row = Vec::with_capacity(cap as usize + 2);
            for _ in 0..=cap + 1 {
                row.push(chance);
                chance *= stays;
            }
            row
        });
        let match_rates = (0..chains).map(|h| {
            let row = (0..=cap).map(|x| {
                let long = x.min(extended);
                let share = f64::from(h + 1) / cells;
                share * rate(h + 1, base, long, x - long)
            });
            row.collect()
        });
        let (empty, match_rates) = (empty.collect(), match_rates.collect());
        let (chains, cap) = (chains as usize, cap as usize);
        Profile {
            chains,
            cap,
            block,
            rates: vec![0.0],
            above: vec![Vec::new()],
            rows: vec![Vec::new(); chains * (cap + 2)],
            empty,
            match_rates,
            fewest: cap,
        }
    }

    pub(super) fn block(&self) -> &Block {
        &self.block
    }

    /// Extends the tables to blocks of up to `keys` keys.
    pub(super) fn extend(&mut self, keys: usize) {
        while self.rates.len() <= keys {
            self.step();
        }
    }

    /// Adds one key.
    fn step(&mut self) {
        let n = self.rates.len();
        if n <= self.cap {
            self.rates.push(self.block.fpr(n as u32));
            self.above.push(Vec::new());
            return;
        }
        let mut leaving = vec![0.0];
        // `falling[h][r]`: blocks with r keys on the chains below h, whose
        // highest chain `settle` determines.
        let mut falling = self.zeros();
        if n == self.cap + 1 {
            self.first_spill(&mut falling, &mut leaving);
        } else {
            self.arrive(&mut falling, &mut leaving);
        }
        self.settle(&mut falling, &mut leaving);
        self.record(leaving);
    }

    fn zeros(&self) -> Vec<Vec<f64>> {
        vec![vec![0.0; self.cap + 2]; self.chains + 1]
    }

    /// Adds key `cap + 1` to a block all of whose chains are open.
    fn first_spill(
        &mut self,
        falling: &mut [Vec<f64>],
        leaving: &mut Vec<f64>,
    ) {
        let n = self.cap + 1;
        let mut all = self.zeros();
        all[self.chains][n] = 1.0;
        self.settle(&mut all, leaving);
        for (i, row) in self.rows.iter_mut().enumerate() {
            let (h, k) = (i / (n + 1), i % (n + 1));
            // The highest chain moves at once, so no row stays.
            let row = core::mem::take(row);
            let chance = row.get(n).copied().unwrap_or(0.0);
            leave(leaving, k, chance);
            if chance > 0.0 {
                falling[h][n - k] += chance;
            }
        }
        self.fewest = self.cap;
    }

    /// The next key joins the highest chain, a lower one, or level 2.
    fn arrive(&mut self, falling: &mut [Vec<f64>], leaving: &mut Vec<f64>) {
        let (cap, width) = (self.cap, self.cap + 2);
        let each = 1.0 / self.chains as f64;
        let (from, to) = (self.fewest, cap + 1);
        let nothing = vec![0.0; width];
        let mut next = vec![0.0; width];
        for (h, falling) in falling.iter_mut().enumerate().take(self.chains) {
            let lower = h as f64 * each;
            let stay = 1.0 - lower - each;
            let rows = &mut self.rows[h * width..(h + 1) * width];
            // Descending k: row k reads row k - 1 before it is updated.
            for k in (1..=cap + 1).rev() {
                let (below, here) = rows.split_at_mut(k);
                let (less, row) = (&below[k - 1], &mut here[0]);
                if row.is_empty() {
                    if less.iter().all(|p| *p < NEGLIGIBLE) {
                        continue;
                    }
                    *row = vec![0.0; width];
                }
                let less = if less.is_empty() { &nothing } else { less };
                let full = row[cap] * lower + less[cap] * each;
                leave(leaving, k, full);
                falling[cap + 1 - k] += full;
                // A block that spilled is not empty, so `from >= 1`.
                let new = next[from..to].iter_mut().zip(&row[from..to]);
                let old = row[from - 1..cap].iter().zip(&less[from - 1..cap]);
                for ((new, mine), (one_less, theirs)) in new.zip(old) {
                    *new = mine * stay + one_less * lower + theirs * each;
                }
                row[from..to].copy_from_slice(&next[from..to]);
            }
        }
    }

    /// Moves each block of `falling` to the row of its highest non-empty
    /// chain; the empty chains above it are closed.
    fn settle(&mut self, falling: &mut [Vec<f64>], leaving: &mut [f64]) {
        let width = self.cap + 2;
        for h in (0..self.chains).rev() {
            let (lower, upper) = falling.split_at_mut(h + 1);
            for r in 0..width {
                let mass = upper[0][r];
                if mass < NEGLIGIBLE {
                    continue;
                }
                let empty = self.empty[h][r];
                leaving[0] += mass * empty;
                lower[h][r] += mass * empty;
                let found = mass * (1.0 - empty);
                if found < NEGLIGIBLE {
                    continue;
                }
                self.fewest = self.fewest.min(r);
                // Chances of k >= 1 keys on chain h.
                let mut chance = mass * empty;
                for k in 1..=r {
                    chance = if h > 0 {
                        let part = (r + 1 - k) as f64 / (k * h) as f64;
                        chance * part
                    } else if k == r {
                        mass
                    } else {
                        0.0
                    };
                    if chance > NEGLIGIBLE {
                        let row = &mut self.rows[h * width + k];
                        if row.is_empty() {
                            *row = vec![0.0; width];
                        }
                        row[r] += chance;
                    } else if k * (h + 1) > r && h > 0 {
                        // The chances decrease past the mean.
                        break;
                    }
                }
            }
        }
    }

    /// Appends the averages after this key.
    fn record(&mut self, mut leaving: Vec<f64>) {
        let cells = self.chains as f64;
        let old = self.above.last().map_or(&[][..], Vec::as_slice);
        // One entry longer while the last one is not negligible.
        let longer = old.last().is_some_and(|last| *last > NEGLIGIBLE);
        let len = leaving.len().max(old.len() + usize::from(longer));
        leaving.resize(len, 0.0);
        for (j, chance) in old.iter().enumerate() {
            leaving[j] += chance * (1.0 - 1.0 / cells);
            if let Some(next) = leaving.get_mut(j + 1) {
                *next += chance / cells;
            }
        }
        self.above.push(leaving);
        let width = self.cap + 2;
        let mut sum = 0.0;
        for (h, rates) in self.match_rates.iter().enumerate() {
            for row in &self.rows[h * width..(h + 1) * width] {
                if !row.is_empty() {
                    let x = self.fewest..=self.cap;
                    sum += crate::dot::dot(&row[x.clone()], &rates[x]);
                }
            }
        }
        self.rates.push(sum);
    }
}

/// Records that a chain with `keys` keys moves to level 2 with `chance`.
fn leave(leaving: &mut Vec<f64>, keys: usize, chance: f64) {
    if chance > NEGLIGIBLE {
        if leaving.len() <= keys {
            leaving.resize(keys + 1, 0.0);
        }
        leaving[keys] += chance;
    }
}
