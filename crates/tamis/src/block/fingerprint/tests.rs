//! The fast block against the reference, on every instruction set; both
//! against the blocks of another program, and through histories.

mod histories;
mod order;
mod removal;
mod vectors;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use tamis_theory::tinyset::Block;

use super::fast::{
    Bytes, Capped, Elastic, FastBlock, FormSpec, HeadSpec, InsertOutcome,
    Nibbles, Plain, RepeatPolicy, Reversed,
};
use super::layout::{Cut, Form, HeadLayout, Shape};
use super::ops::{Ops, Tail, TailTables};
use super::reference::{Contents, DecodedBlock, Entry, Removal, lookup};
use crate::arch::Scalar;
use crate::block::Verdict;

/// SplitMix64, the generator of the reference vectors.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

const LINE: Block = Block::new(512, 64);
const HALF: Block = Block::new(256, 32);

/// The layout of heads of 8 or 4 bits, slot 0 first.
fn heads_of(bits: u32) -> HeadLayout {
    match bits {
        8 => HeadLayout::Bytes,
        _ => HeadLayout::Nibbles,
    }
}

/// A line with reversed heads.
fn reversed(form: Form) -> Shape {
    Shape::new(LINE, form).with_heads(HeadLayout::NibblesReversed)
}

/// The fast block of a shape, on every instruction set of this processor: all
/// must agree.
trait Fast {
    fn look(&self, block: &[u8], chain: u32, fraction: u64) -> Verdict;

    fn insert(
        &self,
        block: &mut [u8],
        chain: u32,
        fraction: u64,
    ) -> InsertOutcome;
}

struct Specialised<const BYTES: usize, F, H> {
    tables: super::BlockTables,
    spec: core::marker::PhantomData<(F, H)>,
}

