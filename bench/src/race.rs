//! All contenders of a cell, measured in turn, in a new order each round.

use std::hint::black_box;
use std::sync::Mutex;
use std::thread;

use crate::contender::{Contender, Lookup, Mode, Plan, Queries};
use crate::keys::{KeyType, Random};
use crate::machine::{HugePages, largest_cache};
use crate::report::Row;
use crate::subject::Result;
use crate::{Size, progress::Progress};

/// Measurements under the same conditions.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) size: Size,
    pub(crate) items: u64,
    pub(crate) fpr: f64,
    /// Several only if one filter serves all key types.
    pub(crate) keys: Vec<KeyType>,
}

/// Numbers of repetitions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Small filters built by each contender.
    pub(crate) fills: usize,
    /// Timed loops of each lookup, and of each insertion where filters are
    /// large.
    pub(crate) rounds: usize,
    /// Threads that build large filters. With more than one, build times
    /// are approximate; no other operation is timed meanwhile.
    pub(crate) builders: usize,
    /// Extra chunks of hashes in a large filter, beside one chunk of each
    /// key type.
    pub(crate) hashes: usize,
    /// Keys looked up in a timed loop: more than a branch predictor can
    /// memorise.
    pub(crate) queries: usize,
}

/// Shortest timed loop, in nanoseconds: reading the clock takes about 500.
const LEAST_NS: f64 = 3e6;

/// Bytes read to evict a cache, unless the largest cache is larger.
const EVICTING: usize = 64 << 20;

/// Turns of a batch in a round. A batch takes a fraction of the time of
/// single lookups, so one interruption distorts it more. In DRAM
/// interruptions are more frequent.
const BATCH_TURNS: usize = 4;
const DRAM_TURNS: usize = 10;

/// Keys inserted in a timed loop of a large filter. The number of keys of a
/// large filter is a multiple.
pub(crate) const CHUNK: u64 = 1 << 17;

/// Expected false positives in a measurement of the rate: 400 have a
/// standard deviation of 5 %.
const EXPECTED_FALSE: f64 = 400.0;

/// Measurements of a cell.
pub(crate) struct Outcome {
    pub(crate) rows: Vec<Row>,
    pub(crate) pages: HugePages,
}

/// A timed loop.
struct Job {
    contender: usize,
    queries: usize,
    mode: Mode,
    passes: usize,
    /// Sum of the answers of one pass.
    expected: u64,
    ns: Vec<f64>,
}

