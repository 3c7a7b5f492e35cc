//! Histories on balanced filters of every design, compared with a set.
use std::collections::BTreeSet;
use std::sync::OnceLock;

use arbitrary::{Arbitrary, Unstructured};
use tamis::{AnyFilter, Balanced, Builder, Overflow, Scheme};

#[derive(Debug, Arbitrary)]
enum Op {
    Insert(u16),
    InsertBatch(Vec<u16>),
    InsertDistinct(u16),
    InsertParallel(Vec<u16>, u8),
    SaveAndLoad,
    MergeSelf,
    Lookup(Vec<u16>),
}

#[derive(Debug, Arbitrary)]
struct History {
    design: u8,
    items: u8,
    ops: Vec<Op>,
}

const SIZES: [f64; 3] = [6.0, 14.0, 30.0];
const TRACKING: [u32; 3] = [0, 1, 16];

/// Design `number`, computed once: a prediction takes longer than a history.
fn design(number: u8) -> &'static Builder<Balanced> {
    static DESIGNS: [OnceLock<Builder<Balanced>>; 256] =
        [const { OnceLock::new() }; 256];
    DESIGNS[usize::from(number)].get_or_init(|| {
        let mut rest = usize::from(number);
        let mut digit = |base: usize| {
            let digit = rest % base;
            rest /= base;
            digit
        };
        let mut builder = Balanced::builder()
            .scheme(Scheme::ALL[digit(3)])
            .overflow(Overflow::ALL[digit(4)]);
        if digit(2) == 1 {
            builder = builder.refuse_by_set_bits();
        }
        builder
            .tracking_bits(TRACKING[digit(3)])
            .bits_per_key(SIZES[digit(3)])
            .block_bits(256)
            .probes(6)
            .resolve()
            .unwrap()
    })
}

pub fn run(input: &[u8]) {
    let Ok(history) = History::arbitrary_take_rest(Unstructured::new(input))
    else {
        return;
    };

    let builder = design(history.design);
    let mut filter = builder.items(history.items.into()).build().unwrap();
    let mut model = BTreeSet::new();
    for op in history.ops {
        match op {
            Op::Insert(key) => {
                let absent = !filter.contains(&key);
                assert_eq!(filter.insert(&key), absent);
                assert!(!(absent && model.contains(&key)), "lost {key}");
                model.insert(key);
            }
            Op::InsertBatch(keys) => {
                filter.insert_batch(&keys);
                model.extend(keys);
            }
            Op::InsertDistinct(key) => {
                if model.insert(key) {
                    let hash = filter.hasher().hash(&key);
                    filter.insert_distinct_hash(hash);
                }
            }
            Op::InsertParallel(keys, threads) => {
                let mut serial = filter.clone();
                serial.insert_batch(&keys);
                let hasher = *filter.hasher();
                filter.insert_parallel_with(
                    keys.chunks(3),
                    crate::threads(threads),
                    |keys, out| {
                        out.extend(keys.iter().map(|key| hasher.hash(key)));
                    },
                );
                assert_eq!(filter.to_bytes(), serial.to_bytes());
                model.extend(keys);
            }
            Op::SaveAndLoad => {
                let bytes = filter.to_bytes();
                let view = Balanced::from_bytes(&bytes[..]).unwrap();
                view.verify().unwrap();
                assert_eq!(view.stats(), filter.stats());
                assert!(model.iter().all(|key| view.contains(key)));
                filter = view.into_owned().unwrap();
                assert_eq!(filter.to_bytes(), bytes);
            }
            Op::MergeSelf => {
                let mut any = AnyFilter::Balanced(filter.clone());
                assert!(any.merge_from(&any.clone()).is_err());
                assert!(any.halved().is_err());
                assert_eq!(any.to_bytes(), filter.to_bytes());
            }
            Op::Lookup(keys) => {
                let batch = filter.contains_each(&keys);
                for (key, found) in keys.iter().zip(batch) {
                    assert_eq!(found, filter.contains(key));
                }
            }
        }
        assert!(model.iter().all(|key| filter.contains(key)), "lost a key");
    }
    filter.verify().unwrap();
}
