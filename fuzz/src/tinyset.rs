//! Histories of TinySets of every sort, compared with a multiset, and blocks
//! of arbitrary bytes.
use std::collections::BTreeMap;
use std::sync::OnceLock;

use arbitrary::{Arbitrary, Unstructured};
use tamis::{Builder, Error, Removal, Result, TinySet, inspect::Inspector};
use xxhash_rust::xxh3::xxh3_64;

#[derive(Debug, Clone, Copy, PartialEq, Arbitrary)]
enum Mode {
    Set,
    Repeats,
    Removable,
}

/// Settings of a filter. It has few blocks, so that short inputs fill them.
#[derive(Debug, Clone, Copy, Arbitrary)]
struct Recipe {
    mode: Mode,
    items: u8,
    sort: Sort,
    /// Whether loads may exceed those that blocks are designed for.
    overload: bool,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Sort {
    Line,
    Half,
    TwoLevel {
        wide: bool,
    },
    Free {
        block_bits: u8,
        chains: u8,
    },
    /// Lines with reversed heads.
    Crowded,
}

/// Consecutive keys, so that a short input fills blocks.
#[derive(Debug, Clone, Copy, Arbitrary)]
struct Keys {
    first: u16,
    count: u8,
}

impl Keys {
    fn all(self) -> Vec<u16> {
        let counts = 0..u16::from(self.count % 64);
        counts.map(|i| self.first.wrapping_add(i)).collect()
    }
}

#[derive(Debug, Arbitrary)]
enum Op {
    Insert(u16),
    InsertBatch(Keys),
    InsertParallel(Keys, u8),
    /// Remove the first inserted key from this one on.
    Remove(u16),
    RemoveMany(Keys),
    /// Remove keys, and insert about the same number.
    Replace(Keys, Keys),
    /// Remove a key that may be absent.
    RemoveAbsent(u16),
    MergeWith(Keys),
    MergeSelf,
    Fold,
    Grow,
    SaveAndLoad {
        misalign: u8,
    },
    Rebuild,
    Lookup(Keys),
}

#[derive(Debug)]
enum Input<'a> {
    History {
        recipe: Recipe,
        ops: Vec<Op>,
    },
    /// A filter whose blocks have arbitrary bytes.
    Blocks {
        recipe: Recipe,
        grown: bool,
        /// If not 0, half of the blocks become a second level.
        cap: u8,
        items: u16,
        keys: [u64; 4],
        /// Seed and density of random bytes behind `bytes`, so that a short
        /// input reaches all of a block; zeros if `None`.
        noise: Option<(u64, u8)>,
        bytes: &'a [u8],
    },
}

/// Longer histories take longer and find no more.
const MOST_OPS: usize = 60;

/// Manual impl: operations go on to the end of the input, while a derived
/// list ends at each element with probability 1/2.
impl<'a> Arbitrary<'a> for Input<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let recipe = u.arbitrary()?;
        if u.arbitrary()? {
            let mut ops = Vec::new();
            while !u.is_empty() && ops.len() < MOST_OPS {
                ops.push(u.arbitrary()?);
            }
            return Ok(Self::History { recipe, ops });
        }
        Ok(Self::Blocks {
            recipe,
            grown: u.arbitrary()?,
            cap: u.arbitrary()?,
            items: u.arbitrary()?,
            keys: u.arbitrary()?,
            noise: u.arbitrary()?,
            bytes: u.bytes(u.len())?,
        })
    }
}

/// Two-level designs with blocks of 256 and 512 bits, computed once: a
/// design takes longer than a history.
fn two_levels() -> &'static [Builder<TinySet>; 2] {
    static DESIGNS: OnceLock<[Builder<TinySet>; 2]> = OnceLock::new();
    DESIGNS.get_or_init(|| {
        [256, 512].map(|block_bits| {
            let builder = TinySet::builder().block_bits(block_bits);
            let builder = builder.fpr(0.0005).two_level();
            builder.resolve().expect("a design exists")
        })
    })
}

impl Recipe {
    /// The filter, unless its settings are refused.
    fn build(self) -> Option<TinySet> {
        let builder =
            TinySet::builder().items(u64::from(self.items)).bits_per_key(12.0);
        let builder = match self.sort {
            Sort::TwoLevel { wide } => {
                two_levels()[usize::from(wide)].items(self.items.into())
            }
            Sort::Line => builder,
            Sort::Crowded => builder.bits_per_key(9.0),
            Sort::Half => builder.block_bits(256),
            Sort::Free { block_bits, chains } => builder
                .block_bits(u32::from(block_bits) + 20)
                .chains(u32::from(chains) % 70 + 1),
        };
        let builder = match self.mode {
            Mode::Set => builder,
            Mode::Repeats => builder.repeats(),
            Mode::Removable => builder.removable(),
        };
        builder.build().ok()
    }
}

