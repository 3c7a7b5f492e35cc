//! Random histories on multilevel tables with every summary, compared with a
//! `HashMap`.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod support;

use std::collections::HashMap;

use proptest::prelude::*;
use support::{Colliding, Keyed};
use tamis::summary::{
    Deletion, FilterStack, FilterStackBuilder, Interpolation, LevelFilter,
    NoSummary, Summary, SummaryBuilder, TypeFilter,
};
use tamis::table::{Multilevel, MultilevelBuilder, RemovalRule};
use tamis::{Error, KeyHasher};

#[derive(Debug, Clone)]
enum Op {
    Insert(u16, u32),
    Remove(u16),
    Get(u16),
    Change(u16, u32),
    /// Consecutive keys, enough to fill and empty levels.
    InsertMany(u16, u16),
    RemoveMany(u16, u16),
    Audit,
    Refresh,
    Rebuild(Option<u64>),
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0..120u16;
    prop_oneof![
        20 => (key(), any::<u32>()).prop_map(|(k, v)| Op::Insert(k, v)),
        10 => key().prop_map(Op::Remove),
        10 => key().prop_map(Op::Get),
        5 => (key(), any::<u32>()).prop_map(|(k, v)| Op::Change(k, v)),
        8 => (key(), 0..60u16).prop_map(|(k, n)| Op::InsertMany(k, n)),
        8 => (key(), 0..60u16).prop_map(|(k, n)| Op::RemoveMany(k, n)),
        4 => Just(Op::Audit),
        2 => Just(Op::Refresh),
        2 => any::<Option<u64>>().prop_map(Op::Rebuild),
        1 => Just(Op::Clear),
    ]
}

/// A table and the map with its expected contents.
struct TableAndModel<K, S> {
    table: Multilevel<K, u32, S>,
    model: HashMap<K, u32>,
    stash: usize,
}

impl<K: Keyed, S: Summary> TableAndModel<K, S> {
    fn new<B>(builder: &MultilevelBuilder, summary: &B, stash: usize) -> Self
    where
        B: SummaryBuilder<Summary = S>,
    {
        let table = builder.clone().stash(stash).build_with(summary).unwrap();
        Self { table, model: HashMap::new(), stash }
    }

    /// `TableFull` returns key and value, and occurs only if the stash is
    /// full.
    fn insert(&mut self, key: K, value: u32) {
        match self.table.insert(key, value) {
            Ok(old) => assert_eq!(old, self.model.insert(key, value)),
            Err(full) => {
                assert_eq!((full.key, full.value), (key, value));
                assert!(!self.model.contains_key(&key), "refused an update");
                assert_eq!(self.table.stats().stashed, self.stash);
            }
        }
    }

    fn remove(&mut self, key: K) {
        assert_eq!(self.table.remove(&key), self.model.remove(&key));
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Insert(k, v) => self.insert(K::make(k), v),
            Op::Remove(k) => self.remove(K::make(k)),
            Op::Get(k) => {
                let k = K::make(k);
                assert_eq!(self.table.get(&k), self.model.get(&k));
                let found = self.table.contains_key(&k);
                assert_eq!(found, self.model.contains_key(&k));
            }
            Op::Change(k, v) => {
                let k = K::make(k);
                let in_table = self.table.get_mut(&k).map(|old| *old ^= v);
                let in_model = self.model.get_mut(&k).map(|old| *old ^= v);
                assert_eq!(in_table, in_model);
            }
            Op::InsertMany(from, count) => {
                for k in from..from + count {
                    self.insert(K::make(k), u32::from(k));
                }
            }
            Op::RemoveMany(from, count) => {
                (from..from + count).for_each(|k| self.remove(K::make(k)));
            }
            Op::Audit => {
                self.table.audit();
                self.check_audited();
            }
            Op::Refresh => {
                self.table.refresh();
                assert_eq!(self.table.summary().stale(), 0);
                self.check_audited();
            }
            Op::Rebuild(seed) => self.rebuild(seed),
            Op::Clear => {
                self.table.clear();
                self.model.clear();
            }
        }
    }

    /// A rebuild that fails leaves the table unchanged.
    fn rebuild(&mut self, seed: Option<u64>) {
        let before = self.table.stats();
        let hasher = *self.table.hasher();
        match self.table.rebuild(seed.map(KeyHasher::xxh3)) {
            Ok(()) => self.check_audited(),
            Err(error) => {
                assert_eq!(error, Error::TableFull);
                assert_eq!(self.table.stats(), before);
                assert_eq!(*self.table.hasher(), hasher);
            }
        }
    }

    /// After an audit a lookup reads at most one bucket, unless hashes
    /// collide.
    fn check_audited(&self) {
        let stats = self.table.stats();
        assert!(stats.audited);
        let has_summary = self.table.summary().bits() > 0;
        if K::DISTINCT_HASHES && has_summary {
            for key in (0..200).map(K::make) {
                assert!(self.table.lookup(&key).reads <= 1, "{key:?}");
            }
        }
    }

    fn check(&self) {
        assert_eq!(self.table.len(), self.model.len());
        assert!(!self.table.summary().needs_rebuild());
        for (key, value) in &self.model {
            let lookup = self.table.lookup(key);
            assert_eq!(lookup.value, Some(value), "lost {key:?}");
            assert!(lookup.reads <= 8);
        }
        for key in (0..200).map(K::make) {
            assert_eq!(self.table.get(&key), self.model.get(&key));
        }
        let all: HashMap<K, u32> =
            self.table.iter().map(|(k, v)| (*k, *v)).collect();
        assert_eq!(self.table.iter().count(), self.model.len());
        assert_eq!(all, self.model);
    }

    /// The statistics agree with the model and with the reads of lookups.
    fn check_stats(&self) {
        let stats = self.table.stats();
        let placed: usize = stats.level_items.iter().sum();
        assert_eq!(stats.items, self.model.len());
        assert_eq!(placed + stats.stashed, stats.items);
        assert!(stats.stashed <= self.stash);
        let reads: u32 =
            self.model.keys().map(|key| self.table.lookup(key).reads).sum();
        let reads = f64::from(reads) / stats.items as f64;
        let predicted = stats.reads_hit;
        assert!(predicted.is_none_or(|mean| (mean - reads).abs() < 1e-9));
        let shape = self.table.shape();
        assert_eq!(stats.level_items.len(), shape.levels().len());
        let slots = stats.level_items.iter().zip(&stats.level_deleted);
        for ((&items, &deleted), buckets) in slots.zip(shape.levels()) {
            let slots = (items + deleted) as u64;
            assert!(slots <= buckets * u64::from(shape.bucket_entries()));
        }
    }
}

