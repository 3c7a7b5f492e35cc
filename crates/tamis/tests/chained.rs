//! Chained tables: random histories compared with a `HashMap`, and their
//! balance compared with the theoretical optimum.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod support;

use std::collections::HashMap;

use proptest::prelude::*;
use support::{Colliding, Keyed, keys};
use tamis::table::{Chained, ChainedBuilder, ChainedStats};
use tamis::{Error, KeyHasher, Scheme};
use tamis_theory::variance;

/// A builder with a fixed hasher: tables draw a random one by default.
fn fixed() -> ChainedBuilder {
    Chained::builder().hasher(KeyHasher::default())
}

#[derive(Debug, Clone)]
enum Op {
    Insert(u16, u32),
    Remove(u16),
    Get(u16),
    Change(u16, u32),
    /// Consecutive keys, enough to fill and empty buckets.
    InsertMany(u16, u16),
    RemoveMany(u16, u16),
    Rebalance,
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0..400u16;
    prop_oneof![
        20 => (key(), any::<u32>()).prop_map(|(k, v)| Op::Insert(k, v)),
        10 => key().prop_map(Op::Remove),
        10 => key().prop_map(Op::Get),
        5 => (key(), any::<u32>()).prop_map(|(k, v)| Op::Change(k, v)),
        8 => (key(), 0..150u16).prop_map(|(k, n)| Op::InsertMany(k, n)),
        8 => (key(), 0..150u16).prop_map(|(k, n)| Op::RemoveMany(k, n)),
        1 => Just(Op::Rebalance),
        1 => Just(Op::Clear),
    ]
}

/// Runs a history on a table and on a map, and compares them.
fn follow<K: Keyed>(builder: &ChainedBuilder, history: &[Op]) {
    let mut table = builder.build::<K, u32>().unwrap();
    let mut model = HashMap::new();
    let max_load = table.design().threshold.map(|h| h as usize + 1);
    for op in history {
        match *op {
            Op::Insert(k, v) => {
                let k = K::make(k);
                assert_eq!(table.insert(k, v), model.insert(k, v));
            }
            Op::Remove(k) => {
                let k = K::make(k);
                assert_eq!(table.remove(&k), model.remove(&k));
            }
            Op::Get(k) => {
                let k = K::make(k);
                assert_eq!(table.get(&k), model.get(&k));
                assert_eq!(table.contains_key(&k), model.contains_key(&k));
            }
            Op::Change(k, v) => {
                let k = K::make(k);
                let in_table = table.get_mut(&k).map(|old| *old ^= v);
                let in_model = model.get_mut(&k).map(|old| *old ^= v);
                assert_eq!(in_table, in_model);
            }
            Op::InsertMany(from, count) => {
                for k in from..from + count {
                    let (k, v) = (K::make(k), u32::from(k));
                    assert_eq!(table.insert(k, v), model.insert(k, v));
                }
            }
            Op::RemoveMany(from, count) => {
                for k in (from..from + count).map(K::make) {
                    assert_eq!(table.remove(&k), model.remove(&k));
                }
            }
            Op::Rebalance => table.rebalance(),
            Op::Clear => {
                table.clear();
                model.clear();
            }
        }
        assert_eq!(table.len(), model.len());
        for (k, v) in &model {
            assert_eq!(table.get(k), Some(v), "lost {k:?}");
        }
    }
    let all: HashMap<K, u32> = table.iter().map(|(k, v)| (*k, *v)).collect();
    assert_eq!((table.iter().count(), &all), (model.len(), &model));
    check_counts(&table.stats(), model.len(), max_load);
}

fn check_counts(stats: &ChainedStats, items: usize, max_load: Option<usize>) {
    assert_eq!(stats.items, items);
    let buckets: u64 = stats.histogram.iter().sum();
    let in_buckets: u64 =
        (0..).zip(&stats.histogram).map(|(load, &n): (u64, _)| load * n).sum();
    let listed = stats.overflow_fraction.unwrap_or(0.0) * items as f64;
    assert_eq!(in_buckets + listed.round() as u64, items as u64);
    assert!((stats.mean * buckets as f64 - in_buckets as f64).abs() < 1e-6);
    assert!(max_load.is_none_or(|most| stats.histogram.len() <= most + 1));
    assert_eq!(stats.reads_hit.is_some(), items > 0);
}