/// A filter and a multiset with the same keys.
struct Beside {
    filter: TinySet,
    /// An empty filter with the same number of blocks.
    empty: TinySet,
    mode: Mode,
    overload: bool,
    two_level: bool,
    model: BTreeMap<u16, u64>,
    /// Insertions minus removals, as counted by the filter.
    items: u64,
}

impl Beside {
    fn inserted(&mut self, keys: &[u16]) {
        self.items += keys.len() as u64;
        for &key in keys {
            *self.model.entry(key).or_default() += 1;
        }
    }

    /// Whether the load is beyond the fast paths. Without `overload`
    /// histories stay below: fuller blocks are decoded by every operation.
    fn is_full(&self) -> bool {
        let bits = u64::from(self.filter.block_bits());
        let most = if self.overload { bits } else { bits / 7 };
        self.items > self.filter.block_count() * most
    }

    fn insert_batch(&mut self, keys: &[u16]) {
        self.filter.insert_batch(keys);
        self.inserted(keys);
    }

    /// Removes the first inserted key from `from` on.
    fn remove(&mut self, from: u16) {
        let mut keys = self.model.range(from..).chain(&self.model);
        let Some((&key, _)) = keys.next() else { return };
        let result = self.filter.remove(&key);
        if self.mode != Mode::Removable {
            assert!(matches!(result, Err(Error::Unsupported { .. })));
            return;
        }
        assert_ne!(result.expect("removable"), Removal::Absent, "lost {key}");
        let count = self.model.get_mut(&key).expect("just seen");
        *count -= 1;
        if *count == 0 {
            self.model.remove(&key);
        }
        self.items -= 1;
    }

    fn merge<D: AsRef<[u8]>>(&mut self, other: &TinySet<D>) {
        let predicted =
            Inspector::new(&self.filter).merged_fpr(other).expect("the same");
        self.filter.merge_from(other).expect("the same settings");
        self.expect(predicted);
    }

    fn merge_with(&mut self, keys: &[u16]) {
        let mut other = self.empty.clone();
        other.insert_batch(keys);
        let bytes = other.to_bytes();
        let view = TinySet::from_bytes(&bytes[..]).expect("just written");
        self.merge(&view);
        self.inserted(keys);
    }

