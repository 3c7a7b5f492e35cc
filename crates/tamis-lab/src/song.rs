//! The fast hash table of Song, Dharmapurikar, Turner and Lockwood, *Fast
//! Hash Table Lookup Using Extended Bloom Filter: An Aid to Network
//! Processing*, with its basic pruning: the baseline of summaries.
//!
//! Every key is hashed to k buckets, and each bucket has a small counter of
//! the keys hashed to it. The key itself is stored only in that of its
//! buckets with the smallest counter, of equals in the one with the lowest
//! address, and a lookup reads only that bucket. The table is built once
//! from all keys: a later insertion would move other keys, and a removal
//! needs a copy of the table before pruning.

use tamis::KeyHasher;

/// A pruned table.
pub(crate) struct FastHashTable {
    hashers: Vec<KeyHasher>,
    /// Keys hashed to each bucket, saturating at three bits.
    counters: Vec<u8>,
    /// Index in `keys` of each bucket's first key.
    starts: Vec<u32>,
    /// All keys, ordered by bucket.
    keys: Vec<u64>,
}

/// Result of a lookup, and the number of buckets read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lookup {
    pub(crate) found: bool,
    pub(crate) reads: u32,
}

/// Bits of a counter.
pub(crate) const COUNTER_BITS: u32 = 3;
const MOST: u8 = (1 << COUNTER_BITS) - 1;

impl FastHashTable {
    /// A table of distinct `keys`, each hashed to `choices` buckets.
    pub(crate) fn new(
        keys: &[u64],
        buckets: u32,
        choices: u32,
        seed: u64,
    ) -> Self {
        let hashers = (0..u64::from(choices))
            .map(|i| KeyHasher::xxh3(seed.wrapping_mul(64).wrapping_add(i)))
            .collect();
        let mut table = Self {
            hashers,
            counters: vec![0; buckets as usize],
            starts: Vec::new(),
            keys: vec![0; keys.len()],
        };
        for &key in keys {
            for bucket in table.buckets(key).collect::<Vec<_>>() {
                let counter = &mut table.counters[bucket];
                *counter = (*counter + 1).min(MOST);
            }
        }
        table.prune(keys);
        table
    }

    /// Keeps each key in one bucket with the smallest counter.
    fn prune(&mut self, keys: &[u64]) {
        let kept: Vec<usize> =
            keys.iter().map(|key| self.chosen(*key)).collect();
        self.starts = vec![0; self.counters.len() + 1];
        for bucket in &kept {
            self.starts[bucket + 1] += 1;
        }
        for i in 1..self.starts.len() {
            self.starts[i] += self.starts[i - 1];
        }
        let mut next = self.starts.clone();
        for (key, bucket) in keys.iter().zip(kept) {
            self.keys[next[bucket] as usize] = *key;
            next[bucket] += 1;
        }
    }

    fn buckets(&self, key: u64) -> impl Iterator<Item = usize> {
        let count = self.counters.len() as u128;
        self.hashers.iter().map(move |hasher| {
            let hash = u128::from(hasher.hash(&key));
            ((hash * count) >> 64) as usize
        })
    }

    fn chosen(&self, key: u64) -> usize {
        // Ties go to the lowest address, as in the paper. Keys then share a
        // bucket more often than with ties by order of the hashes, because
        // all of them prefer low addresses.
        let counted = self.buckets(key).map(|i| (self.counters[i], i));
        counted.min().map_or(0, |(_, bucket)| bucket)
    }

    /// Looks a key up. The counters select one bucket; if its counter is
    /// zero, the key is absent without a read.
    pub(crate) fn look_up(&self, key: u64) -> Lookup {
        let bucket = self.chosen(key);
        if self.counters[bucket] == 0 {
            return Lookup { found: false, reads: 0 };
        }
        Lookup { found: self.bucket(bucket).contains(&key), reads: 1 }
    }

    fn bucket(&self, bucket: usize) -> &[u64] {
        let [start, end] =
            [self.starts[bucket], self.starts[bucket + 1]].map(|i| i as usize);
        &self.keys[start..end]
    }

    /// Buckets with more than one key. Each needs a second read if a bucket
    /// has one slot.
    pub(crate) fn crowded(&self) -> usize {
        self.starts.windows(2).filter(|pair| pair[1] - pair[0] > 1).count()
    }
}

