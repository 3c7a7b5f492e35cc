//! Contents of a block after the same keys in another order, or in parts that
//! are merged: why filters built in parts have no canonical bytes.

use super::*;

const PLAIN: Shape = Shape::new(LINE, Form::Plain);

/// Entries of a block at a rate of 0.1 %.
const LOAD: usize = 40;

const BLOCKS: usize = 2000;

type Key = (u32, u64);

fn keys(random: &mut Random) -> Vec<Key> {
    let key = |_| (PLAIN.chain(random.next()), random.next());
    (0..LOAD).map(key).collect()
}

fn filled<'a>(
    keys: impl Iterator<Item = &'a Key>,
    once: bool,
) -> DecodedBlock {
    let mut block = DecodedBlock::Holding(Contents::default());
    for &(chain, fraction) in keys {
        if !once || block.count(&PLAIN, chain, fraction) == Some(0) {
            block = block.insert(&PLAIN, Entry::new(chain, fraction));
        }
    }
    block
}

/// The entries in a canonical order, each with at most `bits` bits.
fn sorted(block: &DecodedBlock, bits: u32) -> Vec<(u32, u64, u32)> {
    let DecodedBlock::Holding(contents) = block else { panic!("saturated") };
    let mut entries: Vec<_> = contents
        .entries
        .iter()
        .map(|entry| {
            let known = entry.known.min(bits);
            let kept = !u64::MAX.checked_shr(known).unwrap_or(0);
            (entry.chain, entry.prefix & kept, known)
        })
        .collect();
    entries.sort_unstable();
    entries
}

/// The block of the keys in their order; reversed; and as a merge of parts.
fn three_ways(keys: &[Key], once: bool) -> [DecodedBlock; 3] {
    let (first, second) = keys.split_at(LOAD / 3);
    let second = filled(second.iter(), once);
    [
        filled(keys.iter(), once),
        filled(keys.iter().rev(), once),
        filled(first.iter(), once).merge(second, &PLAIN, once),
    ]
}

#[test]
fn blocks_with_repeats_differ_by_the_extra_bit_alone() {
    let mut random = Random(1);
    let mut differ = [0; 2];
    for _ in 0..BLOCKS {
        let [one, others @ ..] = three_ways(&keys(&mut random), false);
        let base = PLAIN.cut(LOAD as u32).base;
        for (other, differ) in others.iter().zip(&mut differ) {
            assert_eq!(sorted(&one, base), sorted(other, base));
            *differ += usize::from(sorted(&one, 64) != sorted(other, 64));
        }
    }
    // In the chain that slot `wide` divides, other keys have the extra bit: no
    // order of the entries makes these blocks equal.
    assert_eq!(differ, [528, 292]);
}

#[test]
fn blocks_without_repeats_differ_in_the_number_of_entries() {
    let mut random = Random(2);
    let mut differ = [0; 2];
    for _ in 0..BLOCKS {
        let [one, others @ ..] = three_ways(&keys(&mut random), true);
        for (other, differ) in others.iter().zip(&mut differ) {
            let (one, other) = (sorted(&one, 64), sorted(other, 64));
            *differ += usize::from(one.len() != other.len());
        }
    }
    // A key that an entry matches is not stored: this depends on the length
    // of the fingerprints when it comes.
    assert_eq!(differ, [8, 6]);
}