proptest! {
    /// Designs for fewer keys than are inserted, so that keys are listed.
    #[test]
    fn histories_match_the_model(
        scheme in proptest::sample::select(&Scheme::ALL[..]),
        items in 1u64..400,
        load in 0.5f64..20.0,
        access_budget in 1.0f64..1.9,
        choices in 2u32..=8,
        keyed: bool,
        given in proptest::option::of((0u32..20, 0.0f64..1.0)),
        ops in proptest::collection::vec(op(), 0..60),
    ) {
        let hasher = match keyed {
            true => KeyHasher::siphash(u128::from(items)),
            false => KeyHasher::xxh3(items),
        };
        let mut builder = Chained::builder()
            .items(items)
            .load(load)
            .scheme(scheme)
            .access_budget(access_budget)
            .choices(choices)
            .hasher(hasher);
        if scheme == Scheme::Single {
            builder = builder.overflow_fraction(0.05);
        }
        if let Some((threshold, admission)) = given {
            builder = builder.threshold(threshold).admission(admission);
            // More keys per bucket of a tiny level than the theory takes.
            if let Err(error) = builder.design() {
                prop_assert!(matches!(error, Error::Infeasible(_)));
                return Ok(());
            }
        }
        follow::<u16>(&builder, &ops);
        follow::<Colliding>(&builder, &ops);
    }
}

/// A full bucket refuses a key and then loses one by a removal: its load no
/// longer shows the refusal.
#[test]
fn keys_refused_before_a_removal_are_found() {
    for scheme in Scheme::ALL {
        let mut table =
            fixed().items(1000).buckets(100).scheme(scheme).build().unwrap();
        // Half more than the design items, so that buckets refuse many.
        for k in keys(1, 1500) {
            assert_eq!(table.insert(k, k), None);
        }
        let refused = table.stats().overflow_fraction.unwrap();
        assert!(refused > 0.05, "{scheme}: {refused}");
        for (i, k) in (0..).zip(keys(1, 1500)) {
            if i % 3 != 0 {
                assert_eq!(table.remove(&k), Some(k));
            }
        }
        for (i, k) in (0..).zip(keys(1, 1500)) {
            let expected = (i % 3 == 0).then_some(&k);
            assert_eq!(table.get(&k), expected, "{scheme}");
            if i % 3 == 0 {
                // No second copy, although the first bucket has room.
                assert_eq!(table.insert(k, k), Some(k));
            }
        }
        assert_eq!(table.len(), 500);
        // Reinsertion finds a bucket for every key.
        table.rebalance();
        assert_eq!(table.stats().overflow_fraction, Some(0.0));
        assert_eq!(table.len(), 500);
    }
}

const BUCKETS: u64 = 1 << 16;

/// Churn fills the list, as documented; a rebalance restores the design.
#[test]
fn rebalancing_restores_the_design() {
    for scheme in Scheme::ALL {
        let builder = fixed().items(100_000).load(8.0).scheme(scheme);
        let mut table = builder.build().unwrap();
        for k in keys(1, 100_000) {
            table.insert(k, k);
        }
        for (old, new) in keys(1, 100_000).zip(keys(2, 100_000)) {
            assert_eq!(table.remove(&old), Some(old));
            assert_eq!(table.insert(new, new), None);
        }
        let design = table.design().clone();
        let churned = table.stats();
        assert!(
            churned.overflow_fraction.unwrap()
                > 2.0 * design.overflow_fraction
        );
        table.rebalance();
        let stats = table.stats();
        assert!(keys(2, 100_000).all(|k| table.get(&k) == Some(&k)));
        assert_eq!(stats.items, 100_000);
        close("variance", stats.variance, design.variance, 0.05);
        let accesses = stats.accesses.unwrap();
        close("accesses", accesses, design.access_budget, 0.01);
        let overflow = stats.overflow_fraction.unwrap();
        close("overflow", overflow, design.overflow_fraction, 0.4);
        assert!(stats.reads_miss <= churned.reads_miss);

        // The same keys with another history give the same table.
        let mut fresh = builder.build().unwrap();
        for k in keys(2, 100_000) {
            fresh.insert(k, k);
        }
        fresh.rebalance();
        assert_eq!(fresh.stats(), stats);
    }
}