fn follow<K: Keyed, B: SummaryBuilder>(
    builder: &MultilevelBuilder,
    summary: &B,
    stash: usize,
    history: &[Op],
) {
    let mut pair = TableAndModel::<K, _>::new(builder, summary, stash);
    for op in history {
        pair.step(op);
        pair.check();
    }
    pair.check_stats();
    // The exceptions are removed together with their keys.
    let keys: Vec<K> = pair.model.keys().copied().collect();
    keys.into_iter().for_each(|key| pair.remove(key));
    let stats = pair.table.stats();
    assert_eq!((stats.items, stats.exceptions), (0, 0));
}

/// Filters small enough that most keys are misnamed.
fn tiny_stack(depth: usize, bits: u64, lists: usize) -> FilterStackBuilder {
    let filters: Vec<LevelFilter> = (0..depth)
        .map(|level| match level + lists >= depth {
            true => LevelFilter::HashList { bits: 64 },
            false => LevelFilter::Bloom { cells: bits, probes: 2 },
        })
        .collect();
    FilterStack::builder().filters(&filters)
}

proptest! {
    /// Tables small enough that full tables, misnamed keys and equal strings
    /// are common.
    #[test]
    fn histories_match_the_model(
        levels in proptest::collection::vec(1u64..40, 1..=8),
        bucket_entries in 1u32..=4,
        stash in 0usize..12,
        bits in 2u64..400,
        lists in 0usize..3,
        share in 0.0f64..0.5,
        counting: bool,
        lazy in proptest::option::of(0.0f64..1.0),
        ops in proptest::collection::vec(op(), 0..60),
    ) {
        let builder = Multilevel::builder()
            .hasher(KeyHasher::default())
            .levels(&levels)
            .bucket_entries(bucket_entries)
            .removal(match lazy {
                Some(share) => RemovalRule::Lazy { share },
                None => RemovalRule::Immediate,
            });
        let deletion = match counting {
            true => Deletion::Counting,
            false => Deletion::Lazy { share },
        };
        let strings = Interpolation::builder().bits(1 + bits as u32 % 12);
        let cells =
            TypeFilter::builder().cells(bits).probes(2).deletion(deletion);
        let stack = tiny_stack(levels.len(), bits, lists).deletion(deletion);
        let none = NoSummary::builder();
        follow::<u16, _>(&builder, &none, stash, &ops);
        follow::<u16, _>(&builder, &strings, stash, &ops);
        follow::<u16, _>(&builder, &cells, stash, &ops);
        follow::<u16, _>(&builder, &stack, stash, &ops);
        follow::<Colliding, _>(&builder, &none, stash, &ops);
        follow::<Colliding, _>(&builder, &strings, stash, &ops);
        follow::<Colliding, _>(&builder, &cells, stash, &ops);
        follow::<Colliding, _>(&builder, &stack, stash, &ops);
    }
}