impl<const BYTES: usize, F: FormSpec, H: HeadSpec> Fast
    for Specialised<BYTES, F, H>
{
    fn look(&self, block: &[u8], chain: u32, fraction: u64) -> Verdict {
        let block = block.try_into().unwrap();
        let key = FastBlock::<BYTES, F, H>::key(chain, fraction);
        let fast = FastBlock::<BYTES, F, H>::new(&self.tables);
        let verdict = fast.lookup(Scalar, block, key);
        // The load that tables are made for changes no answer.
        for load in [0, 64] {
            let mut tables = self.tables;
            tables.set_load(load, true);
            let fast = FastBlock::<BYTES, F, H>::new(&tables);
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            if let Some(avx2) = crate::arch::Avx2::new() {
                assert_eq!(fast.lookup(avx2, block, key), verdict);
            }
            #[cfg(all(target_arch = "x86_64", not(miri), rustc_1_89))]
            if let Some(avx512) = crate::arch::Avx512::new() {
                assert_eq!(fast.lookup(avx512, block, key), verdict);
            }
            #[cfg(neon)]
            assert_eq!(fast.lookup(crate::arch::Neon, block, key), verdict);
            #[cfg(simd128)]
            assert_eq!(fast.lookup(crate::arch::Simd128, block, key), verdict);
            assert_eq!(fast.lookup(Scalar, block, key), verdict);
        }
        verdict
    }

    fn insert(
        &self,
        block: &mut [u8],
        chain: u32,
        fraction: u64,
    ) -> InsertOutcome {
        let fast = FastBlock::<BYTES, F, H>::new(&self.tables);
        let block: &mut [u8; BYTES] = block.try_into().unwrap();
        let before = *block;
        let insert = |repeats| {
            let mut block = before;
            let insertion =
                fast.insert(Scalar, &mut block, chain, fraction, repeats);
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            if let Some(avx2) = crate::arch::Avx2::new() {
                let mut again = before;
                let other =
                    fast.insert(avx2, &mut again, chain, fraction, repeats);
                assert_eq!((other, again), (insertion, block));
            }
            #[cfg(all(target_arch = "x86_64", not(miri), rustc_1_89))]
            if let Some(avx512) = crate::arch::Avx512::new() {
                let mut again = before;
                let other =
                    fast.insert(avx512, &mut again, chain, fraction, repeats);
                assert_eq!((other, again), (insertion, block));
            }
            #[cfg(any(neon, simd128))]
            {
                #[cfg(neon)]
                let token = crate::arch::Neon;
                #[cfg(simd128)]
                let token = crate::arch::Simd128;
                let mut again = before;
                let other =
                    fast.insert(token, &mut again, chain, fraction, repeats);
                assert_eq!((other, again), (insertion, block));
            }
            (insertion, block)
        };
        let (insertion, stored) = insert(RepeatPolicy::Store);
        let present =
            Fast::look(self, &before, chain, fraction) == Verdict::Maybe;
        let (tell, skip) = match (insertion, present) {
            (InsertOutcome::NeedsDecoding, _) => {
                assert_eq!(stored, before);
                let same = (InsertOutcome::NeedsDecoding, before);
                assert_eq!(insert(RepeatPolicy::StoreAndReport), same);
                // Long chains are decoded only where repeats are stored.
                return match insert(RepeatPolicy::Skip) {
                    (InsertOutcome::New, stored) => {
                        assert!(!present);
                        *block = stored;
                        InsertOutcome::New
                    }
                    (InsertOutcome::Repeated, left) => {
                        assert!(present && left == before);
                        InsertOutcome::NeedsDecoding
                    }
                    skip => {
                        assert_eq!(skip, same);
                        InsertOutcome::NeedsDecoding
                    }
                };
            }
            (InsertOutcome::New, false) => {
                ((InsertOutcome::New, stored), (InsertOutcome::New, stored))
            }
            (InsertOutcome::New, true) => (
                (InsertOutcome::Repeated, stored),
                (InsertOutcome::Repeated, before),
            ),
            (InsertOutcome::Repeated, _) => panic!("repeats are not reported"),
        };
        assert_eq!(insert(RepeatPolicy::StoreAndReport), tell);
        assert_eq!(insert(RepeatPolicy::Skip), skip);
        *block = stored;
        insertion
    }
}

/// The first specialisation that fits a shape.
fn fast(shape: Shape) -> Option<Box<dyn Fast>> {
    specialisations(shape).into_iter().next()
}

/// All specialisations that fit a shape.
fn specialisations(shape: Shape) -> Vec<Box<dyn Fast>> {
    fn boxed<const BYTES: usize, F: FormSpec, H: HeadSpec>(
        shape: Shape,
    ) -> Option<Box<dyn Fast>> {
        let tables = FastBlock::<BYTES, F, H>::tables(shape)?;
        let spec = core::marker::PhantomData;
        Some(Box::new(Specialised::<BYTES, F, H> { tables, spec }))
    }
    let all = [
        boxed::<64, Plain, Reversed>(shape),
        boxed::<64, Elastic, Reversed>(shape),
        boxed::<64, Plain, Nibbles>(shape),
        boxed::<64, Elastic, Nibbles>(shape),
        boxed::<64, Plain, Bytes>(shape),
        boxed::<64, Elastic, Bytes>(shape),
        boxed::<64, Capped, Bytes>(shape),
        boxed::<32, Plain, Nibbles>(shape),
        boxed::<32, Elastic, Nibbles>(shape),
        boxed::<32, Plain, Bytes>(shape),
        boxed::<32, Elastic, Bytes>(shape),
        boxed::<32, Capped, Bytes>(shape),
    ];
    all.into_iter().flatten().collect()
}

fn written(shape: &Shape, state: &DecodedBlock) -> Vec<u8> {
    let mut block = vec![0; shape.bytes()];
    state.write(shape, &mut block);
    block
}