    /// Compares the rate with an earlier prediction.
    fn expect(&self, predicted: f64) {
        let found = self.filter.stats().expected_fpr;
        assert!((found - predicted).abs() < 1e-9, "{found} {predicted}");
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::MergeWith(_) | Op::MergeSelf | Op::Fold | Op::Grow
                if self.two_level =>
            {
                let before = self.filter.to_bytes();
                let same = self.filter.clone();
                assert!(self.filter.merge_from(&same).is_err());
                assert!(self.filter.halved().is_err());
                assert!(self.filter.doubled().is_err());
                assert_eq!(self.filter.to_bytes(), before);
            }
            Op::InsertBatch(_)
            | Op::InsertParallel(..)
            | Op::MergeWith(_)
            | Op::MergeSelf
                if self.is_full() => {}
            Op::Insert(key) => {
                let absent = !self.filter.contains(&key);
                assert_eq!(self.filter.insert(&key), absent);
                assert!(!absent || !self.model.contains_key(&key));
                self.inserted(&[key]);
            }
            Op::InsertBatch(keys) => self.insert_batch(&keys.all()),
            Op::InsertParallel(keys, threads) => {
                let keys = keys.all();
                let mut serial = self.filter.clone();
                serial.insert_batch(&keys);
                let hasher = *self.filter.hasher();
                self.filter.insert_parallel_with(
                    keys.chunks(3),
                    crate::threads(threads),
                    |keys, out| {
                        out.extend(keys.iter().map(|key| hasher.hash(key)));
                    },
                );
                assert_eq!(self.filter.to_bytes(), serial.to_bytes());
                self.inserted(&keys);
            }
            Op::Remove(from) => self.remove(from),
            Op::RemoveMany(keys) => {
                keys.all().into_iter().for_each(|key| self.remove(key));
            }
            Op::Replace(old, new) => {
                old.all().into_iter().for_each(|key| self.remove(key));
                let count = old.count % 64 + new.count % 8;
                self.insert_batch(&Keys { count, ..new }.all());
            }
            Op::RemoveAbsent(key) => {
                if self.mode == Mode::Removable && !self.filter.contains(&key)
                {
                    let before = self.filter.to_bytes();
                    let removal = self.filter.remove(&key);
                    assert_eq!(removal.expect("removable"), Removal::Absent);
                    assert_eq!(self.filter.to_bytes(), before);
                }
            }
            Op::MergeWith(keys) => self.merge_with(&keys.all()),
            Op::MergeSelf => {
                self.merge(&self.filter.clone());
                self.items *= 2;
                self.model.values_mut().for_each(|count| *count *= 2);
            }
            Op::Fold => {
                let blocks = self.filter.block_count();
                match self.filter.halved() {
                    Ok(folded) => {
                        assert_eq!(2 * folded.block_count(), blocks);
                        let predicted =
                            Inspector::new(&self.filter).folded_fpr();
                        self.filter = folded;
                        self.empty = self.empty.halved().expect("as many");
                        self.expect(predicted.expect("just done"));
                    }
                    Err(Error::NotFoldable { .. }) => {
                        assert_eq!(blocks % 2, 1);
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            Op::Grow => {
                if self.filter.block_count() < 32 {
                    let predicted = Inspector::new(&self.filter)
                        .grown_fpr()
                        .expect("small");
                    self.filter = self.filter.doubled().expect("small");
                    self.empty = self.empty.doubled().expect("small");
                    self.expect(predicted);
                }
            }
            Op::SaveAndLoad { misalign } => {
                let misalign = usize::from(misalign % 64);
                let mut buffer = vec![0; misalign];
                buffer.extend(self.filter.to_bytes());
                let view = TinySet::from_bytes(&buffer[misalign..])
                    .expect("just written");
                view.verify().expect("just written");
                assert_eq!(view.stats(), self.filter.stats());
                assert!(
                    Inspector::new(&view)
                        .stored()
                        .eq(Inspector::new(&self.filter).stored())
                );
                assert_eq!(view.to_bytes(), &buffer[misalign..]);
                self.filter = view.into_owned().expect("small");
            }
            Op::Rebuild => {
                let keys = self.model.iter().flat_map(|(&key, &count)| {
                    std::iter::repeat_n(key, count as usize)
                });
                self.filter = self.filter.rebuilt(keys).expect("small");
            }
            Op::Lookup(keys) => {
                let keys = keys.all();
                let batch = self.filter.contains_each(&keys);
                for (key, found) in keys.iter().zip(batch) {
                    assert_eq!(self.filter.contains(key), found);
                    // `None` if the block is saturated.
                    let count = self.filter.count(key);
                    assert_eq!(found, count != Some(0));
                }
            }
        }
    }

    fn check(&self) {
        assert_eq!(self.filter.len(), self.items);
        let keys: Vec<u16> = self.model.keys().copied().collect();
        let found = self.filter.contains_each(&keys);
        for (key, found) in keys.iter().zip(found) {
            assert!(found, "lost {key}");
        }
    }

    /// Checks that are too slow after every operation.
    fn check_counts(&self) {
        for (key, &count) in &self.model {
            assert!(self.filter.contains(key), "lost {key}");
            if let Some(stored) = self.filter.count(key) {
                let least = if self.mode == Mode::Set { 1 } else { count };
                assert!(stored >= least, "{key}: {stored} of {count}");
            }
        }
    }
}

fn history(recipe: Recipe, ops: Vec<Op>) {
    let Some(filter) = recipe.build() else { return };
    let empty = filter.clone();
    let mut beside = Beside {
        filter,
        empty,
        mode: recipe.mode,
        overload: recipe.overload,
        two_level: matches!(recipe.sort, Sort::TwoLevel { .. }),
        model: BTreeMap::new(),
        items: 0,
    };
    for op in ops {
        beside.apply(op);
        beside.check();
    }
    beside.check_counts();
    beside.filter.verify().expect("never damaged");
}

/// Bytes before the blocks.
const HEADER: usize = 192;
/// Offsets of header fields: number of keys, bytes of the header and of the
/// geometry, blocks of both levels, cap.
const ITEMS: usize = 40;
const HEADER_BYTES: usize = 64;
const GEOMETRY_BYTES: usize = 66;
const BLOCKS: usize = 72;
const SECOND_BLOCKS: usize = 80;
const CAP: usize = 100;

/// A file with these blocks and correct checksums.
fn file_of(filter: &TinySet, cap: u8, items: u64, blocks: &[u8]) -> Vec<u8> {
    let mut bytes = filter.to_bytes();
    let half = |at: usize| {
        usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
    };
    let (header, geometry) = (half(HEADER_BYTES), half(GEOMETRY_BYTES));
    let mut put = |at: usize, field: &[u8]| {
        bytes[at..at + field.len()].copy_from_slice(field);
    };
    put(ITEMS, &items.to_le_bytes());
    if cap > 0 {
        let second = filter.block_count() / 2;
        let first = filter.block_count() - second;
        put(BLOCKS, &first.to_le_bytes());
        put(SECOND_BLOCKS, &second.to_le_bytes());
        put(CAP, &u32::from(cap).to_le_bytes());
    }
    for (at, byte) in blocks.iter().enumerate() {
        put(header + at, &[*byte]);
    }
    let sum = xxh3_64(&bytes[header..]);
    let entry = 72 + geometry;
    bytes[entry + 24..entry + 32].copy_from_slice(&sum.to_le_bytes());
    let sum = xxh3_64(&bytes[..header - 8]);
    bytes[header - 8..header].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Fills with SplitMix64; `density` removes or adds ones.
fn fill(blocks: &mut [u8], seed: u64, density: u8) {
    let mut state = seed;
    for bytes in blocks.chunks_mut(2) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        for (to, [a, b, c, d]) in bytes
            .iter_mut()
            .zip([(z as u32).to_le_bytes(), ((z >> 32) as u32).to_le_bytes()])
        {
            *to = match density % 6 {
                0 => a,
                1 => a & b,
                2 => a & b & c,
                3 => a & b & c & d,
                4 => a | b,
                _ => a | b | c,
            };
        }
    }
}

/// Every operation on an opened file: an answer or an error, and every key
/// inserted afterwards is found.
fn survive(bytes: &[u8], mut hashes: Vec<u64>) -> Result<()> {
    // Refused only if such blocks cannot form two levels.
    let view = TinySet::from_bytes(bytes)?;
    // Hashes that belong to stored entries.
    let stored = Inspector::new(&view).stored().take(40).map(|entry| {
        let share = u128::from(entry.block) << 64
            | u128::from(entry.fingerprint) << (64 - entry.bits.clamp(1, 63));
        (share / u128::from(view.block_count())) as u64 & !0xffff
            | u64::from(entry.chain) << 10
    });
    hashes.extend(stored);
    let mut found = vec![false; hashes.len()];
    view.contains_hash_batch(&hashes, &mut found);
    for (&hash, &found) in hashes.iter().zip(&found) {
        assert_eq!(view.contains_hash(hash), found);
    }
    let verified = view.verify();
    if verified.is_ok() {
        // All kernels decode a valid block to the same entries.
        for (&hash, &found) in hashes.iter().zip(&found) {
            assert_eq!(view.count_hash(hash) != Some(0), found);
        }
    }
    let stats = view.stats();
    assert!((0.0..=1.0).contains(&stats.expected_fpr), "{stats:?}");
    assert_eq!(
        Inspector::new(&view).loads().saturated(),
        stats.saturated_blocks
    );

    let mut owned = TinySet::from_bytes(bytes)?.into_owned()?;
    for &hash in &hashes {
        owned.insert_hash(hash);
        assert!(owned.contains_hash(hash), "lost {hash:#x}");
    }
    // Two-level filters support none of the following.
    owned.merge_from(&view)?;
    let grown = owned.doubled()?;
    for &hash in &hashes {
        assert!(owned.contains_hash(hash), "lost {hash:#x}");
        assert!(grown.contains_hash(hash), "lost {hash:#x}");
    }
    match owned.halved() {
        Ok(folded) => {
            assert!(hashes.iter().all(|&hash| folded.contains_hash(hash)));
        }
        Err(Error::NotFoldable { blocks }) => assert_eq!(blocks % 2, 1),
        Err(other) => panic!("{other}"),
    }
    if owned.is_removable() {
        for &hash in &hashes {
            let _ = owned.remove_hash(hash)?;
        }
    }
    verified
}

pub fn run(input: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(input))
    else {
        return;
    };
    match input {
        Input::History { recipe, ops } => history(recipe, ops),
        Input::Blocks { recipe, grown, cap, items, keys, noise, bytes } => {
            let Some(mut filter) = recipe.build() else { return };
            let two_level = matches!(recipe.sort, Sort::TwoLevel { .. });
            if grown && !two_level {
                filter = filter.doubled().expect("small");
            }
            let payload = filter.to_bytes().len() - HEADER;
            let mut blocks = vec![0; payload];
            if let Some((seed, density)) = noise {
                fill(&mut blocks, seed, density);
            }
            for (to, from) in blocks.iter_mut().zip(bytes) {
                *to = *from;
            }
            let cap = if two_level { 0 } else { cap };
            let file = file_of(&filter, cap, items.into(), &blocks);
            let _ = survive(&file, keys.to_vec());
        }
    }
}
