//! Every kind in every state it can reach: `expected_fpr` beside the rate
//! measured with ten million absent keys.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod support;

use support::{false_positives, key, keys};
use tamis::{
    AnyFilter, Balanced, Blocked, Bloom, Builder, Removal, Split, TinySet,
};

/// Design items of every filter.
const ITEMS: u64 = 200_000;
/// Absent keys looked up in every state.
const PROBES: u64 = 10_000_000;
/// Two-sided, once in 1000 by chance.
const MAX_Z: f64 = 3.3;
/// Stream of the inserted keys; every state has its own absent keys.
const MEMBERS: u64 = 1;

/// The history of a filter. `ITEMS` keys are the design load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Filled to this multiple of the design load.
    Filled(u64),
    /// Filled, doubled and filled again.
    Grown,
    /// Built for twice the items, filled with half of them, and halved.
    Folded,
    /// The union of two filters with half of the items each.
    Merged,
    /// Half of the keys removed.
    Removed,
    /// Half of the keys removed, and as many others inserted.
    Readded,
}

use State::{Filled, Folded, Grown, Merged, Readded, Removed};

/// States of the Bloom kinds that merge.
const MERGEABLE: &[State] = &[Filled(1), Filled(2), Filled(4), Folded, Merged];
/// States of a filter that only takes insertions.
const INSERT_ONLY: &[State] = &[Filled(1), Filled(2), Filled(4)];
/// States of a TinySet of one level.
const GROWABLE: &[State] =
    &[Filled(1), Filled(2), Filled(4), Grown, Folded, Merged];
/// States of a removable TinySet.
const REMOVABLE: &[State] = &[
    Filled(1),
    Filled(2),
    Filled(4),
    Grown,
    Folded,
    Merged,
    Removed,
    Readded,
];

/// A filter for some items, of the size for one more halving if `true`.
type Make = fn(u64, bool) -> AnyFilter;

struct Row {
    name: &'static str,
    make: Make,
    states: &'static [State],
}

fn tinyset(items: u64, foldable: bool, fpr: f64) -> Builder<TinySet> {
    TinySet::builder().items(items).fpr(fpr).foldable(foldable.into())
}

macro_rules! bloom {
    ($kind:ident) => {
        |items, foldable| {
            let builder = $kind::builder().items(items).fpr(0.01);
            let builder = builder.foldable(foldable.into());
            AnyFilter::$kind(builder.build().unwrap())
        }
    };
}

macro_rules! tinyset {
    ($fpr:literal $(, $setting:ident($($value:tt)*))*) => {
        |items, foldable| {
            let builder = tinyset(items, foldable, $fpr);
            $(let builder = builder.$setting($($value)*);)*
            AnyFilter::TinySet(builder.build().unwrap())
        }
    };
}

const ROWS: &[Row] = &[
    Row { name: "bloom", make: bloom!(Bloom), states: MERGEABLE },
    Row { name: "blocked", make: bloom!(Blocked), states: MERGEABLE },
    Row { name: "split", make: bloom!(Split), states: MERGEABLE },
    Row {
        name: "balanced",
        make: |items, _| {
            let builder = Balanced::builder().items(items).fpr(0.001);
            AnyFilter::Balanced(builder.build().unwrap())
        },
        states: INSERT_ONLY,
    },
    Row { name: "tinyset", make: tinyset!(0.01), states: GROWABLE },
    Row { name: "tinyset, 10 %", make: tinyset!(0.1), states: GROWABLE },
    Row {
        name: "tinyset, 0.1 %, repeats",
        make: tinyset!(0.001, repeats()),
        states: GROWABLE,
    },
    Row {
        name: "tinyset, half lines",
        make: tinyset!(0.01, block_bits(256)),
        states: GROWABLE,
    },
    Row {
        name: "tinyset, removable",
        make: tinyset!(0.01, removable()),
        states: REMOVABLE,
    },
    Row {
        name: "tinyset, removable half lines",
        make: tinyset!(0.001, block_bits(256), removable()),
        states: REMOVABLE,
    },
    Row {
        name: "tinyset, two levels",
        make: tinyset!(0.0001, two_level()),
        states: INSERT_ONLY,
    },
];

fn insert(filter: &mut AnyFilter, from: u64, to: u64) {
    let keys: Vec<u64> = keys(MEMBERS, to).skip(from as usize).collect();
    filter.insert_batch(&keys);
}

/// A filter in a state, and the range of its keys.
fn reach(make: Make, state: State) -> (AnyFilter, core::ops::Range<u64>) {
    let filled = |items, foldable, to| {
        let mut filter = make(items, foldable);
        insert(&mut filter, 0, to);
        filter
    };
    let remove_half = |filter: &mut AnyFilter| {
        for i in 0..ITEMS / 2 {
            let removal = filter.remove(&key(MEMBERS, i));
            assert_eq!(removal, Ok(Removal::Removed));
        }
    };
    match state {
        Filled(times) => {
            (filled(ITEMS, false, times * ITEMS), 0..times * ITEMS)
        }
        Grown => {
            let mut filter = filled(ITEMS, false, ITEMS).doubled().unwrap();
            insert(&mut filter, ITEMS, 2 * ITEMS);
            (filter, 0..2 * ITEMS)
        }
        Folded => {
            let filter = filled(2 * ITEMS, true, ITEMS);
            (filter.halved().unwrap(), 0..ITEMS)
        }
        Merged => {
            let mut filter = filled(ITEMS, false, ITEMS / 2);
            let mut other = make(ITEMS, false);
            insert(&mut other, ITEMS / 2, ITEMS);
            filter.merge_from(&other).unwrap();
            (filter, 0..ITEMS)
        }
        Removed => {
            let mut filter = filled(ITEMS, false, ITEMS);
            remove_half(&mut filter);
            (filter, ITEMS / 2..ITEMS)
        }
        Readded => {
            let mut filter = filled(ITEMS, false, ITEMS);
            remove_half(&mut filter);
            insert(&mut filter, ITEMS, ITEMS + ITEMS / 2);
            (filter, ITEMS / 2..ITEMS + ITEMS / 2)
        }
    }
}

/// A balanced filter at twice its design load answers "maybe" to every key:
/// its rate is 1, and so is the measured one.
#[test]
fn the_expected_rate_is_the_measured_one_in_every_state() {
    let mut failed = Vec::new();
    let mut states = 0;
    for Row { name, make, states: reachable } in ROWS {
        for &state in *reachable {
            let what = format!("{name}, {state:?}");
            let (filter, members) = reach(*make, state);
            for i in members.step_by(97) {
                let found = filter.contains(&key(MEMBERS, i));
                assert!(found, "{what}: lost key {i}");
            }
            let p = filter.stats().expected_fpr;
            states += 1;
            let hits = false_positives(&filter, 1 + states, PROBES);
            let probes = PROBES as f64;
            // The law of a rate of 1 has no width.
            let width = (probes * p * (1.0 - p)).sqrt().max(f64::EPSILON);
            let z = (hits as f64 - probes * p) / width;
            println!("{what}: {p:.6} expected, {hits} hits, z {z:+.2}");
            if z.abs() > MAX_Z {
                failed.push(format!("{what}: z {z:+.2}"));
            }
        }
    }
    assert_eq!(states, 61);
    assert!(failed.is_empty(), "{failed:#?}");
}