/// The verdict that the fast block must give.
fn expected(
    shape: &Shape,
    state: &DecodedBlock,
    chain: u32,
    fraction: u64,
) -> Verdict {
    match state {
        DecodedBlock::Holding(contents) if contents.has_spilled(chain) => {
            Verdict::Continue
        }
        _ => match state.count(shape, chain, fraction) {
            Some(0) => Verdict::Absent,
            _ => Verdict::Maybe,
        },
    }
}

/// Looks keys up in a block without a fast path as it fills.
fn same_reference(shape: Shape, seed: u64, items: u32) {
    let mut random = Random(seed);
    let mut decoded = DecodedBlock::Holding(Contents::default());
    for _ in 0..items {
        let chain = shape.chain(random.next());
        let entry = Entry::new(chain, random.next());
        decoded = decoded.insert(&shape, entry);
        let block = written(&shape, &decoded);
        for _ in 0..20 {
            let chain = shape.chain(random.next());
            let fraction = near(&decoded, &mut random);
            assert_eq!(
                lookup(&shape, &block, chain, fraction),
                expected(&shape, &decoded, chain, fraction),
            );
        }
    }
}

/// Fills one block by both codecs, comparing bytes and answers all along.
fn same(shape: Shape, seed: u64, items: u32) {
    same_in(shape, seed, items, |_, chain| chain);
}

/// The same with only some of the chains, which become the longer.
fn same_in(
    shape: Shape,
    seed: u64,
    items: u32,
    some: impl Fn(u32, u32) -> u32,
) {
    let all = specialisations(shape);
    assert!(!all.is_empty());
    for fast in all {
        same_fast(&*fast, shape, seed, items, &some);
    }
}

fn same_fast(
    fast: &dyn Fast,
    shape: Shape,
    seed: u64,
    items: u32,
    some: &impl Fn(u32, u32) -> u32,
) {
    let mut random = Random(seed);
    let mut state = DecodedBlock::Holding(Contents::default());
    let mut block = vec![0; shape.bytes()];
    let mut quick = 0;
    for item in 0..items {
        let chain = some(item, shape.chain(random.next()));
        let fraction = random.next();
        if let DecodedBlock::Holding(contents) = &state {
            let slots = contents.entries.len() as u32;
            if matches!(shape.form, Form::Capped(cap) if slots == cap) {
                break;
            }
        }
        state = state.insert(&shape, Entry::new(chain, fraction));
        let bytes = written(&shape, &state);
        match fast.insert(&mut block, chain, fraction) {
            InsertOutcome::New | InsertOutcome::Repeated => quick += 1,
            InsertOutcome::NeedsDecoding => block.clone_from(&bytes),
        }
        assert_eq!(block, bytes, "item {item} of seed {seed}");
        assert_eq!(DecodedBlock::read(&shape, &block).as_ref(), Ok(&state));
        assert_eq!(fast.look(&block, chain, fraction), Verdict::Maybe);
        for probe in 0..20 {
            let mut chain = shape.chain(random.next());
            if probe % 2 == 0 {
                chain = some(item + probe, chain);
            }
            let fraction = near(&state, &mut random);
            let verdict = expected(&shape, &state, chain, fraction);
            assert_eq!(
                fast.look(&block, chain, fraction),
                verdict,
                "item {item} of seed {seed}"
            );
            assert_eq!(lookup(&shape, &block, chain, fraction), verdict);
        }
    }
    assert!(quick > 0 || items < 3);
}

/// A fraction like that of an entry, so that matches happen.
fn near(state: &DecodedBlock, random: &mut Random) -> u64 {
    let noise = random.next() >> (random.next() % 20);
    match state {
        DecodedBlock::Holding(contents) if !contents.entries.is_empty() => {
            let at = random.below(contents.entries.len());
            contents.entries[at].prefix ^ noise
        }
        _ => noise,
    }
}

