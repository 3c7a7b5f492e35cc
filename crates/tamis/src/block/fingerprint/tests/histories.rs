//! Everything that can happen to a block, in any order, beside a list that
//! remembers every key.

use alloc::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::block::fingerprint::{BlockLoad, Union, chain_share};

type Key = (u16, u64);

/// Chains are any, but fractions often share their first bits.
fn key() -> impl Strategy<Value = Key> {
    (any::<u16>(), 0u64..8, any::<u64>(), 0u32..64).prop_map(
        |(chain, few, noise, shift)| (chain, few << 61 ^ noise >> shift),
    )
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Insert(Key),
    InsertMany(u64, u16),
    /// A key as often as this; then this many of its copies leave.
    InsertCopies(Key, u16, u16),
    /// The key at this place of the list.
    Remove(usize),
    RemoveMany(u64, u16),
    Merge(u64, u16),
    /// With a block on the other side.
    Fold(bool, u64, u16),
    /// And keep this half.
    Split(bool),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => key().prop_map(Op::Insert),
        3 => (any::<u64>(), 0u16..60).prop_map(|(s, n)| Op::InsertMany(s, n)),
        3 => (key(), 1u16..80, 0u16..80)
            .prop_map(|(key, n, out)| Op::InsertCopies(key, n, out)),
        8 => any::<usize>().prop_map(Op::Remove),
        2 => (any::<u64>(), 0u16..60).prop_map(|(s, n)| Op::RemoveMany(s, n)),
        1 => (any::<u64>(), 0u16..90).prop_map(|(s, n)| Op::Merge(s, n)),
        1 => (any::<bool>(), any::<u64>(), 0u16..90)
            .prop_map(|(right, s, n)| Op::Fold(right, s, n)),
        1 => any::<bool>().prop_map(Op::Split),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    let block = prop_oneof![
        4 => Just(LINE),
        4 => Just(HALF),
        1 => Just(Block { remainder_bits: 9, ..LINE }),
        1 => Just(Block { remainder_bits: 9, ..HALF }),
        1 => Just(Block::new(100, 13)),
        1 => Just(Block { remainder_bits: 40, ..Block::new(1133, 128) }),
    ];
    let form = prop_oneof![
        2 => Just(Form::Plain),
        4 => Just(Form::Elastic),
        1 => (1u32..46).prop_map(Form::Capped),
    ];
    (block, form, 0..3).prop_map(|(block, form, heads)| {
        let shape = usable(block, form);
        match (heads, shape.form) {
            (0, _) => shape,
            (1, Form::Plain | Form::Elastic) => {
                shape.with_heads(HeadLayout::NibblesReversed)
            }
            _ => shape.with_heads(HeadLayout::Nibbles),
        }
    })
}

fn usable(block: Block, form: Form) -> Shape {
    // Two levels are made of lines and halves with room for heads.
    let form = match (form, block.block_bits) {
        (Form::Capped(cap), 256) => Form::Capped(cap.min(24)),
        (form, 256 | 512) => form,
        (Form::Capped(_), _) => Form::Plain,
        (form, _) => form,
    };
    Shape::new(block, form)
}

/// A block and the keys it must answer for.
#[derive(Clone)]
struct Beside {
    shape: Shape,
    /// Keys that are answered for are not stored again.
    once: bool,
    state: DecodedBlock,
    bytes: Vec<u8>,
    keys: Vec<(u32, u64)>,
}

impl Beside {
    fn new(shape: Shape, once: bool) -> Self {
        let state = DecodedBlock::Holding(Contents::default());
        let bytes = vec![0; shape.bytes()];
        Self { shape, once, state, bytes, keys: Vec::new() }
    }

    fn filled(shape: Shape, once: bool, seed: u64, count: u16) -> Self {
        let mut filled = Self::new(shape, once);
        filled.insert_many(seed, count);
        filled
    }

    fn insert_many(&mut self, seed: u64, count: u16) {
        let mut random = Random(seed);
        for _ in 0..count {
            let few = random.next() % 8;
            let fraction = few << 61 ^ random.next() >> (random.next() % 64);
            self.insert(self.shape.chain(random.next()), fraction);
        }
    }

