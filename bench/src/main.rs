//! Benchmark of tamis, its peers and the roofline of the hardware.

mod allocator;
mod clock;
mod contender;
mod keys;
mod machine;
mod output;
mod progress;
mod race;
mod report;
mod roofline;
mod section;
mod subject;
mod subjects;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use contender::{Contender, Entry};
use keys::KeyType;
use machine::{HugePages, Machine};
use progress::Progress;
use race::{CHUNK, Cell, Effort, race};
use roofline::Roofline;
use subject::Result;
use subjects::ours::{
    Balanced, Blocked, BlockedAsSbbf, Bloom, HalfTinySet, Ours,
    RemovableTinySet, Split, TinySet, TinySetAsSbbf,
};
use subjects::peers::{
    AtomicFastBloom, BloomFilter, CuckooFilter, FastBloom, Fuse, QFilter, Sbbf,
};

#[global_allocator]
static ALLOCATOR: allocator::HugePages = allocator::HugePages;

/// Measure every filter of tamis, its peers and the roofline
#[derive(Parser)]
#[command(name = "cargo xtask bench")]
struct Cli {
    /// Fewer repetitions and combinations; takes five minutes
    #[arg(long)]
    quick: bool,
    /// Write all measurements to this JSON file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure only these filters
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
    /// Measure only filters of these sizes
    #[arg(long, value_delimiter = ',', value_name = "SIZES")]
    size: Vec<Size>,
    /// Measure only these key types
    #[arg(long, value_delimiter = ',', value_name = "KINDS")]
    keys: Vec<KeyType>,
    /// Measure only these target false-positive rates
    #[arg(long, value_delimiter = ',', value_name = "RATES")]
    fpr: Vec<f64>,
    /// Number of keys, instead of the size's own
    #[arg(long, value_name = "N")]
    items: Option<u64>,
    /// Directory of the figures
    #[arg(long, value_name = "DIRECTORY", default_value = "target/bench")]
    svg: PathBuf,
    /// Write the filters of docs/benchmarks.md, and its figures
    #[arg(long)]
    write_docs: bool,
}

impl Cli {
    /// The command line, without options that only name output files.
    fn command(&self) -> String {
        let mut words = vec!["cargo xtask bench".to_owned()];
        let options = std::env::args().skip(1);
        let mut skip = false;
        for option in options {
            let place = option == "--json" || option == "--svg";
            let with_place =
                option.starts_with("--json=") || option.starts_with("--svg=");
            if !skip && !place && !with_place {
                words.push(option);
            }
            skip = place;
        }
        words.join(" ")
    }
}

/// Level of the memory hierarchy that holds the filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Size {
    /// 250 KiB at 10 bits per key
    L2,
    /// 4 MiB at 10 bits per key
    L3,
    /// 512 MiB or more
    Dram,
}

impl Size {
    const ALL: [Self; 3] = [Self::L2, Self::L3, Self::Dram];

    /// The heading in the documents.
    fn title(self) -> &'static str {
        match self {
            Self::L2 => "In the second-level cache: 200,000 keys",
            Self::L3 => "In the third-level cache: 3,200,000 keys",
            Self::Dram => "In DRAM: 512 MiB and more",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::L2 => "l2",
            Self::L3 => "l3",
            Self::Dram => "dram",
        }
    }

    /// Number of keys. In DRAM, the number that a standard Bloom filter of
    /// log2(1 / fpr) / ln 2 bits per key holds in 512 MiB.
    ///
    /// Filters with a power of two of slots are then 76 % full in the
    /// caches, and 83 %, 56 % and 83 % at the three targets in DRAM: neither
    /// their best nor their worst case, in memory and in time.
    fn items(self, fpr: f64) -> u64 {
        match self {
            Self::L2 => 200_000,
            Self::L3 => 3_200_000,
            Self::Dram => {
                let bits_per_key = -fpr.log2() / std::f64::consts::LN_2;
                ((512u64 << 23) as f64 / bits_per_key).ceil() as u64
            }
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} %", self.size.name(), 100.0 * self.fpr)
    }
}

/// All contenders. A new filter is added here.
fn contenders() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Roofline::default()),
        Entry::<Ours<Bloom>>::boxed(),
        Entry::<Ours<Blocked>>::boxed(),
        Entry::<Ours<BlockedAsSbbf>>::boxed(),
        Entry::<Ours<Split>>::boxed(),
        Entry::<Ours<Balanced>>::boxed(),
        Entry::<Ours<TinySet>>::boxed(),
        Entry::<Ours<TinySetAsSbbf>>::boxed(),
        Entry::<Ours<HalfTinySet>>::boxed(),
        Entry::<Ours<RemovableTinySet>>::boxed(),
        Entry::<Sbbf>::boxed(),
        Entry::<FastBloom>::boxed(),
        Entry::<AtomicFastBloom>::boxed(),
        Entry::<BloomFilter>::boxed(),
        Entry::<QFilter>::boxed(),
        Entry::<CuckooFilter>::boxed(),
        Entry::<Fuse<xorf::BinaryFuse8>>::boxed(),
        Entry::<Fuse<xorf::BinaryFuse16>>::boxed(),
    ]
}

