//! Lookups in multilevel tables with each summary, without a summary, and in
//! `hashbrown`.
//!
//! ```text
//! cargo xtask bench tables [--items N,..] [--json FILE] [--write-docs]
//! ```

#[path = "../clock.rs"]
mod clock;
#[path = "../machine.rs"]
#[expect(dead_code, reason = "the other benchmark uses all of it")]
mod machine;
#[path = "../output.rs"]
mod output;
#[path = "../section.rs"]
#[expect(dead_code, reason = "the other benchmark uses all of it")]
mod section;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tamis::KeyHasher;
use tamis::summary::{
    FilterStack, Interpolation, NoSummary, Summary, SummaryBuilder, TypeFilter,
};
use tamis::table::{Multilevel, MultilevelBuilder};

use clock::timed;
use machine::{Machine, RUSTC, version_of};

const NO_SUMMARY: &str = "no summary";
const SUMMARIES: [&str; 3] = ["interpolation", "type filter", "filter stack"];

type Result<T = ()> = std::result::Result<T, output::Failure>;

/// Measure lookups in multilevel tables
#[derive(Parser)]
#[command(name = "cargo xtask bench tables")]
struct Cli {
    /// Numbers of keys in the tables
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N",
        default_values_t = [20_000, 1_000_000, 10_000_000],
    )]
    items: Vec<u64>,
    /// Hits, and misses, in a repetition
    #[arg(long, default_value_t = 1 << 19)]
    queries: u64,
    /// Repetitions; the best one is reported
    #[arg(long, default_value_t = 11)]
    rounds: usize,
    /// Write all measurements to this JSON file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the tables of docs/benchmarks.md
    #[arg(long)]
    write_docs: bool,
}

impl Cli {
    /// The command line, with all options that change the measurement.
    fn command(&self) -> String {
        let Self { items, queries, rounds, .. } = self;
        let items: Vec<String> = items.iter().map(u64::to_string).collect();
        let items = items.join(",");
        format!(
            "cargo xtask bench tables --items {items} --queries {queries} \
             --rounds {rounds} --write-docs"
        )
    }
}

/// A map from keys to values.
trait Table {
    /// Sum of the values of the keys found, and the number found.
    fn sum(&self, keys: &[u64]) -> (u64, u64);

    /// Buckets read by lookups of these keys; `None` without buckets.
    fn reads(&self, keys: &[u64]) -> Option<u64>;

    /// Bits of the summary per key; `None` without a summary.
    fn bits_per_key(&self) -> Option<f64>;
}

/// Sum and number of the values found.
fn sum<'a>(values: impl Iterator<Item = Option<&'a u64>>) -> (u64, u64) {
    values.flatten().fold((0, 0), |(sum, count), value| {
        (sum.wrapping_add(*value), count + 1)
    })
}

impl<S: Summary> Table for Multilevel<u64, u64, S> {
    fn sum(&self, keys: &[u64]) -> (u64, u64) {
        sum(keys.iter().map(|key| self.get(key)))
    }

    fn reads(&self, keys: &[u64]) -> Option<u64> {
        Some(keys.iter().map(|key| u64::from(self.lookup(key).reads)).sum())
    }

    fn bits_per_key(&self) -> Option<f64> {
        self.stats().summary_bits_per_key
    }
}

impl Table for hashbrown::HashMap<u64, u64> {
    fn sum(&self, keys: &[u64]) -> (u64, u64) {
        sum(keys.iter().map(|key| self.get(key)))
    }

    fn reads(&self, _keys: &[u64]) -> Option<u64> {
        None
    }

    fn bits_per_key(&self) -> Option<f64> {
        None
    }
}

struct Contender {
    name: &'static str,
    table: Box<dyn Table>,
    /// Nanoseconds of the best round, for hits and for misses.
    best: [f64; 2],
}

impl Contender {
    fn new(name: &'static str, table: Box<dyn Table>) -> Self {
        Self { name, table, best: [f64::INFINITY; 2] }
    }
}

