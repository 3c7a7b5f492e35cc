//! The store on a simulated disk that crashes, fails and loses unsynced
//! changes.
//!
//! Run one seed again with `TAMIS_CRASH_SEED=N cargo test -p tamis-store
//! --test crash`.

mod disk;
mod history;

use std::collections::BTreeSet;
use std::sync::Arc;

use disk::{Fault, FaultKind, SimDisk};
use history::{History, Run};
use tamis_store::{Batch, Durability, Error, Options, Store};

/// Crash points of the quick test.
const QUICK: u64 = 20_000;

/// Runs `histories` in two threads until all have had `points` crashes.
fn crash(points: u64, first_seed: u64) -> u64 {
    let run = |lane: u64| {
        let mut crashes = 0;
        let mut seed = first_seed + lane;
        while crashes < points / 2 {
            crashes += Run::new(seed).crashing().finish();
            seed += 2;
        }
        crashes
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        run(0) + other.join().expect("the other lane passes")
    })
}

#[test]
fn crashes_lose_nothing_acknowledged() {
    if let Ok(seed) = std::env::var("TAMIS_CRASH_SEED") {
        Run::new(seed.parse().expect("a number")).crashing().finish();
        return;
    }
    assert!(crash(QUICK, 1) >= QUICK);
}

#[test]
#[ignore = "minutes: the slow tier runs it"]
fn a_million_crashes_lose_nothing_acknowledged() {
    let points = 1_000_000;
    let crashes = crash(points, 1 << 32);
    println!("{crashes} crashes");
    assert!(crashes >= points);
}

/// Crashes at each change of a short history in turn.
#[test]
fn a_crash_at_every_change_loses_nothing_acknowledged() {
    for seed in 0..6 {
        let mut at = 1;
        while Run::new(seed).steps(60).crash_at(at).finish() > 0 {
            at += 1;
        }
        assert!(at > 50, "the history of seed {seed} has {at} changes");
    }
}

/// Each sync of the product, removed, loses something, or the reason why it
/// does not stands here.
#[test]
#[ignore = "minutes: the slow tier runs it"]
fn every_sync_is_needed() {
    let mut places = BTreeSet::new();
    for seed in 0..200 {
        let run = Run::new(seed).crashing().watching(None);
        places.append(&mut run.sync_places());
    }
    // A loss is what this test looks for: it is not reported as a failure.
    std::panic::set_hook(Box::new(|_| {}));
    let loses = |place: &String, seed| {
        let run = Run::new(seed).crashing().watching(Some(place));
        std::panic::catch_unwind(|| run.finish()).is_err()
    };
    let first_loss = |place: &String| {
        std::thread::scope(|scope| {
            let lane = |first: u64| {
                (first..5000).step_by(2).find(|&seed| loses(place, seed))
            };
            let other = scope.spawn(move || lane(1));
            let found = lane(0);
            found.or(other.join().expect("losses are caught"))
        })
    };
    let mut harmless = Vec::new();
    for place in &places {
        match first_loss(place) {
            Some(seed) => println!("{place}: loss with seed {seed}"),
            None => harmless.push(place),
        }
    }
    let _ = std::panic::take_hook();
    assert!(harmless.is_empty(), "without effect: {harmless:?}");
}

/// An error, a full disk or a short transfer at each operation in turn.
#[test]
fn a_fault_at_every_operation_loses_nothing_acknowledged() {
    for (seed, kind, lasting) in [
        (0, FaultKind::Error, false),
        (1, FaultKind::Error, true),
        (2, FaultKind::NoSpace, false),
        (3, FaultKind::NoSpace, true),
        (4, FaultKind::Short, false),
        (5, FaultKind::Short, true),
    ] {
        let mut at = 1;
        while Run::new(seed).steps(60).fault(at, kind, lasting).finish() > 0 {
            at += 1;
        }
        assert!(at > 50, "the history of seed {seed} has {at} operations");
    }
}

/// A large value whose write fails, at any operation, takes no space once a
/// later write is durable.
#[test]
fn a_large_value_that_failed_leaves_no_space() {
    let options = Options::new()
        .background(false)
        .durability(Durability::None)
        .segment_bytes(16 << 10)
        .seed(1);
    let used = |fault: Option<u64>, kind| {
        let disk = SimDisk::new(1);
        let store =
            Store::create_on(Arc::new(disk.clone()), &options).expect("new");
        let fault = fault.map(|at| disk.calls() + at);
        disk.set_fault(fault.map(|at| Fault { at, kind, lasting: false }));
        // The frame of a large batch is written at once.
        let mut batch = Batch::new();
        batch.put("large", vec![1; 300_000]).expect("valid");
        for i in 0..70u32 {
            batch.put(i.to_le_bytes(), [2; 1000]).expect("valid");
        }
        let failed = store.write_batch(&batch).is_err();
        let reached = fault.is_none_or(|at| disk.calls() >= at);
        disk.set_fault(None);
        if failed && !matches!(store.flush(), Err(Error::Poisoned)) {
            assert_eq!(store.get("large").expect("no fault"), None);
        }
        for _ in 0..3 {
            if let Err(error) = store.put("small", "value") {
                // A sync failed.
                assert!(matches!(error, Error::Poisoned), "{error}");
                return (None, reached);
            }
            store.compact().expect("no fault");
        }
        let disk = store.stats().expect("no fault").disk;
        (Some((failed, disk.data - disk.free)), reached)
    };
    let (with, _) = used(None, FaultKind::Error);
    let (_, with) = with.expect("no fault");
    let mut failures = 0;
    for kind in [FaultKind::Error, FaultKind::NoSpace] {
        for at in 1.. {
            let (used, reached) = used(Some(at), kind);
            match used {
                Some((true, used)) => {
                    failures += 1;
                    assert!(used + 290_000 < with, "{kind:?} {at}: {used}");
                }
                Some((false, used)) => assert_eq!(used, with, "{kind:?} {at}"),
                None => {}
            }
            if !reached {
                break;
            }
        }
    }
    assert!(failures > 5, "{failures}");
}

/// A changed bit gives an error or changes nothing.
#[test]
fn a_changed_bit_is_never_returned_as_data() {
    let mut noticed = 0;
    for seed in 0..400 {
        let disk = SimDisk::new(seed);
        let mut history = History::new(disk.clone(), seed, 120);
        history.run().expect("no fault is set");
        history.close().expect("no fault is set");
        disk.flip_bit();
        noticed += u64::from(history.check_damaged());
    }
    assert!(noticed > 100, "{noticed} of 400 changes were noticed");
}