    /// Inserts by the fast path, if any, and compares with the reference.
    fn insert(&mut self, chain: u32, fraction: u64) {
        let count = self.state.count(&self.shape, chain, fraction);
        if self.once && count != Some(0) {
            self.keys.push((chain, fraction));
            return;
        }
        let mut quick = self.bytes.clone();
        let insertion = fast(self.shape)
            .map(|fast| fast.insert(&mut quick, chain, fraction));
        if self.state.refuses(&self.shape, chain, fraction) {
            // Stuck or saturated.
            let stored = insertion.is_some_and(|insertion| {
                insertion != InsertOutcome::NeedsDecoding
            });
            assert!(!stored);
            assert_eq!(quick, self.bytes);
            self.keys.push((chain, fraction));
            return;
        }
        let entry = Entry::new(chain, fraction);
        let state =
            core::mem::replace(&mut self.state, DecodedBlock::Saturated);
        self.state = match (self.shape.form, state) {
            (Form::Capped(cap), DecodedBlock::Holding(mut contents)) => {
                if !contents.has_spilled(chain) {
                    self.keys.push((chain, fraction));
                    contents.insert_below(entry, cap);
                }
                // What has moved is the business of the second level.
                self.keys.retain(|&(chain, _)| !contents.has_spilled(chain));
                contents.settle(&self.shape)
            }
            (_, state) => {
                self.keys.push((chain, fraction));
                state.insert(&self.shape, entry)
            }
        };
        let old = self.bytes.clone();
        self.write();
        match insertion {
            Some(InsertOutcome::New | InsertOutcome::Repeated) => {
                assert_eq!(quick, self.bytes);
            }
            Some(InsertOutcome::NeedsDecoding) => assert_eq!(quick, old),
            None => {}
        }
    }

    fn remove(&mut self, at: usize) {
        // Only blocks that know their free slots give up keys.
        if self.shape.form != Form::Elastic || self.once {
            return;
        }
        if self.keys.is_empty() {
            return;
        }
        let (chain, fraction) = self.keys.swap_remove(at % self.keys.len());
        self.remove_copy(chain, fraction);
    }

    fn remove_copy(&mut self, chain: u32, fraction: u64) {
        let stuck = self.state.count(&self.shape, chain, fraction).is_none();
        let before = self.state.clone();
        match self.state.remove(&self.shape, chain, fraction) {
            Removal::Removed => assert!(!stuck),
            Removal::Stuck => assert!(stuck && self.state == before),
            Removal::Absent => panic!("lost"),
        }
        self.write();
    }

    fn apply(&mut self, op: Op) {
        let capped = matches!(self.shape.form, Form::Capped(_));
        let state = self.state.clone();
        match op {
            Op::Insert((chain, fraction)) => {
                self.insert(self.shape.chain(chain.into()), fraction);
            }
            Op::InsertMany(seed, count) => self.insert_many(seed, count),
            Op::InsertCopies((chain, fraction), inserted, removed) => {
                let chain = self.shape.chain(chain.into());
                for _ in 0..inserted {
                    self.insert(chain, fraction);
                }
                if self.shape.form != Form::Elastic || self.once {
                    return;
                }
                for _ in 0..removed.min(inserted) {
                    let key = (chain, fraction);
                    let at = self.keys.iter().rposition(|&it| it == key);
                    self.keys.swap_remove(at.expect("just inserted"));
                    self.remove_copy(chain, fraction);
                }
            }
            Op::Remove(at) => self.remove(at),
            Op::RemoveMany(seed, count) => {
                let mut random = Random(seed);
                for _ in 0..count {
                    self.remove(random.next() as usize);
                }
            }
            // Two levels do none of the following.
            _ if capped => {}
            Op::Merge(seed, count) => {
                let Self { shape, once, .. } = *self;
                let other = Self::filled(shape, once, seed, count);
                self.state = state.merge(other.state, &shape, once);
                self.keys.extend(other.keys);
            }
            Op::Fold(right, seed, count) => {
                let Self { shape, once, .. } = *self;
                let mut other = Self::filled(shape, once, seed, count);
                if right {
                    core::mem::swap(self, &mut other);
                }
                self.state =
                    self.state.clone().fold(other.state, &shape, once);
                for (keys, bit) in [(&mut self.keys, 0), (&mut other.keys, 1)]
                {
                    for (_, fraction) in keys {
                        *fraction = *fraction >> 1 | bit << 63;
                    }
                }
                self.keys.extend(other.keys);
            }
            Op::Split(right) => {
                self.shape = self.shape.with_form(Form::Elastic);
                let [left, other] = state.split(&self.shape, self.once);
                self.state = if right { other } else { left };
                self.keys
                    .retain(|&(_, fraction)| (fraction >> 63 == 1) == right);
                for (_, fraction) in &mut self.keys {
                    *fraction <<= 1;
                }
            }
        }
        self.write();
    }