/// Key `number`; keys from `items` on are in no table.
fn key(number: u64) -> u64 {
    // A hash function that no table has.
    KeyHasher::xxh3(0x7461_6d69_7300).hash(&number)
}

fn filled<P: SummaryBuilder>(
    builder: &MultilevelBuilder,
    summary: &P,
    items: u64,
) -> Result<Box<dyn Table>>
where
    P::Summary: 'static,
{
    let mut table = builder.build_with(summary)?;
    for number in 0..items {
        table.insert(key(number), number)?;
    }
    table.audit();
    Ok(Box::new(table))
}

fn contenders(items: u64) -> Result<Vec<Contender>> {
    let builder =
        Multilevel::builder().hasher(KeyHasher::default()).items(items);
    let mut map = hashbrown::HashMap::with_capacity(items as usize);
    map.extend((0..items).map(|number| (key(number), number)));
    let strings = Interpolation::builder();
    let cells = TypeFilter::builder();
    let stack = FilterStack::builder();
    let [searched, single, several] = SUMMARIES;
    Ok(vec![
        Contender::new(
            NO_SUMMARY,
            filled(&builder, &NoSummary::builder(), items)?,
        ),
        Contender::new(searched, filled(&builder, &strings, items)?),
        Contender::new(single, filled(&builder, &cells, items)?),
        Contender::new(several, filled(&builder, &stack, items)?),
        Contender::new("hashbrown", Box::new(map)),
    ])
}

/// Keys to look up, and the sum and number of their values.
struct Queries {
    keys: Vec<u64>,
    answer: (u64, u64),
}

impl Queries {
    /// Present keys, in random order.
    fn hits(items: u64, count: u64) -> Self {
        let hasher = KeyHasher::xxh3(2);
        let numbers: Vec<u64> =
            (0..count).map(|i| hasher.hash(&i) % items).collect();
        let sum = numbers.iter().fold(0, |sum: u64, n| sum.wrapping_add(*n));
        let keys = numbers.into_iter().map(key).collect();
        Self { keys, answer: (sum, count) }
    }

    fn misses(items: u64, count: u64) -> Self {
        let keys = (items..items + count).map(key).collect();
        Self { keys, answer: (0, 0) }
    }

    fn reads_per_key(&self, table: &dyn Table) -> Option<f64> {
        let reads = table.reads(&self.keys)?;
        Some(reads as f64 / self.keys.len() as f64)
    }
}

/// One row of the report.
struct Row {
    items: u64,
    name: &'static str,
    /// Million lookups per second, for hits and for misses.
    speed: [f64; 2],
    /// Buckets read per hit and per miss.
    reads: [Option<f64>; 2],
    bits_per_key: Option<f64>,
}

/// Measures all contenders in turn; each round begins with another one.
fn race(cli: &Cli, items: u64) -> Result<Vec<Row>> {
    let mut running = contenders(items)?;
    let queries = [
        Queries::hits(items, cli.queries),
        Queries::misses(items, cli.queries),
    ];
    for _ in 0..cli.rounds {
        running.rotate_left(1);
        for contender in &mut running {
            for (best, queries) in contender.best.iter_mut().zip(&queries) {
                let (taken, answer) =
                    timed(|| contender.table.sum(&queries.keys));
                if answer != queries.answer {
                    let name = contender.name;
                    return Err(format!("{name}: wrong answers").into());
                }
                *best = best.min(taken);
            }
        }
    }
    let turns = cli.rounds % running.len();
    running.rotate_right(turns);
    let row = |contender: &Contender| {
        let table = &*contender.table;
        Row {
            items,
            name: contender.name,
            speed: contender.best.map(|ns| 1e3 * cli.queries as f64 / ns),
            reads: [0, 1].map(|i: usize| queries[i].reads_per_key(table)),
            bits_per_key: table.bits_per_key(),
        }
    };
    Ok(running.iter().map(row).collect())
}