pub(crate) fn race(
    cell: &Cell,
    contenders: &mut [Box<dyn Contender>],
    effort: Effort,
    progress: &Progress,
) -> Result<Outcome> {
    let mut random = Random::new(0);
    let mut running: Vec<&mut Box<dyn Contender>> = Vec::new();
    for contender in contenders {
        progress.show(cell, contender.name(), "design");
        if contender.prepare(cell.items, cell.fpr)? {
            running.push(contender);
        }
    }
    let (plan, mut samples) =
        match cell.size {
            Size::Dram => fill_large,
            _ => fill_small,
        }(cell, &mut running, effort, progress, &mut random)?;

    let mut queries = Vec::new();
    for &keys in &cell.keys {
        for lookup in Lookup::ALL {
            let len = effort.queries;
            let new = Queries::new(lookup, keys, len, &plan, &mut random);
            queries.push((keys, new));
        }
    }
    let mut rates = Vec::new();
    for contender in &running {
        progress.show(cell, contender.name(), "rate");
        let absent = (EXPECTED_FALSE / cell.fpr).max((1 << 20) as f64);
        rates.push(contender.rate(cell.keys[0], absent as u64));
    }

    let mut jobs = Vec::new();
    for (c, contender) in running.iter().enumerate() {
        progress.show(cell, contender.name(), "check");
        for (q, (_, queries)) in queries.iter().enumerate() {
            let offered =
                |&mode: &Mode| contender.offers(queries.lookup(), mode);
            if !Mode::ALL.iter().any(offered) {
                continue;
            }
            let first = contender.expect(queries)?;
            let passes = (LEAST_NS / first.ns).ceil().max(1.0) as usize;
            for mode in Mode::ALL.into_iter().filter(offered) {
                jobs.push(Job {
                    contender: c,
                    queries: q,
                    mode,
                    passes,
                    expected: first.sum,
                    ns: Vec::new(),
                });
            }
        }
    }
    let others = match cell.size {
        Size::Dram => vec![1u64; largest_cache().max(EVICTING) / 8],
        _ => Vec::new(),
    };
    let batch_turns = match cell.size {
        Size::Dram => DRAM_TURNS,
        _ => BATCH_TURNS,
    };
    for round in 0..effort.rounds {
        progress.round(cell, round, effort.rounds);
        let mut turns: Vec<usize> = (0..jobs.len())
            .flat_map(|job| match jobs[job].mode {
                Mode::Single => vec![job],
                Mode::Batch => vec![job; batch_turns],
            })
            .collect();
        random.shuffle(&mut turns);
        if cell.size == Size::Dram && round > 0 {
            relocate(&mut running);
        }
        for turn in turns {
            let job = &mut jobs[turn];
            let contender = &running[job.contender];
            let (_, queries) = &queries[job.queries];
            if cell.size == Size::Dram {
                // Evicts lines that an earlier job has read.
                black_box(others.iter().step_by(8).sum::<u64>());
            } else {
                // Reloads lines that an earlier job has evicted.
                contender.look_up(queries, job.mode, 1);
            }
            let timed = contender.look_up(queries, job.mode, job.passes);
            if timed.sum != job.expected.wrapping_mul(job.passes as u64) {
                let name = contender.name();
                let lookup = queries.lookup().name();
                let mode = job.mode.name();
                return Err(format!(
                    "{name}: {lookup} {mode} and single lookups of the same \
                     keys returned different answers"
                )
                .into());
            }
            let operations = (queries.len() * job.passes) as f64;
            job.ns.push(timed.ns / operations);
        }
    }
    jobs.sort_by_key(|job| {
        (job.contender, job.queries, job.mode == Mode::Batch)
    });
    for job in jobs {
        let (keys, queries) = &queries[job.queries];
        samples.push(Sample {
            contender: job.contender,
            keys: *keys,
            operation: queries.lookup().name(),
            mode: job.mode,
            ns: job.ns,
        });
    }
    samples.sort_by_key(|sample| sample.contender);
    let rows = samples.iter().map(|sample| {
        let contender = &running[sample.contender];
        let bits = 8.0 * contender.bytes() as f64;
        Row {
            filter: contender.name(),
            size: cell.size,
            keys: sample.keys,
            operation: sample.operation,
            mode: sample.mode,
            target_fpr: cell.fpr,
            ns_best: sample.best(),
            ns_median: sample.median(),
            bits_per_key: bits / cell.items as f64,
            fpr: rates[sample.contender],
        }
    });
    let rows = rows.collect();
    let pages = HugePages::got();
    for contender in running {
        contender.clear();
    }
    Ok(Outcome { rows, pages })
}

/// Moves each contender to memory that another one has freed: on a virtual
/// machine the speed of memory depends on the address.
fn relocate(running: &mut [&mut Box<dyn Contender>]) {
    let half = running.len().div_ceil(2);
    thread::scope(|scope| {
        for half in running.chunks_mut(half) {
            scope.spawn(|| {
                for contender in half {
                    contender.relocate();
                }
            });
        }
    });
}

/// Fills one large filter of each contender: the last keys one by one, all
/// others by the fastest operation.
fn fill_large(
    cell: &Cell,
    running: &mut [&mut Box<dyn Contender>],
    effort: Effort,
    progress: &Progress,
    random: &mut Random,
) -> Result<(Plan, Vec<Sample>)> {
    let types = cell.keys.len() as u64;
    let later = effort.rounds as u64 * types * CHUNK;
    let plan = Plan {
        built: cell.items - later,
        items: cell.items,
        chunk: CHUNK,
        types: cell.keys.clone(),
        pattern: pattern(&cell.keys, effort),
        mode: Mode::Batch,
    };
    let mut samples = build_large(cell, running, &plan, effort, progress)?;

    let mut inserts: Vec<Sample> = Vec::new();
    for (contender, runner) in running.iter().enumerate() {
        for &keys in cell.keys.iter().filter(|_| runner.inserts()) {
            inserts.push(Sample::insert(contender, keys));
        }
    }
    for round in 0..effort.rounds as u64 {
        random.shuffle(&mut inserts);
        for sample in &mut inserts {
            let contender = &mut running[sample.contender];
            progress.show(cell, contender.name(), sample.operation);
            let turn = cell.keys.iter().position(|&keys| keys == sample.keys);
            let turn = turn.unwrap_or_default() as u64;
            let start = plan.built + (round * types + turn) * CHUNK;
            let ns = contender.insert(&plan, start..start + CHUNK)?;
            sample.ns.push(ns);
        }
    }
    samples.extend(inserts);
    Ok((plan, samples))
}