#[test]
fn the_fast_block_equals_the_reference() {
    let short = |block| Block { remainder_bits: 9, ..block };
    for seed in 0..30 {
        for block in [LINE, HALF] {
            same(Shape::new(block, Form::Plain), seed, 130);
            same(
                Shape::new(block, Form::Plain).with_heads(HeadLayout::Nibbles),
                seed,
                130,
            );
            same(Shape::new(block, Form::Elastic), seed, 130);
            same(
                Shape::new(block, Form::Elastic)
                    .with_heads(HeadLayout::Nibbles),
                seed,
                130,
            );
            same_reference(Shape::new(short(block), Form::Plain), seed, 70);
        }
        same(reversed(Form::Plain), seed, 130);
        same(reversed(Form::Elastic), seed, 130);
        same(Shape::new(LINE, Form::Capped(45)), seed, 130);
        same(Shape::new(HALF, Form::Capped(17)), seed, 130);
    }
    // A few chains, of which one is longer than all others together.
    for (chains, head, form) in [
        (1, 8, Form::Plain),
        (2, 8, Form::Plain),
        (2, 8, Form::Elastic),
        (1, 4, Form::Plain),
        (2, 4, Form::Plain),
        (2, 4, Form::Elastic),
        (5, 4, Form::Plain),
    ] {
        for long in 0..chains {
            for shape in [
                Shape::new(LINE, form).with_heads(heads_of(head)),
                reversed(form),
            ] {
                same_in(shape, 9, 130, |item, chain| match item % 8 {
                    0 => chain % chains,
                    _ => long,
                });
            }
        }
    }
    // All chains, of which the first fills the words in which the others
    // would begin: ranks that are a word's bits or more.
    for form in [Form::Plain, Form::Elastic] {
        for long in [15, 16, 17, 18, 25, 40] {
            let items = long + 63;
            let first = |item: u32| item.saturating_sub(long - 1).min(63);
            for shape in [
                Shape::new(LINE, form).with_heads(HeadLayout::Nibbles),
                reversed(form),
            ] {
                same_in(shape, 5, items, |item, _| first(item));
                // In the opposite order, the last chain.
                same_in(shape, 5, items, |item, _| item.min(63));
            }
        }
    }
    same(Shape::new(LINE, Form::Plain), 1234, 455);
    same(
        Shape::new(LINE, Form::Plain).with_heads(HeadLayout::Nibbles),
        1234,
        455,
    );
    same(reversed(Form::Plain), 1234, 455);
    same(reversed(Form::Elastic), 1234, 455);
    same(
        Shape::new(HALF, Form::Elastic).with_heads(HeadLayout::Nibbles),
        1234,
        230,
    );
    same(Shape::new(LINE, Form::Elastic), 1234, 455);
    same(Shape::new(HALF, Form::Plain), 1234, 230);
    same(Shape::new(HALF, Form::Elastic), 1234, 230);
}

/// A block is taken apart for the entry with which it loses its heads, and
/// for no other.
#[test]
fn blocks_without_heads_are_filled_in_place() {
    for form in [Form::Plain, Form::Elastic] {
        for (shape, heads, most) in [
            (Shape::new(LINE, form).with_heads(HeadLayout::Nibbles), 89, 127),
            (reversed(form), 89, 127),
            (Shape::new(HALF, form).with_heads(HeadLayout::Nibbles), 44, 112),
        ] {
            // Two words are looked at, with a one in front and the flags.
            let most = most.min(shape.block.array_bits() / 2);
            let most = most.min(128 - form.flags());
            for fast in specialisations(shape) {
                let mut random = Random(11);
                let mut state = DecodedBlock::Holding(Contents::default());
                for entries in 1..=most {
                    let chain = shape.chain(random.next());
                    let fraction = random.next();
                    let mut block = written(&shape, &state);
                    let done = fast.insert(&mut block, chain, fraction);
                    let slow = done == InsertOutcome::NeedsDecoding;
                    assert_eq!(slow, entries == heads + 1, "{entries}");
                    let entry = Entry::new(chain, fraction);
                    state = state.insert(&shape, entry);
                }
            }
        }
    }
}

