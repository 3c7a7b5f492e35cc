//! The filter: one TinySet per level.

use tamis::{KeyHasher, Result, TinySet};

use super::design::{Design, LINE};

/// Fingerprint blocks in levels: a key goes to the first level whose block
/// admits it.
pub(crate) struct Levels {
    design: Design,
    levels: Vec<Level>,
}

struct Level {
    filter: TinySet,
    /// Keys that share a block here must not share one in the next level.
    hasher: KeyHasher,
    /// Hash function of admission coins and tracking classes.
    tickets: KeyHasher,
    /// Keys in each block. The block itself has the number, so it is not
    /// counted as memory.
    loads: Vec<u16>,
    /// Classes of which a block refused a key, counted as memory.
    marks: Vec<u16>,
    absorbs: bool,
}

/// Keys found and blocks read by a number of lookups.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Lookups {
    pub(crate) found: u64,
    pub(crate) reads: u64,
}

impl std::ops::AddAssign for Lookups {
    fn add_assign(&mut self, other: Self) {
        self.found += other.found;
        self.reads += other.reads;
    }
}

impl Levels {
    pub(crate) fn new(design: &Design, blocks: u64) -> Result<Self> {
        let count = design.level_shares.len();
        let levels = (0..).zip(&design.level_shares).map(|(j, share)| {
            let wanted = (blocks as f64 * share).round().max(1.0) as u64;
            Level::new(j, wanted, j as usize + 1 == count)
        });
        let levels = levels.collect::<Result<_>>()?;
        Ok(Self { design: design.clone(), levels })
    }

    /// All bits, tracking bits included.
    pub(crate) fn bits(&self) -> u64 {
        let bits = self.levels.iter().map(|level| {
            let tracking =
                if level.absorbs { 0 } else { self.design.tracking_bits };
            let block = u64::from(LINE.block_bits + tracking);
            level.filter.block_count() * block
        });
        bits.sum()
    }

    /// Inserts absent keys, given by their hashes.
    pub(crate) fn insert_all(&mut self, hashes: &[u64]) {
        // A level's decisions do not depend on later levels, so inserting
        // level by level gives the same filter as key by key.
        let mut arriving = hashes.to_vec();
        for level in &mut self.levels {
            arriving = level.insert_all(&self.design, arriving);
        }
    }

    pub(crate) fn look_up(&self, hashes: &[u64]) -> Lookups {
        let mut all = Lookups::default();
        let mut arriving = hashes.to_vec();
        for level in &self.levels {
            all.reads += arriving.len() as u64;
            all.found += level.look_up(&self.design, &mut arriving);
        }
        all
    }
}

impl Level {
    fn new(j: u64, blocks: u64, absorbs: bool) -> Result<Self> {
        let filter = TinySet::builder()
            .items(blocks * 32)
            .bits_per_key(f64::from(LINE.block_bits) / 32.0)
            .repeats()
            .build()?;
        let blocks = filter.block_count() as usize;
        Ok(Self {
            filter,
            hasher: KeyHasher::xxh3(2 * j),
            tickets: KeyHasher::xxh3(2 * j + 1),
            loads: vec![0; blocks],
            marks: vec![0; blocks],
            absorbs,
        })
    }

    /// Block of a hash, the same as in the filter.
    fn block(&self, hash: u64) -> usize {
        let blocks = self.loads.len() as u128;
        ((u128::from(hash) * blocks) >> 64) as usize
    }

    /// Class of the key if the block refuses it. `hash` is the key's, not
    /// the level's.
    fn refused(
        &self,
        design: &Design,
        block: usize,
        hash: u64,
    ) -> Option<u32> {
        let load = u32::from(self.loads[block]);
        if self.absorbs || load < design.threshold {
            return None;
        }
        // Derived from the hash: a lookup repeats the insertion's coin.
        let ticket = self.tickets.hash(&hash);
        let coin = (ticket >> 32) as f64 / 2f64.powi(32);
        if load == design.threshold && coin < design.admission {
            return None;
        }
        let class = (ticket & 0xffff_ffff) * u64::from(design.tracking_bits);
        Some((class >> 32) as u32)
    }

    /// Inserts the admitted keys, and returns the refused ones.
    fn insert_all(&mut self, design: &Design, hashes: Vec<u64>) -> Vec<u64> {
        let mut refused = Vec::new();
        let mut taken = Vec::with_capacity(hashes.len());
        for hash in hashes {
            let own = self.hasher.hash(&hash);
            let block = self.block(own);
            match self.refused(design, block, hash) {
                Some(class) => {
                    self.marks[block] |= 1 << class;
                    refused.push(hash);
                }
                None => {
                    self.loads[block] += 1;
                    taken.push(own);
                }
            }
        }
        self.filter.insert_hash_batch(&taken);
        refused
    }