/// Types of the chunks a large filter is built from: one of each type, and
/// `effort.hashes` more of hashes. Hashes take the least time to insert, so
/// a quick run has more of them.
fn pattern(types: &[KeyType], effort: Effort) -> Vec<KeyType> {
    let first = types.iter().copied().take(1).cycle().take(effort.hashes);
    first.chain(types.iter().copied()).collect()
}

/// Builds one filter of each contender on `effort.builders` threads.
fn build_large(
    cell: &Cell,
    running: &mut [&mut Box<dyn Contender>],
    plan: &Plan,
    effort: Effort,
    progress: &Progress,
) -> Result<Vec<Sample>> {
    // Last first: the slow contenders are at the end, and so are those that
    // need temporary memory, which is still free at the beginning.
    let waiting = Mutex::new(running.iter_mut().enumerate().rev());
    let work = || -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        // A closure: in the loop's condition the lock would be held through
        // the body.
        let next = || waiting.lock().ok()?.next();
        while let Some((c, contender)) = next() {
            progress.show(cell, contender.name(), "build");
            let ns = contender.fill(plan)?.unwrap_or_default();
            for (&keys, ns) in cell.keys.iter().zip(ns) {
                samples.push(Sample::build(c, keys, vec![ns]));
            }
        }
        Ok(samples)
    };
    thread::scope(|scope| {
        let workers: Vec<_> =
            (0..effort.builders).map(|_| scope.spawn(work)).collect();
        let mut samples = Vec::new();
        for worker in workers {
            samples.extend(worker.join().expect("no builder panics")?);
        }
        Ok(samples)
    })
}

/// Fills small filters of each contender, each by one operation.
fn fill_small(
    cell: &Cell,
    running: &mut [&mut Box<dyn Contender>],
    effort: Effort,
    progress: &Progress,
    random: &mut Random,
) -> Result<(Plan, Vec<Sample>)> {
    let keys = cell.keys[0];
    let mut plan = Plan {
        built: cell.items,
        items: cell.items,
        chunk: cell.items,
        types: vec![keys],
        pattern: vec![keys],
        mode: Mode::Batch,
    };
    let mut samples: Vec<Sample> = Vec::new();
    for (contender, runner) in running.iter().enumerate() {
        samples.push(Sample::build(contender, keys, Vec::new()));
        if runner.inserts() {
            samples.push(Sample::insert(contender, keys));
        }
    }
    for _ in 0..effort.fills {
        random.shuffle(&mut samples);
        for sample in &mut samples {
            let contender = &mut running[sample.contender];
            progress.show(cell, contender.name(), sample.operation);
            plan.mode = sample.mode;
            sample.ns.extend(contender.fill(&plan)?.unwrap_or_default());
        }
    }
    samples.retain(|sample| !sample.ns.is_empty());
    Ok((plan, samples))
}

/// Measurements of one operation of one contender.
struct Sample {
    contender: usize,
    keys: KeyType,
    operation: &'static str,
    mode: Mode,
    ns: Vec<f64>,
}

impl Sample {
    fn build(contender: usize, keys: KeyType, ns: Vec<f64>) -> Self {
        let (operation, mode) = ("build", Mode::Batch);
        Self { contender, keys, operation, mode, ns }
    }

    fn insert(contender: usize, keys: KeyType) -> Self {
        let (operation, mode) = ("insert", Mode::Single);
        Self { contender, keys, operation, mode, ns: Vec::new() }
    }

    fn best(&self) -> f64 {
        self.ns.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn median(&self) -> f64 {
        let mut ns = self.ns.clone();
        ns.sort_by(f64::total_cmp);
        let middle = ns.len() / 2;
        match ns.len() % 2 {
            0 => (ns[middle - 1] + ns[middle]) / 2.0,
            _ => ns[middle],
        }
    }
}
