//! Throughput of building large filters on one core and on all, and of
//! `tamis query` with a long list of keys.
//!
//! ```text
//! cargo xtask bench throughput [--items N] [--json FILE] [--write-docs]
//! ```

#[path = "../machine.rs"]
#[expect(dead_code, reason = "the other benchmark uses all of it")]
mod machine;
#[path = "../output.rs"]
mod output;
#[path = "../section.rs"]
#[expect(dead_code, reason = "the other benchmark uses all of it")]
mod section;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Parser;
use tamis::{Blocked, Filter, KeyHasher, Split, TinySet};

use machine::{Machine, RUSTC};
use output::note;

type Result<T = ()> = std::result::Result<T, output::Failure>;

/// Measure building on several cores, and `tamis query`
#[derive(Parser)]
#[command(name = "cargo xtask bench throughput")]
struct Cli {
    /// Keys in every filter
    #[arg(long, default_value_t = 100_000_000)]
    items: u64,
    /// Keys looked up by `tamis query`
    #[arg(long, default_value_t = 20_000_000)]
    queries: u64,
    /// Repetitions; the best one is reported
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Executable to measure
    #[arg(long, value_name = "FILE", default_value = "target/release/tamis")]
    tamis: PathBuf,
    /// Write all measurements to this JSON file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the throughput of docs/benchmarks.md
    #[arg(long)]
    write_docs: bool,
}

/// Keys generated and hashed together.
const CHUNK: u64 = 1 << 14;

const FPR: f64 = 0.01;

/// The 20 bytes of key `number`.
fn key(number: u64) -> [u8; 20] {
    let mut key = *b"key-0000000000000000";
    let mut left = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    key
}

fn chunks(items: u64) -> impl Iterator<Item = Range<u64>> + Send {
    (0..items.div_ceil(CHUNK)).map(move |chunk| {
        let first = chunk * CHUNK;
        first..(first + CHUNK).min(items)
    })
}

fn hash_all(hasher: KeyHasher) -> impl Fn(Range<u64>, &mut Vec<u64>) + Sync {
    move |numbers, hashes| {
        hashes.extend(numbers.map(|number| hasher.hash(&key(number))));
    }
}

/// A measured filter.
trait Built: Filter + Clone + PartialEq + Sized {
    const NAME: &'static str;

    fn empty(items: u64) -> Result<Self>;

    fn fill(&mut self, items: u64, threads: NonZero<usize>);

    fn save(&self, path: &Path) -> Result;
}

macro_rules! built {
    ($($type:ty: $name:literal),*) => {$(
        impl Built for $type {
            const NAME: &'static str = $name;

            fn empty(items: u64) -> Result<Self> {
                Ok(<$type>::builder().items(items).fpr(FPR).build()?)
            }

            fn fill(&mut self, items: u64, threads: NonZero<usize>) {
                let hash = hash_all(*self.hasher());
                self.insert_parallel_with(chunks(items), threads, hash);
            }

            fn save(&self, path: &Path) -> Result {
                Ok(<$type>::save(self, path)?)
            }
        }
    )*};
}
built!(Blocked: "blocked", Split: "split", TinySet: "tinyset");

/// Keys per second, in millions.
fn rate(keys: u64, seconds: f64) -> f64 {
    keys as f64 / seconds / 1e6
}

struct Build {
    name: &'static str,
    /// Millions of keys per second on one core and on all.
    one: f64,
    all: f64,
}

/// Builds with one thread and with all, in turn, and compares the bytes.
fn build<F: Built>(cli: &Cli, cores: NonZero<usize>) -> Result<Build> {
    let one_core = NonZero::<usize>::MIN;
    let mut best = [f64::MAX; 2];
    let mut first: Option<F> = None;
    for round in 0..cli.rounds {
        for (best, threads) in best.iter_mut().zip([one_core, cores]) {
            let (name, round) = (F::NAME, round + 1);
            note(&format!("{name}, round {round}, {threads} threads\n"));
            let mut filter = F::empty(cli.items)?;
            let start = Instant::now();
            filter.fill(cli.items, threads);
            *best = best.min(start.elapsed().as_secs_f64());
            if first.get_or_insert_with(|| filter.clone()) != &filter {
                let name = F::NAME;
                return Err(format!(
                    "{name}: the bytes depend on the number of threads"
                )
                .into());
            }
        }
    }
    let [one, all] = best.map(|seconds| rate(cli.items, seconds));
    Ok(Build { name: F::NAME, one, all })
}

struct Query {
    name: &'static str,
    /// Seconds of `tamis query`, and of batched lookups of the same keys.
    query: f64,
    lookups: f64,
}

/// Seconds of a command whose output must begin with `expected`.
fn run(command: &mut Command, expected: &str) -> Result<f64> {
    let start = Instant::now();
    let output = command.output()?;
    let seconds = start.elapsed().as_secs_f64();
    let printed = String::from_utf8(output.stdout)?;
    match printed.split_whitespace().next() == Some(expected) {
        true => Ok(seconds),
        false => Err(format!("{command:?} printed {printed:?}").into()),
    }
}

