//! Blocks written by an independent program: the same entries, in another
//! layout.

use super::*;

/// Blocks and their entries; the file's header describes its format.
const FIXTURE: &str =
    include_str!("../../../../tests/fixtures/tinyset_blocks.txt");

const REMAINDER_BITS: u32 = 26;

struct Vector {
    entries: u32,
    hits: usize,
    words: Vec<u64>,
}

fn vectors() -> Vec<Vector> {
    let lines = FIXTURE.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut fields = line.split_whitespace();
            let entries = fields.next().unwrap().parse().unwrap();
            let hits = fields.next().unwrap().parse().unwrap();
            let words = fields
                .map(|word| u64::from_str_radix(word, 16).unwrap())
                .collect();
            Vector { entries, hits, words }
        })
        .collect()
}

/// The keys of the other program. It keeps the low end of a remainder, this
/// one the front of a fraction: the same bits, the first one first.
fn keys(state: u64) -> impl Iterator<Item = (u32, u64)> {
    let mut random = Random(state);
    core::iter::repeat_with(move || {
        let z = random.next();
        let remainder = z >> 6 & ((1 << REMAINDER_BITS) - 1);
        ((z & 63) as u32, remainder.reverse_bits())
    })
}

impl Vector {
    fn bit(&self, at: u32) -> bool {
        self.words[at as usize / 64] >> (at % 64) & 1 == 1
    }

    /// Decodes the entries by the fixture's layout.
    fn decode(&self) -> Vec<Entry> {
        let (array, n) = (64, self.entries);
        let (mut base, mut wide) = (448 / n - 1, 448 % n);
        if base >= REMAINDER_BITS {
            (base, wide) = (REMAINDER_BITS, 0);
        }
        let mut chains = (0..64).filter(|&chain| self.bit(chain));
        let mut chain = chains.next();
        let mut at = array + n;
        let mut entries = Vec::new();
        for slot in 0..n {
            let known = base + u32::from(slot < wide);
            let mut fingerprint: u64 = 0;
            for bit in 0..known {
                fingerprint |= u64::from(self.bit(at + bit)) << bit;
            }
            at += known;
            let prefix = fingerprint.reverse_bits();
            entries.push(Entry { chain: chain.unwrap(), prefix, known });
            if self.bit(array + slot) {
                chain = chains.next();
            }
        }
        assert_eq!(chain, None, "the last chain ends with the last entry");
        entries
    }
}

#[test]
fn another_program_stores_the_same() {
    let shape = Shape::new(LINE, Form::Plain);
    let fast = fast(shape).unwrap();
    let all = vectors();
    assert_eq!(all.len(), 16);
    for vector in all {
        let n = vector.entries;
        let mut state = DecodedBlock::Holding(Contents::default());
        let mut block = vec![0; shape.bytes()];
        for (chain, fraction) in keys(0x1234).take(n as usize) {
            state = state.insert(&shape, Entry::new(chain, fraction));
            match fast.insert(&mut block, chain, fraction) {
                InsertOutcome::New | InsertOutcome::Repeated => {}
                InsertOutcome::NeedsDecoding => {
                    state.write(&shape, &mut block);
                }
            }
        }
        assert_eq!(DecodedBlock::read(&shape, &block).as_ref(), Ok(&state));
        let DecodedBlock::Holding(contents) = &state else {
            panic!("{n} entries are not too many");
        };
        assert_eq!(contents.entries, vector.decode(), "{n} entries");
        let hits = keys(0x9999)
            .take(100_000)
            .filter(|&(chain, fraction)| {
                fast.look(&block, chain, fraction) == Verdict::Maybe
            })
            .count();
        assert_eq!(hits, vector.hits, "{n} entries");
    }
}

/// The entry that has no encoding.
#[test]
fn one_entry_too_many_saturates() {
    for (block, form, most) in [
        (LINE, Form::Plain, 448),
        (LINE, Form::Elastic, 446),
        (HALF, Form::Plain, 224),
        (HALF, Form::Elastic, 222),
        (Block::new(100, 13), Form::Plain, 87),
        (Block::new(100, 13), Form::Elastic, 85),
    ] {
        let shape = Shape::new(block, form);
        let mut state = DecodedBlock::Holding(Contents::default());
        // Repeats of one key fill the block like different keys.
        let key = 0x5555 << 48;
        for count in 1..=most {
            state = state.insert(&shape, Entry::new(7, key));
            let counted = (count < 16).then_some(count);
            assert_eq!(state.count(&shape, 7, key), counted);
            assert_eq!(state.count(&shape, 8, key), Some(0));
        }
        let bytes = written(&shape, &state);
        assert_eq!(DecodedBlock::read(&shape, &bytes).as_ref(), Ok(&state));

        let mut state = state.insert(&shape, Entry::new(7, 0));
        assert_eq!(state, DecodedBlock::Saturated);
        let bytes = written(&shape, &state);
        assert_eq!(
            DecodedBlock::read(&shape, &bytes),
            Ok(DecodedBlock::Saturated)
        );
        assert_eq!(state.count(&shape, 8, 0), None);
        if let Some(fast) = fast(shape) {
            assert_eq!(fast.look(&bytes, 8, 0), Verdict::Maybe);
        }
        // Which keys are left is not known, so none is taken out.
        assert_eq!(state.remove(&shape, 7, key), Removal::Stuck);
        assert_eq!(state, DecodedBlock::Saturated);
        assert_eq!(
            state.insert(&shape, Entry::new(1, 1)),
            DecodedBlock::Saturated
        );
    }
}