    fn write(&mut self) {
        self.bytes = written(&self.shape, &self.state);
    }

    /// Everything that must hold at any time.
    fn check(&self, random: &mut Random) {
        let Self { shape, state, bytes, keys, .. } = self;
        let read = DecodedBlock::read(shape, bytes).unwrap();
        match (&read, state) {
            // An empty block does not store the number of slots it is cut for.
            (DecodedBlock::Holding(read), DecodedBlock::Holding(contents))
                if contents.entries.is_empty() =>
            {
                assert!(read.entries.is_empty());
                assert_eq!(read.spilled, contents.spilled);
            }
            _ => assert_eq!(&read, state),
        }
        assert_eq!(&written(shape, &read), bytes);
        check_summary(shape, &read, bytes);
        for &(chain, fraction) in keys {
            let reference = lookup(shape, bytes, chain, fraction);
            assert_eq!(reference, Verdict::Maybe);
            let stored = state.count(shape, chain, fraction);
            let inserted =
                keys.iter().filter(|&&key| key == (chain, fraction)).count();
            let least = if self.once { 1 } else { inserted as u64 };
            assert!(stored.is_none_or(|stored| stored >= least), "lost");
        }
        if let Some(fast) = fast(*shape) {
            for &(chain, fraction) in keys {
                let answer = fast.look(bytes, chain, fraction);
                assert_eq!(answer, Verdict::Maybe);
            }
            for _ in 0..50 {
                let chain = shape.chain(random.next());
                let fraction = near(state, random);
                assert_eq!(
                    fast.look(bytes, chain, fraction),
                    expected(shape, state, chain, fraction)
                );
            }
        }
    }
}

/// The count without taking apart, and what follows from it.
fn check_summary(shape: &Shape, state: &DecodedBlock, bytes: &[u8]) {
    let summary = BlockLoad::of(shape, bytes);
    let BlockLoad::Holding {
        slots,
        capacity,
        base,
        union,
        stuck,
        spilled_from,
    } = summary
    else {
        assert_eq!(*state, DecodedBlock::Saturated);
        assert_eq!(summary.rate(shape), 1.0);
        return;
    };
    let DecodedBlock::Holding(contents) = state else {
        panic!("a saturated block is said to hold {slots}");
    };
    assert_eq!(slots as usize, contents.entries.len());
    assert_eq!(capacity, contents.capacity);
    assert_eq!(base, shape.cut(contents.capacity).base);
    for chain in 0..shape.block.chains {
        assert_eq!(contents.has_spilled(chain), chain >= spilled_from);
    }
    assert_eq!(union, disjoint(contents, base));
    assert_eq!(stuck, stuck_groups(contents, base));
    assert_eq!(stuck > 0, contents.has_stuck_groups(shape));
    assert_eq!(summary.rate(shape), state.rate(shape));
    let shares = (0..shape.block.chains)
        .map(|chain| chain_share(shape, bytes, chain))
        .sum::<f64>();
    let rate = shares / f64::from(shape.block.chains);
    assert!((rate - state.rate(shape)).abs() < 1e-12);
}