/// All tails at once, on every backend, against entries taken apart.
#[test]
fn tails_are_equal_where_entries_agree() {
    fn equal<T: Ops>(
        token: T,
        block: &[u8],
        tails: &TailTables,
        wanted: Tail,
    ) -> u64 {
        if let Ok(block) = <&[u8; 32]>::try_from(block) {
            return token.match_tails(block, tails, wanted);
        }
        let block: &[u8; 64] = block.try_into().unwrap();
        token.match_tails(block, tails, wanted)
    }
    let mut random = Random(7);
    let (mut agreed, mut compared) = (0, 0);
    for (block, form, head, before) in [
        (LINE, Form::Plain, 8, 0),
        (LINE, Form::Plain, 4, 0),
        (LINE, Form::Plain, 4, 1),
        (LINE, Form::Elastic, 8, 0),
        (LINE, Form::Elastic, 4, 1),
        (HALF, Form::Plain, 4, 0),
        (HALF, Form::Plain, 4, 1),
        (HALF, Form::Elastic, 4, 1),
    ] {
        let shape = Shape::new(block, form).with_heads(heads_of(head));
        let tails = TailTables::new(&shape, before);
        // With more entries heads are shorter, or not all entries are shown.
        let most = match (block, head, before) {
            (HALF, ..) => 44,
            (_, 8, _) => 49,
            (_, _, 0) => 63,
            _ => 89,
        };
        for entries in TailTables::least(shape.block, head)..=most {
            let mut state = DecodedBlock::Holding(Contents::default());
            for _ in 0..entries {
                let chain = shape.chain(random.next());
                let entry = Entry::new(chain, random.next());
                state = state.insert(&shape, entry);
            }
            let block = written(&shape, &state);
            let DecodedBlock::Holding(contents) = &state else {
                panic!("{entries} entries are not too many");
            };
            let Cut { head, base, .. } = shape.cut(entries);
            for turn in 0..20 {
                let fraction = near(&state, &mut random);
                let bits = (fraction << head >> 56) as u8;
                let worn = turn % 2 == 1;
                let wanted = Tail { entries, bits, worn };
                let found = equal(Scalar, &block, &tails, wanted);
                let mut here = 0u64;
                for bit in 0u32..64 {
                    let slot = bit.checked_sub(before).map(|s| s as usize);
                    let entry = slot.and_then(|s| contents.entries.get(s));
                    let Some(entry) = entry else { continue };
                    let nothing = entry.known > base && !entry.last_bit();
                    let bits = entry.known - head;
                    let bits = bits - u32::from(worn && nothing);
                    let differ = (entry.prefix ^ fraction) << head;
                    let agree = bits == 0 || differ >> (64 - bits) == 0;
                    let told = found >> bit & 1 == 1;
                    assert_eq!(told, agree, "{entries} entries");
                    agreed += u32::from(agree);
                    here |= 1 << bit;
                }
                compared += here.count_ones();
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                if let Some(avx2) = crate::arch::Avx2::new() {
                    let other = equal(avx2, &block, &tails, wanted);
                    assert_eq!(other & here, found & here);
                }
                #[cfg(all(target_arch = "x86_64", not(miri), rustc_1_89))]
                if let Some(avx512) = crate::arch::Avx512::new() {
                    let other = equal(avx512, &block, &tails, wanted);
                    assert_eq!(other & here, found & here);
                }
                #[cfg(neon)]
                {
                    let neon = crate::arch::Neon;
                    let other = equal(neon, &block, &tails, wanted);
                    assert_eq!(other & here, found & here);
                }
            }
        }
    }
    assert!(agreed > 1000 && compared > agreed, "{agreed} of {compared}");
}
