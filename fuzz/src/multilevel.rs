//! Random histories on multilevel tables with every summary, compared with a
//! `BTreeMap`.
use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Unstructured};
use tamis::KeyHasher;
use tamis::summary::{
    Deletion, FilterStack, Interpolation, LevelFilter, NoSummary, Summary,
    SummaryBuilder, TypeFilter,
};
use tamis::table::{Multilevel, MultilevelBuilder};

#[derive(Debug, Arbitrary)]
enum Op {
    Insert(u8, u16),
    Remove(u8),
    Audit,
    Refresh,
    Rebuild(Option<u64>),
    Clear,
}

#[derive(Debug, Arbitrary)]
enum Shape {
    None,
    Strings { bits: u8 },
    Cells { cells: u16, probes: u8 },
    Stack { bits: [u8; 8], probes: u8 },
}

#[derive(Debug, Arbitrary)]
struct History {
    levels: Vec<u8>,
    bucket_entries: u8,
    stash: u8,
    summary: Shape,
    /// Share of stale keys in percent; `None` for counting deletion.
    lazy: Option<u8>,
    ops: Vec<Op>,
}

fn follow(
    builder: &MultilevelBuilder,
    summary: &impl SummaryBuilder,
    ops: &[Op],
) {
    // Settings out of range must be errors, not panics.
    let Ok(mut table) = builder.build_with::<u8, u16, _>(summary) else {
        return;
    };
    let mut model = BTreeMap::new();
    for op in ops {
        let mut all = true;
        match *op {
            Op::Insert(key, value) => {
                match table.insert(key, value) {
                    Ok(old) => assert_eq!(old, model.insert(key, value)),
                    Err(full) => {
                        assert_eq!((full.key, full.value), (key, value));
                        assert!(!model.contains_key(&key));
                    }
                }
                assert_eq!(table.get(&key), model.get(&key));
                all = false;
            }
            Op::Remove(key) => {
                assert_eq!(table.remove(&key), model.remove(&key));
                assert_eq!(table.get(&key), None);
                all = false;
            }
            Op::Audit => {
                table.audit();
            }
            Op::Refresh => {
                table.refresh();
            }
            Op::Rebuild(seed) => {
                let before = table.stats();
                if table.rebuild(seed.map(KeyHasher::xxh3)).is_err() {
                    assert_eq!(table.stats(), before);
                }
            }
            Op::Clear => {
                table.clear();
                model.clear();
            }
        }
        assert_eq!(table.len(), model.len());
        if all {
            check(&table, &model);
        }
    }
    check(&table, &model);
}

fn check<S: Summary>(
    table: &Multilevel<u8, u16, S>,
    model: &BTreeMap<u8, u16>,
) {
    for key in 0..=u8::MAX {
        assert_eq!(table.get(&key), model.get(&key), "{key}");
    }
    assert_eq!(table.iter().count(), model.len());
}

pub fn run(input: &[u8]) {
    let Ok(history) = History::arbitrary_take_rest(Unstructured::new(input))
    else {
        return;
    };

    let levels: Vec<u64> =
        history.levels.iter().take(9).map(|&level| level.into()).collect();
    let builder = Multilevel::builder()
        .hasher(KeyHasher::default())
        .levels(&levels)
        .bucket_entries(history.bucket_entries.into())
        .stash(history.stash.into());
    let deletion = match history.lazy {
        Some(share) => Deletion::Lazy { share: f64::from(share) / 100.0 },
        None => Deletion::Counting,
    };
    let ops = &history.ops[..];
    match history.summary {
        Shape::None => follow(&builder, &NoSummary::builder(), ops),
        Shape::Strings { bits } => {
            follow(&builder, &Interpolation::builder().bits(bits.into()), ops);
        }
        Shape::Cells { cells, probes } => {
            let summary = TypeFilter::builder().cells(cells.into());
            let summary = summary.probes(probes.into()).deletion(deletion);
            follow(&builder, &summary, ops);
        }
        Shape::Stack { bits, probes } => {
            let filters: Vec<LevelFilter> = bits
                .iter()
                .take(levels.len())
                .map(|&bits| match bits {
                    0 => LevelFilter::HashList { bits: 64 },
                    bits => LevelFilter::Bloom {
                        cells: bits.into(),
                        probes: probes.into(),
                    },
                })
                .collect();
            let summary = FilterStack::builder().filters(&filters);
            follow(&builder, &summary.deletion(deletion), ops);
        }
    }
}