/// Share of absent keys for which a lookup reads a bucket.
pub(crate) fn false_positives(
    items: u64,
    buckets: u32,
    choices: u32,
    strangers: u64,
) -> f64 {
    let keys: Vec<u64> = (0..items).collect();
    let table = FastHashTable::new(&keys, buckets, choices, 0);
    let reads = (items..items + strangers).map(|key| table.look_up(key).reads);
    reads.map(u64::from).sum::<u64>() as f64 / strangers as f64
}

/// Number of tables, of `trials` with different keys, in which some bucket
/// has more than one key.
pub(crate) fn failures(
    items: u64,
    buckets: u32,
    choices: u32,
    trials: u64,
) -> u64 {
    let crowded = |trial: &u64| {
        let first = trial * items;
        let keys: Vec<u64> = (first..first + items).collect();
        FastHashTable::new(&keys, buckets, choices, *trial).crowded() > 0
    };
    (0..trials).filter(crowded).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half the width of a 99.9 % interval, in deviations.
    const DEVIATIONS: f64 = 3.29;

    #[test]
    fn every_key_is_found_with_one_read() {
        let keys: Vec<u64> = (0..10_000).map(|i| i * 7 + 1).collect();
        let table = FastHashTable::new(&keys, 131_072, 10, 1);
        for key in &keys {
            let expected = Lookup { found: true, reads: 1 };
            assert_eq!(table.look_up(*key), expected);
            // Lowest address among the buckets with the smallest counter.
            let mut buckets: Vec<usize> = table.buckets(*key).collect();
            buckets.sort_unstable();
            buckets.sort_by_key(|bucket| table.counters[*bucket]);
            assert!(table.bucket(buckets[0]).contains(key));
        }
    }

    /// Probability that no counter of an absent key is zero.
    fn predicted(items: u64, buckets: u32, choices: u32) -> f64 {
        let throws = items as f64 * f64::from(choices);
        let empty = throws * (-1.0 / f64::from(buckets)).ln_1p();
        (-empty.exp_m1()).powi(choices as i32)
    }

    #[test]
    fn strangers_read_as_often_as_predicted() {
        let (items, buckets, strangers) = (10_000, 65_536, 400_000);
        let measured = false_positives(items, buckets, 6, strangers);
        let rate = predicted(items, buckets, 6);
        // The number of zero counters of this table varies, too: 2 % more.
        let variance = rate * (1.0 - rate) / strangers as f64;
        let room = DEVIATIONS * variance.sqrt() + 0.02 * rate;
        assert!((measured - rate).abs() < room, "{measured} {rate}");
    }

    #[test]
    fn strangers_are_not_found() {
        let keys: Vec<u64> = (0..1000).collect();
        let table = FastHashTable::new(&keys, 2048, 3, 2);
        let found = (1000..20_000).filter(|key| table.look_up(*key).found);
        assert_eq!(found.count(), 0);
    }

    fn reference() -> Vec<serde_json::Value> {
        let file = include_str!(
            "../../tamis-theory/tests/fixtures/multilevel_reference.json"
        );
        let all: serde_json::Value = serde_json::from_str(file).unwrap();
        all["simulated_song"].as_array().unwrap().clone()
    }

    /// Compares failures with those of another program, within the interval
    /// of both numbers of trials.
    #[test]
    fn pruned_tables_fail_as_often_as_elsewhere() {
        for (row, trials) in reference().iter().zip([300, 20, 20]) {
            let number = |name: &str| row[name].as_f64().unwrap();
            let (items, buckets) = (number("n") as u64, number("buckets"));
            let (buckets, choices) = (buckets as u32, number("k") as u32);
            let rate = predicted(items, buckets, choices);
            assert!((rate / number("false_positive") - 1.0).abs() < 1e-6);
            let failed = failures(items, buckets, choices, trials) as f64;
            let (here, there) = (trials as f64, number("trials"));
            let other = number("p_some_bucket_gt1") * there;
            let pooled = (failed + other + 1.0) / (here + there + 2.0);
            let variance =
                pooled * (1.0 - pooled) * (1.0 / here + 1.0 / there);
            let gap = failed / here - other / there;
            assert!(
                gap.abs() < DEVIATIONS * variance.sqrt(),
                "{row} {failed}"
            );
        }
        assert_eq!(reference().len(), 3);
    }

    #[test]
    fn too_small_a_table_is_crowded() {
        // 200 keys in 50 buckets.
        assert_eq!(failures(200, 50, 3, 5), 5);
    }
}
