//! Fingerprint blocks, simulated from their definition: entries of random
//! chains and remainders, cut to the widths of the block's load. Shares no
//! code with the library.

use super::{Keys, Rate, mix, reduce, runs};

/// Entries of a block: chain and remainder, in the order of the block.
type Entries = Vec<(u64, u64)>;

/// Chance that an absent key matches in one of `blocks` blocks of
/// `chains` chains and `array_bits` bits, filled with `load` keys each on
/// average; `queries` absent keys per block.
pub(crate) fn fingerprint_rate(
    (chains, array_bits): (u64, u64),
    load: f64,
    blocks: u64,
    queries: u64,
    seed: u64,
) -> Rate {
    let mut contents: Vec<Entries> = vec![Vec::new(); blocks as usize];
    let keys = Keys::new(seed);
    for key in keys.members((load * blocks as f64) as u64) {
        let block = &mut contents[reduce(mix(key, 0), blocks) as usize];
        block.push((reduce(mix(key, 1), chains), mix(key, 2)));
    }
    let hits = runs(blocks, |block| {
        let mut entries = contents[block as usize].clone();
        // In the order of the chains; the order within one is random.
        entries.sort_by_key(|(chain, _)| *chain);
        let count = entries.len() as u64;
        (0..queries)
            .filter(|query| {
                let key = keys.stranger(block * queries + query);
                let chain = reduce(mix(key, 1), chains);
                let remainder = mix(key, 2);
                let matches = |(place, entry): (u64, &(u64, u64))| {
                    entry.0 == chain
                        && match width(array_bits, count, place) {
                            None => true,
                            Some(0) => true,
                            Some(bits) => {
                                (entry.1 ^ remainder).leading_zeros()
                                    >= bits as u32
                            }
                        }
                };
                (0..).zip(&entries).any(matches)
            })
            .count() as u64
    });
    Rate { hits: hits.iter().sum(), trials: blocks * queries }
}

/// Bits of the remainder of the entry at `place` of `count`, at most those
/// that are compared; none in a block that is too full for last bits.
fn width(array_bits: u64, count: u64, place: u64) -> Option<u64> {
    let all = array_bits / count;
    let wide = u64::from(place < array_bits % count);
    Some((all.checked_sub(1)? + wide).min(63))
}

#[cfg(test)]
mod tests {
    use tamis_theory::tinyset::{Block, predict};

    use super::*;

    #[test]
    fn widths_are_those_of_the_paper() {
        let widths = |count| (0..count).map(move |i| width(24, count, i));
        assert!(widths(4).eq([Some(5); 4]));
        assert!(widths(5).eq([4, 4, 4, 4, 3].map(Some)));
        assert_eq!(width(24, 25, 0), None);
    }

    #[test]
    fn rates_agree_with_the_theory() {
        for (chains, array, load) in [(64, 448, 50.0), (16, 112, 16.0)] {
            let rate = fingerprint_rate((chains, array), load, 4000, 50, 1);
            let block = Block::new((chains + array) as u32, chains as u32);
            let theory = predict(block, load).unwrap().fpr;
            assert!(rate.agrees(theory), "{rate:?} {theory}");
        }
    }
}