fn query<F: Built>(cli: &Cli, directory: &Path) -> Result<Query> {
    let cores = std::thread::available_parallelism()?;
    let mut filter = F::empty(cli.items)?;
    filter.fill(cli.items, cores);
    let path = directory.join("filter.tamis");
    filter.save(&path)?;
    let keys = directory.join("keys.txt");
    let mut hashes = Vec::new();
    hash_all(*filter.hasher())(queried(cli), &mut hashes);
    let mut found = vec![false; hashes.len()];
    filter.contains_hash_batch(&hashes, &mut found);
    let matched = found.iter().filter(|&&found| found).count().to_string();
    let (mut best, mut lookups) = (f64::MAX, f64::MAX);
    for round in 0..cli.rounds {
        note(&format!("tamis query, {}, round {}\n", F::NAME, round + 1));
        let mut command = Command::new(&cli.tamis);
        command.args(["query", "--count"]).arg(&path).arg(&keys);
        best = best.min(run(&mut command, &matched)?);
        let start = Instant::now();
        for hashes in hashes.chunks(1 << 14) {
            filter.contains_hash_batch(hashes, &mut found[..hashes.len()]);
        }
        lookups = lookups.min(start.elapsed().as_secs_f64());
    }
    Ok(Query { name: F::NAME, query: best, lookups })
}

/// Numbers of the keys looked up, half of which are in the filter.
fn queried(cli: &Cli) -> Range<u64> {
    let half = cli.queries / 2;
    cli.items.saturating_sub(half)
        ..cli.items.saturating_sub(half) + cli.queries
}

fn write_keys(cli: &Cli, path: &Path) -> Result {
    let mut out = BufWriter::new(File::create(path)?);
    for number in queried(cli) {
        out.write_all(&key(number))?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

struct Results {
    cores: usize,
    builds: Vec<Build>,
    queries: Vec<Query>,
    /// Seconds of `wc -l` on the keys.
    wc: f64,
}

fn measure(cli: &Cli) -> Result<Results> {
    let cores = std::thread::available_parallelism()?;
    let builds = vec![
        build::<Blocked>(cli, cores)?,
        build::<Split>(cli, cores)?,
        build::<TinySet>(cli, cores)?,
    ];
    let directory = Path::new("target/throughput");
    std::fs::create_dir_all(directory)?;
    let keys = directory.join("keys.txt");
    write_keys(cli, &keys)?;
    let lines = cli.queries.to_string();
    let mut wc = f64::MAX;
    for _ in 0..=cli.rounds {
        wc = wc.min(run(Command::new("wc").arg("-l").arg(&keys), &lines)?);
    }
    let queries = vec![
        query::<Blocked>(cli, directory)?,
        query::<TinySet>(cli, directory)?,
    ];
    std::fs::remove_dir_all(directory)?;
    Ok(Results { cores: cores.get(), builds, queries, wc })
}

fn report(
    cli: &Cli,
    results: &Results,
) -> std::result::Result<String, std::fmt::Error> {
    let Results { cores, builds, queries, wc } = results;
    let mut out = String::new();
    writeln!(
        out,
        "## Throughput\n\n```console\n\
         $ cargo xtask bench throughput --items {} --queries {} --rounds {} \
         --write-docs\n```\n\n\
         * Machine: {}.\n\
         * {RUSTC}. Best of the rounds.\n\n\
         ### Building\n\n\
         {} keys of 20 bytes, generated and hashed by the building threads; \
         filters for 1 %.\nAll builds of a kind give the same bytes, which \
         the benchmark checks.\n\n\
         | million keys a second | one core | {cores} cores | ratio |\n\
         |---|---|---|---|",
        cli.items,
        cli.queries,
        cli.rounds,
        Machine::this(),
        cli.items,
    )?;
    for Build { name, one, all } in builds {
        writeln!(out, "| {name} | {one:.1} | {all:.1} | {:.2} |", all / one)?;
    }
    writeln!(
        out,
        "\n### Querying on the command line\n\n\
         `tamis query --count` on one core: {} keys of 20 bytes, one per \
         line, from a file\nin the page cache; half of them are among the \
         {} keys of the filter. `wc -l`\ncounts the same lines; \
         \"lookups\" are batches in the library, of hashes computed \
         before.\n\n\
         | | seconds | million keys a second | times `wc -l` + lookups |\n\
         |---|---|---|---|\n\
         | `wc -l` | {wc:.3} | {:.1} | |",
        cli.queries,
        cli.items,
        rate(cli.queries, *wc),
    )?;
    for Query { name, query, lookups } in queries {
        writeln!(
            out,
            "| lookups, {name} | {lookups:.3} | {:.1} | |\n\
             | `tamis query`, {name} | {query:.3} | {:.1} | {:.2} |",
            rate(cli.queries, *lookups),
            rate(cli.queries, *query),
            query / (wc + lookups),
        )?;
    }
    Ok(out)
}

fn json(results: &Results) -> String {
    let Results { cores, builds, queries, wc } = results;
    let builds = builds.iter().map(|Build { name, one, all }| {
        format!(
            "{{\"build\":\"{name}\",\"cores\":{cores},\
             \"one_core\":{one},\"all_cores\":{all}}}"
        )
    });
    let queries = queries.iter().map(|Query { name, query, lookups }| {
        format!(
            "{{\"query\":\"{name}\",\"seconds\":{query},\
             \"lookup_seconds\":{lookups},\"wc_seconds\":{wc}}}"
        )
    });
    let rows: Vec<String> = builds.chain(queries).collect();
    format!("[\n{}\n]\n", rows.join(",\n"))
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = || -> Result {
        let results = measure(&cli)?;
        let report = report(&cli, &results)?;
        if let Some(path) = &cli.json {
            std::fs::write(path, json(&results))?;
        }
        if cli.write_docs {
            section::replace("throughput", &report)?;
        }
        // Last: a closed output must not lose the files.
        Ok(output::print(&report)?)
    };
    output::exit_code("throughput", done())
}
