//! Spreading keys that share a bucket, by raising its counter.

use std::collections::BTreeMap;

use super::{FastHashTable, MOST};

impl FastHashTable {
    /// Moves keys out of buckets with several, as far as the heuristic finds
    /// room. Returns the keys that still share a bucket beyond the first.
    ///
    /// The counter of such a bucket is raised, one at a time, until some of
    /// its keys select other buckets and fewer keys share one than before;
    /// if no value does that, the counter keeps the old. Passes over all
    /// buckets are repeated while one helps. Zero counters stay zero, so
    /// absent keys read as often as before.
    ///
    /// ```
    /// use tamis_lab::baseline::FastHashTable;
    /// let keys: Vec<u64> = (0..1000).collect();
    /// let mut table = FastHashTable::built(&keys, 6500, 5);
    /// assert!(table.collisions() > table.balance());
    /// assert!(keys.iter().all(|key| table.read(*key).found));
    /// ```
    pub fn balance(&mut self) -> usize {
        loop {
            let before = self.collisions();
            for bucket in 0..self.stored.len() {
                if self.stored[bucket].len() > 1 {
                    self.spread(bucket);
                }
            }
            let after = self.collisions();
            if after == 0 || after == before {
                return after;
            }
        }
    }

    /// Raises the counter of a bucket until fewer keys share a bucket.
    fn spread(&mut self, bucket: usize) {
        let counter = self.counters[bucket];
        let keys = self.stored[bucket].clone();
        for raised in counter + 1..=MOST {
            self.counters[bucket] = raised;
            if self.sharing_after(bucket, &keys) < keys.len() - 1 {
                self.raised[bucket] += raised - counter;
                for key in keys {
                    self.relocate(key, bucket);
                }
                return;
            }
        }
        self.counters[bucket] = counter;
    }

    /// Keys that would share a bucket if `keys`, all of `bucket`, were
    /// stored where the counters now select: those added to the other
    /// buckets, and those that stay.
    fn sharing_after(&self, bucket: usize, keys: &[u64]) -> usize {
        let mut arriving: BTreeMap<usize, usize> = BTreeMap::new();
        for key in keys {
            *arriving.entry(self.selected(*key)).or_default() += 1;
        }
        let shared = arriving.into_iter().map(|(to, arriving)| {
            let own = to == bucket;
            let stored = if own { 0 } else { self.stored[to].len() };
            arriving - usize::from(stored == 0)
        });
        shared.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::Baseline;
    use crate::simulation::Keys;

    #[test]
    fn balancing_removes_most_collisions_and_no_zero() {
        for (run, buckets) in [(1, 40_000), (2, 60_000)] {
            let keys = Keys::new(run);
            let members: Vec<u64> = keys.members(10_000).collect();
            let mut table = FastHashTable::built(&members, buckets, 6);
            let before = table.clone();
            let left = table.balance();
            assert_eq!(left, table.collisions());
            let share = left as f64 / before.collisions() as f64;
            assert!(share < 0.3, "{buckets}: {share}");
            for key in &members {
                assert!(table.read(*key).found);
            }
            for key in keys.strangers(10_000) {
                assert_eq!(table.contains(key), before.contains(key));
            }
            // A second call finds nothing more.
            let counters = table.counters.clone();
            assert_eq!(table.balance(), left);
            assert_eq!(table.counters, counters);
        }
    }
}