/// Groups of 16 entries or more that agree in `base` bits.
fn stuck_groups(contents: &Contents, base: u32) -> u32 {
    let mut groups = BTreeMap::new();
    for entry in &contents.entries {
        let bits = entry.prefix.checked_shr(64 - base).unwrap_or(0);
        *groups.entry((entry.chain, bits)).or_insert(0) += 1;
    }
    groups.into_values().filter(|&entries| entries >= 16).count() as u32
}

/// The entries that neither a shorter nor an earlier equal one matches.
fn disjoint(contents: &Contents, base: u32) -> Union {
    let mut union = Union::default();
    for (at, entry) in contents.entries.iter().enumerate() {
        let covered = contents.entries.iter().enumerate().any(|(i, by)| {
            let first = (by.known, i) < (entry.known, at);
            first && by.chain == entry.chain && by.matches(entry.prefix)
        });
        if !covered {
            union.half_intervals += 1 << (base + 1 - entry.known);
            union.entries += 1;
        }
    }
    union
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn no_history_loses_a_key(
        shape in shape(),
        once: bool,
        first in (any::<u64>(), 0u16..460),
        ops in proptest::collection::vec(op(), 0..40),
    ) {
        let mut random = Random(first.0);
        let mut block = Beside::filled(shape, once, first.0, first.1);
        block.check(&mut random);
        for op in ops {
            block.apply(op);
            block.check(&mut random);
        }
    }

    /// The rate is the share of all chains and fractions that lookups find.
    #[test]
    fn the_rate_is_the_share_of_keys_that_match(
        shape in shape(),
        once: bool,
        // Few enough bits to look every fraction up.
        first in (any::<u64>(), 60u16..460),
        removals in 0u16..50,
    ) {
        let mut block = Beside::filled(shape, once, first.0, first.1);
        block.apply(Op::RemoveMany(first.0, removals));
        let DecodedBlock::Holding(contents) = &block.state else { return Ok(()) };
        let bits = shape.cut(contents.capacity).base + 1;
        prop_assume!(bits <= 8);
        let keys = (0..shape.block.chains).flat_map(|chain| {
            (0..1u64 << bits).map(move |prefix| (chain, prefix << (64 - bits)))
        });
        let bytes = &block.bytes;
        let found = keys.clone().filter(|&(chain, fraction)| {
            lookup(&shape, bytes, chain, fraction) == Verdict::Maybe
        });
        let share = found.count() as f64 / keys.count() as f64;
        let rate = BlockLoad::of(&shape, bytes).rate(&shape);
        prop_assert!((rate - share).abs() < 1e-12, "{} {}", rate, share);
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Damaged bytes are an error or decode to entries, never a panic, and
    /// all kernels agree.
    #[test]
    fn any_bytes_can_be_read(
        shape in shape(),
        seed: u64,
        density in 0u32..6,
        sparse_index: bool,
        probes in proptest::collection::vec(key(), 1..20),
    ) {
        let mut random = Random(seed);
        let mut bytes: Vec<u8> = (0..shape.bytes())
            .map(|_| {
                let [a, b, c, ..] = random.next().to_le_bytes();
                [0, a & b & c, a & b, a, a | b, a | b | c][density as usize]
            })
            .collect();
        if sparse_index {
            // With few chains, few entries are enough.
            for byte in &mut bytes[..shape.block.chains as usize / 8] {
                *byte &= (random.next() & random.next()) as u8;
            }
        }
        let state = DecodedBlock::read_or_saturated(&shape, &bytes);
        check_summary(&shape, &state, &bytes);
        let sound = written(&shape, &state) == bytes;
        for (chain, fraction) in probes {
            let chain = shape.chain(chain.into());
            let expected = expected(&shape, &state, chain, fraction);
            let reference = lookup(&shape, &bytes, chain, fraction);
            prop_assert_eq!(reference, expected);
            if let Some(fast) = fast(shape) {
                let answer = fast.look(&bytes, chain, fraction);
                if sound {
                    prop_assert_eq!(answer, expected);
                }
                let _ = fast.insert(&mut bytes.clone(), chain, fraction);
            }
        }
    }
}