/// A row of the independently computed reference values for the variance.
struct Reference(&'static str);

impl Reference {
    fn new(load: u64, access_budget: f64) -> Self {
        let all = include_str!(
            "../../tamis-theory/tests/fixtures/reference_values.json"
        );
        let block = all.split("\"variance\": [").nth(1).unwrap();
        let block = block.split(']').next().unwrap();
        let mut rows = block.split('{').skip(1).map(Self);
        let wanted = (load as f64, access_budget);
        rows.find(|row| (row.get("r"), row.get("a")) == wanted).unwrap()
    }

    fn get(&self, name: &str) -> f64 {
        let value = self.0.split(&format!("\"{name}\": ")).nth(1).unwrap();
        value.split([',', '}']).next().unwrap().parse().unwrap()
    }
}

fn close(what: &str, got: f64, want: f64, part: f64) {
    let off = got / want - 1.0;
    assert!(off.abs() <= part, "{what}: {got}, expected {want} ({off:+.4})");
}

/// A scheme and its expected statistics.
struct Case {
    builder: ChainedBuilder,
    load: u64,
    access_budget: f64,
    variance: f64,
    overflow_fraction: f64,
    /// Standard error of the number of listed keys in one table.
    standard_error: f64,
    /// Tables to average over.
    tables: u64,
}

impl Case {
    /// Asserts the variance within 2 %, the accesses within 0.5 %, and the
    /// overflow within 2 % or four standard errors, whichever is larger.
    fn check(self) {
        let Self { builder, load, access_budget, tables, .. } = self;
        let items = BUCKETS * load;
        let builder = builder.items(items).buckets(BUCKETS);
        let design = builder.design().unwrap();
        close("design", design.variance, self.variance, 1e-9);
        close(
            "design",
            design.overflow_fraction,
            self.overflow_fraction,
            1e-9,
        );
        let (mut variance, mut accesses, mut overflow) = (0.0, 0.0, 0.0);
        let mut reads_miss = 0.0;
        for stream in 1..=tables {
            let mut table = builder.build().unwrap();
            for k in keys(stream, items) {
                table.insert(k, ());
            }
            let stats = table.stats();
            let max_load = design.threshold.map(|h| h as usize + 1);
            check_counts(&stats, items as usize, max_load);
            let part = 1.0 / tables as f64;
            variance += stats.variance * part;
            accesses += stats.accesses.unwrap() * part;
            overflow += stats.overflow_fraction.unwrap() * part;
            reads_miss += stats.reads_miss * part;
            // A lookup reads the buckets of the insertion, whose search may
            // have read more after a refusal of the same class.
            let hit = stats.reads_hit.unwrap();
            close("reads per hit", hit, stats.accesses.unwrap(), 0.002);
        }
        let scheme = design.scheme;
        let what = format!("{scheme}, load {load}, a = {access_budget}");
        let expected = self.overflow_fraction;
        let error =
            self.standard_error / items as f64 / (tables as f64).sqrt();
        println!(
            "{what}: variance {variance:.5} ({:.5}), accesses {accesses:.5}, \
             overflow {overflow:.6} ({expected:.6} +- {error:.6}), \
             reads per miss {reads_miss:.4}",
            self.variance,
        );
        close(&format!("{what}: variance"), variance, self.variance, 0.02);
        close(&format!("{what}: accesses"), accesses, access_budget, 0.005);
        let slack = (0.02 * expected).max(4.0 * error);
        close(
            &format!("{what}: overflow"),
            overflow,
            expected,
            slack / expected,
        );
    }
}

/// The number of tables to average over. At a = 1.5 few buckets are not full,
/// and the variance of one table has a standard deviation of 1.3 %.
fn tables(access_budget: f64) -> u64 {
    if access_budget > 1.4 { 3 } else { 1 }
}

/// The standard error of the number of keys that all of `levels` refuse, if
/// each level gets `arrivals` keys per bucket.
///
/// Larger than that of a binomial distribution: a nearly full level refuses
/// nearly all additional arrivals, and the last level is small. Let R be the
/// refused of the N arrivals at a bucket, and u the probability that a bucket
/// refuses the next key, so that Cov(R, N) = u Var N. Given the arrivals at the
/// whole level, the level adds buckets * (Var R - Cov(R, N)^2 / Var N) to the
/// variance, and passes on u^2 of the variance of its arrivals.
fn overflow_error(
    levels: &[f64],
    arrivals: f64,
    threshold: u32,
    admission: f64,
) -> f64 {
    let mut chance = (-arrivals).exp();
    let (mut first, mut second, mut next) = (0.0, 0.0, 0.0);
    for n in 0..200u32 {
        let late = n.saturating_sub(threshold);
        let still = (1.0 - admission).powi(late as i32);
        let more = f64::from(late);
        // Without and with one key accepted at the threshold.
        first += chance * (more - (1.0 - still));
        second += chance * still * more * more;
        if late > 0 {
            second += chance * (1.0 - still) * (more - 1.0) * (more - 1.0);
        }
        if n >= threshold {
            next += chance * (1.0 - admission * still);
        }
        chance *= arrivals / f64::from(n + 1);
    }
    let each = second - first * first - arrivals * next * next;
    let buckets = BUCKETS as f64;
    let variance = levels.iter().fold(0.0, |variance, share| {
        next * next * variance + buckets * share * each
    });
    variance.sqrt()
}

#[test]
fn multilevel_tables_have_the_least_variance() {
    for load in [4, 8, 16] {
        for access_budget in [1.05, 1.1, 1.2, 1.5] {
            let r = load as f64;
            let (levels, bound) =
                tamis_theory::multilevel::optimal(access_budget, r, 3)
                    .unwrap();
            let variance = variance::multilevel(access_budget, r, 3).unwrap();
            let least =
                variance::bound(access_budget, r, levels.overflow_fraction);
            close("the bound", variance, least.unwrap(), 1e-12);
            let row = Reference::new(load, access_budget);
            close("reference", variance, row.get("var_mht"), 1e-6);
            let overflow_fraction = levels.overflow_fraction;
            close("reference", overflow_fraction, row.get("gamma_mht"), 1e-6);
            let standard_error = overflow_error(
                &levels.level_shares,
                access_budget * r,
                bound.threshold().unwrap(),
                bound.admission(),
            );
            Case {
                builder: fixed()
                    .scheme(Scheme::Multilevel)
                    .access_budget(access_budget),
                load,
                access_budget,
                variance,
                overflow_fraction,
                standard_error,
                tables: tables(access_budget),
            }
            .check();
        }
    }
}

#[test]
fn sequential_tables_have_the_least_variance() {
    for load in [4, 8, 16] {
        for access_budget in [1.05, 1.1, 1.2, 1.5] {
            let r = load as f64;
            let run = tamis_theory::sequential::optimal(access_budget, r, 3)
                .unwrap();
            let variance = variance::sequential(access_budget, r, 3).unwrap();
            let row = Reference::new(load, access_budget);
            close("reference", variance, row.get("var_seq"), 1e-6);
            let overflow_fraction = run.overflow_fraction;
            close("reference", overflow_fraction, row.get("gamma_seq"), 1e-6);
            let items = BUCKETS as f64 * r;
            let chance = overflow_fraction * (1.0 - overflow_fraction);
            Case {
                builder: fixed()
                    .scheme(Scheme::Sequential)
                    .access_budget(access_budget),
                load,
                access_budget,
                variance,
                overflow_fraction,
                // Binomial: all choices share one large array.
                standard_error: (items * chance).sqrt(),
                tables: tables(access_budget),
            }
            .check();
        }
    }
}

#[test]
fn single_tables_have_the_least_variance() {
    for load in [4, 8, 16] {
        for overflow_fraction in [0.005, 0.01] {
            let r = load as f64;
            let bound =
                tamis_theory::single::optimal(r, overflow_fraction).unwrap();
            let variance = variance::single(r, overflow_fraction).unwrap();
            let threshold = bound.threshold().unwrap();
            Case {
                builder: fixed()
                    .scheme(Scheme::Single)
                    .overflow_fraction(overflow_fraction),
                load,
                access_budget: 1.0,
                variance,
                overflow_fraction,
                standard_error: overflow_error(
                    &[1.0],
                    r,
                    threshold,
                    bound.admission(),
                ),
                tables: 1,
            }
            .check();
        }
    }
}

/// The usual alternative: read all d buckets and take the least loaded.
#[test]
fn the_least_loaded_of_d_is_far_from_the_bound_at_its_reads() {
    for load in [4u64, 8, 16] {
        for choices in [2u32, 3] {
            let mut loads = vec![0u32; BUCKETS as usize];
            let hashers: Vec<_> =
                (0..choices.into()).map(KeyHasher::xxh3).collect();
            for k in keys(1, BUCKETS * load) {
                let proposed = hashers
                    .iter()
                    .map(|hasher| (hasher.hash(&k) % BUCKETS) as usize);
                let least = proposed.min_by_key(|&i| loads[i]).unwrap();
                loads[least] += 1;
            }
            let r = load as f64;
            let squares: f64 =
                loads.iter().map(|&i| (f64::from(i) - r).powi(2)).sum();
            let measured = squares / BUCKETS as f64;
            let expected = variance::least_loaded(r, choices).unwrap();
            let a = f64::from(choices);
            let bound = variance::bound(a, r, 0.0).unwrap();
            println!(
                "least loaded of {choices}, load {load}: variance \
                 {measured:.5} ({expected:.5}), bound at {a} reads {bound:.2e}"
            );
            close("least loaded", measured, expected, 0.02);
            let row = Reference::new(load, a);
            let reference = row.get("var_least_loaded_d_eq_a");
            close("reference", expected, reference, 1e-6);
            assert!(bound < 0.2 * measured);
        }
    }
}