fn main() -> ExitCode {
    output::exit_code("bench", run(&Cli::parse()))
}

fn run(cli: &Cli) -> Result {
    let cells = cells(cli);
    let progress = Progress::new(cells.len())?;
    let mut rows = Vec::new();
    let mut pages = HugePages::default();
    for cell in &cells {
        let effort = effort(cell.size, cli.quick);
        let mut running = contenders();
        running.retain(|contender| runs(cli, cell.size, contender.name()));
        let outcome = race(cell, &mut running, effort, &progress)?;
        rows.extend(outcome.rows);
        pages = pages.larger(outcome.pages);
        progress.step(cell);
    }
    progress.finish();
    let machine = Machine::this();
    let summary = format!(
        "{}\n{}\n{}\n{}\n{}\n{pages}\n",
        report::table(&rows),
        report::goals(&rows)?,
        report::instructions(),
        machine,
        machine::RUSTC,
    );
    if let Some(path) = &cli.json {
        std::fs::write(path, report::json(&rows))?;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let pictures = match cli.write_docs {
        true => root.join("docs/img"),
        false => cli.svg.clone(),
    };
    std::fs::create_dir_all(&pictures)?;
    for size in Size::ALL {
        let path = pictures.join(report::picture(&machine, size));
        report::svg(&path, size, &rows)?;
    }
    if cli.write_docs {
        let command = cli.command();
        let builders = effort(Size::Dram, cli.quick).builders;
        let run = report::Run { command, pages, builders };
        let sections = report::docs(&run, &machine, &rows)?;
        section::replace("filters", &sections.shared)?;
        let name = format!("filters on {}", machine.key());
        section::replace_or_add(&name, "filters", &sections.own)?;
    }
    // Last: a closed output must not lose the files.
    Ok(output::print(&summary)?)
}

/// Whether a contender is measured at this size.
fn runs(cli: &Cli, size: Size, name: &str) -> bool {
    match cli.only.is_empty() {
        true if cli.quick && size == Size::Dram => {
            QUICK_IN_DRAM.contains(&name)
        }
        true => true,
        false => cli.only.iter().any(|wanted| wanted == name),
    }
}

/// Names of the filters of other crates.
const PEERS: [&str; 7] = [
    "sbbf-rs",
    "fastbloom",
    "fastbloom-atomic",
    "bloomfilter",
    "qfilter",
    "cuckoofilter",
    "xorf",
];

const TARGETS: [f64; 3] = [0.01, 0.001, 0.0001];

/// Contenders of a quick run in DRAM.
const QUICK_IN_DRAM: [&str; 10] = [
    "roofline",
    "bloom",
    "blocked",
    "split",
    "balanced",
    "tinyset",
    "sbbf-rs",
    "fastbloom",
    "qfilter",
    "cuckoofilter",
];

/// Whether a cell is part of a quick run.
fn quick(size: Size, keys: KeyType, fpr: f64) -> bool {
    match size {
        Size::L2 => fpr == TARGETS[0] || keys == KeyType::Hash,
        Size::L3 => fpr == TARGETS[0],
        // The target with the fewest keys.
        Size::Dram => fpr == TARGETS[2],
    }
}

fn cells(cli: &Cli) -> Vec<Cell> {
    fn among<T: PartialEq>(wanted: &[T], given: &T) -> bool {
        wanted.is_empty() || wanted.contains(given)
    }
    let mut cells = Vec::new();
    for size in Size::ALL.into_iter().filter(|size| among(&cli.size, size)) {
        for fpr in TARGETS.into_iter().filter(|fpr| among(&cli.fpr, fpr)) {
            let keys: Vec<KeyType> = KeyType::ALL
                .into_iter()
                .filter(|keys| among(&cli.keys, keys))
                .filter(|&keys| !cli.quick || quick(size, keys, fpr))
                .collect();
            let items = cli.items.unwrap_or(size.items(fpr));
            if size != Size::Dram {
                cells.extend(keys.into_iter().map(|keys| {
                    let keys = vec![keys];
                    Cell { size, items, fpr, keys }
                }));
            } else if !keys.is_empty() {
                let items = items.next_multiple_of(CHUNK);
                cells.push(Cell { size, items, fpr, keys });
            }
        }
    }
    cells
}

fn effort(size: Size, quick: bool) -> Effort {
    let (fills, rounds) = match (size, quick) {
        (Size::L2, true) => (6, 5),
        (Size::L3, true) => (4, 4),
        (Size::Dram, true) => (1, 4),
        (Size::L2, false) => (7, 15),
        (Size::L3, false) => (3, 11),
        (Size::Dram, false) => (1, 7),
    };
    let queries = match (size, quick) {
        (Size::L2, _) | (_, true) => 1 << 18,
        (Size::L3 | Size::Dram, false) => 1 << 19,
    };
    let (builders, hashes) = if quick { (2, 5) } else { (1, 0) };
    Effort { fills, rounds, builders, hashes, queries }
}