    /// Counts the keys found, and retains those to look up in the next
    /// level.
    fn look_up(&self, design: &Design, hashes: &mut Vec<u64>) -> u64 {
        let own: Vec<u64> =
            hashes.iter().map(|hash| self.hasher.hash(hash)).collect();
        let mut found = vec![false; own.len()];
        self.filter.contains_hash_batch(&own, &mut found);
        let mut at = 0;
        hashes.retain(|hash| {
            let (own, found) = (own[at], found[at]);
            at += 1;
            let block = self.block(own);
            let class = match found {
                true => None,
                false => self.refused(design, block, *hash),
            };
            class.is_some_and(|class| {
                design.tracking_bits == 0
                    || self.marks[block] >> class & 1 != 0
            })
        });
        found.iter().map(|found| u64::from(*found)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::design::Model;
    use super::*;

    const KEYS: u64 = 400_000;

    fn hashes(keys: std::ops::Range<u64>) -> Vec<u64> {
        keys.map(|key| KeyHasher::default().hash(&key)).collect()
    }

    fn design(tracking_bits: u32, level_shares: &[f64]) -> Design {
        Design {
            level_shares: level_shares.to_vec(),
            threshold: 40,
            admission: 0.4,
            tracking_bits,
        }
    }

    /// A filter of 38 keys per block, and its prediction.
    fn filled(design: &Design) -> (Levels, tamis_theory::Prediction) {
        let mut levels = Levels::new(design, KEYS / 38).unwrap();
        levels.insert_all(&hashes(0..KEYS));
        let load = design.block_bits() * KEYS as f64 / levels.bits() as f64;
        (levels, Model::new().predict(design, load))
    }

    fn designs() -> impl Iterator<Item = Design> {
        let shares: [&[f64]; 3] =
            [&[0.95, 0.05], &[0.9, 0.08, 0.02], &[0.85, 0.1, 0.04, 0.01]];
        let all = shares.into_iter().zip([0, 2, 4]);
        all.chain([(shares[0], 1), (shares[0], 8)])
            .map(|(shares, bits)| design(bits, shares))
    }

    #[test]
    fn nothing_is_lost_and_reads_are_as_predicted() {
        for design in designs() {
            let (levels, expected) = filled(&design);
            let members = levels.look_up(&hashes(0..KEYS));
            assert_eq!(members.found, KEYS, "{design:?}");
            let hit = members.reads as f64 / KEYS as f64;
            assert!((hit - expected.reads_hit).abs() < 0.005, "{design:?}");
            let strangers = 4 * KEYS;
            let missed = levels.look_up(&hashes(KEYS..KEYS + strangers));
            let miss = missed.reads as f64 / strangers as f64;
            assert!((miss - expected.reads_miss).abs() < 0.02, "{design:?}");
            let rate = missed.found as f64 / strangers as f64;
            // At least 1000 false positives, in blocks with random loads.
            assert!((rate / expected.fpr - 1.0).abs() < 0.15, "{design:?}");
        }
    }

    /// `loads` follow from the blocks, so they need no memory.
    #[test]
    fn loads_are_those_of_the_blocks() {
        for design in designs() {
            let (levels, _) = filled(&design);
            let mut items = 0;
            for level in &levels.levels {
                let mut histogram = vec![0; 449];
                for load in &level.loads {
                    histogram[usize::from(*load)] += 1;
                }
                let stored =
                    tamis::inspect::Inspector::new(&level.filter).loads();
                histogram.truncate(stored.blocks().len());
                assert_eq!(stored.blocks(), histogram);
                // A block that refuses keys keeps its load.
                let most = stored.blocks().len() as u32 - 1;
                assert!(level.absorbs || most <= design.threshold + 1);
                items += stored.items();
            }
            assert_eq!(items, KEYS);
        }
    }

    #[test]
    fn marks_spare_reads_and_are_charged() {
        let reads = |bits| {
            let design = design(bits, &[0.95, 0.05]);
            let (levels, _) = filled(&design);
            let blocks = levels.levels[0].filter.block_count();
            let last = levels.levels[1].filter.block_count();
            let charged = blocks * u64::from(512 + bits) + last * 512;
            assert_eq!(levels.bits(), charged);
            levels.look_up(&hashes(KEYS..2 * KEYS)).reads
        };
        let reads = [0, 1, 2, 4, 8].map(reads);
        assert!(reads.windows(2).all(|pair| pair[0] > pair[1]), "{reads:?}");
    }
}