fn main() -> ExitCode {
    output::exit_code("tables", run(&Cli::parse()))
}

fn run(cli: &Cli) -> Result {
    let mut rows = Vec::new();
    for &items in &cli.items {
        rows.extend(race(cli, items)?);
    }
    if let Some(path) = &cli.json {
        std::fs::write(path, json(&rows))?;
    }
    if cli.write_docs {
        section::replace("tables", &docs(cli, &rows))?;
    }
    // Last: a closed output must not lose the files.
    let (table, machine) = (table(&rows), Machine::this());
    Ok(output::print(&format!("{table}\n{machine}\n{RUSTC}\n"))?)
}

fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| keys | | hits, million a second | misses | reads per hit \
         | per miss | summary, bits per key |\n|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let [hit, miss] = row.speed;
        let _ = writeln!(
            text,
            "| {} | {} | {hit:.2} | {miss:.2} | {} | {} | {} |",
            row.items,
            row.name,
            shown(row.reads[0], 4),
            shown(row.reads[1], 4),
            shown(row.bits_per_key, 2),
        );
    }
    text
}

/// A list of rows. No string in them needs escaping.
fn json(rows: &[Row]) -> String {
    let number = |value: Option<f64>| {
        value.map_or("null".to_owned(), |value| value.to_string())
    };
    let objects: Vec<String> = rows
        .iter()
        .map(|row| {
            format!(
                concat!(
                    r#"{{"items": {}, "table": "{}", "#,
                    r#""hits_per_microsecond": {:.4}, "#,
                    r#""misses_per_microsecond": {:.4}, "#,
                    r#""reads_hit": {}, "reads_miss": {}, "#,
                    r#""summary_bits_per_key": {}}}"#
                ),
                row.items,
                row.name,
                row.speed[0],
                row.speed[1],
                number(row.reads[0]),
                number(row.reads[1]),
                number(row.bits_per_key),
            )
        })
        .collect();
    format!("[\n{}\n]\n", objects.join(",\n"))
}

/// The summaries with which a lookup, a hit (0) or a miss (1), was faster
/// than without one, whatever the number of keys.
fn faster(rows: &[Row], lookup: usize) -> String {
    let without = |items: u64| {
        let mut same = rows.iter().filter(|row| row.items == items);
        same.find(|row| row.name == NO_SUMMARY)
    };
    let is_faster = |row: &Row| {
        without(row.items)
            .is_some_and(|none| row.speed[lookup] > none.speed[lookup])
    };
    let all_faster = |name: &&str| {
        rows.iter().filter(|row| row.name == *name).all(is_faster)
    };
    let names: Vec<&str> = SUMMARIES.into_iter().filter(all_faster).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn docs(cli: &Cli, rows: &[Row]) -> String {
    let command = cli.command();
    let version = version_of("hashbrown").unwrap_or("unknown");
    let (table, machine) = (table(rows), Machine::this());
    let [hits, misses] = [0, 1].map(|lookup| faster(rows, lookup));
    format!(
        "\
## Tables

```console
$ {command}
```

Speed is processor time on one core, the best of several repetitions, the
tables in turn.

* Machine: {machine}.
* {RUSTC}, release with link-time optimisation, no `target-cpu`.
* hashbrown {version}, with its own hash function.

Keys and values are 64-bit integers, looked up one after the other. The tables
are built by `Multilevel::builder().items(n)` with XXH3 and each summary's default
settings, and audited after filling. Every sum of values is compared with the
expected one.

{table}
**Reads** are buckets of the table: the cost of a lookup whose entries are in
slow memory, for which summaries are made. This experiment has both in RAM, so
that a summary pays only if it avoids more reads than it adds. Faster than no
summary, at all numbers of keys above:

* hits: {hits};
* misses: {misses}.

`hashbrown` is the reference for a table that is in RAM and may move its
entries.
"
    )
}
