//! Lookups of a storage engine: one filter per sorted run, all filters at odd
//! offsets of one buffer, one hash and a probe of every run per lookup.
//! Filters are opened once, or at each lookup, as engines do that keep filters
//! as bytes in a block cache.
//!
//! ```text
//! cargo xtask bench adapter [--runs N] [--items N] [--write-docs]
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
use std::hint::black_box;
use std::marker::PhantomData;
use std::ops::Range;
use std::process::ExitCode;

use clap::Parser;
use tamis::{AnyFilter, Blocked, Filter, Header, KeyHasher, Kind, TinySet};

use clock::timed;
use machine::{Machine, RUSTC, version_of};

type Result<T = ()> = std::result::Result<T, output::Failure>;

const FPR: f64 = 0.01;
/// Probes of the peers: the best number for [`FPR`].
const PROBES: u32 = 7;

/// Measure the lookups of a storage engine
#[derive(Parser)]
#[command(name = "cargo xtask bench adapter")]
struct Cli {
    /// Sorted runs, each with a filter
    #[arg(long, default_value_t = 20)]
    runs: u64,
    /// Keys of a run
    #[arg(long, default_value_t = 5_000)]
    items: u64,
    /// Repetitions; the best one is reported
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Write the section of docs/benchmarks.md
    #[arg(long)]
    write_docs: bool,
}

/// The runs that may have a key, counted for a list of hashes.
trait Engine {
    fn candidates(&self, hashes: &[u64]) -> Result<u64>;
}

/// All filters in one buffer.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
}

impl Buffer {
    fn push(&mut self, filter: &[u8]) {
        // Stands for the data of a run, of odd length as after compression.
        let gap = 1001 + 13 * self.places.len();
        self.bytes.resize(self.bytes.len() + gap, 0);
        let start = self.bytes.len();
        self.bytes.extend(filter);
        self.places.push(start..self.bytes.len());
    }

    fn filters(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|place| &self.bytes[place.clone()])
    }
}

/// Sum of `open(run)` lookups over all hashes and filters.
macro_rules! count {
    ($hashes:expr, $filters:expr, $hash:ident, $filter:ident => $found:expr) => {{
        let mut count = 0;
        for &$hash in $hashes {
            for $filter in $filters {
                count += u64::from($found);
            }
        }
        Ok(count)
    }};
}

/// A type of filter of tamis, in borrowed bytes: an engine knows which one it
/// writes.
trait Typed {
    const KIND: Kind;
    type View<'a>: Filter;

    fn open(bytes: &[u8]) -> tamis::Result<Self::View<'_>>;

    fn open_with<'a>(
        header: &Header,
        bytes: &'a [u8],
    ) -> tamis::Result<Self::View<'a>>;
}

macro_rules! typed {
    ($($type:ident)*) => {$(
        impl Typed for $type {
            const KIND: Kind = Kind::$type;
            type View<'a> = $type<&'a [u8]>;

            #[inline(always)]
            fn open(bytes: &[u8]) -> tamis::Result<Self::View<'_>> {
                $type::from_bytes(bytes)
            }

            #[inline(always)]
            fn open_with<'a>(
                header: &Header,
                bytes: &'a [u8],
            ) -> tamis::Result<Self::View<'a>> {
                $type::from_bytes_with(header, bytes)
            }
        }
    )*};
}
typed! { Blocked TinySet }

/// Filters of tamis, opened once.
struct Open<'a, T: Typed>(Vec<T::View<'a>>);

impl<T: Typed> Engine for Open<'_, T> {
    fn candidates(&self, hashes: &[u64]) -> Result<u64> {
        count!(hashes, &self.0, hash, filter => filter.contains_hash(hash))
    }
}

/// Headers parsed once, filters opened at each lookup.
struct Parsed<'a, T>(&'a Buffer, Vec<Header>, PhantomData<T>);

impl<T: Typed> Engine for Parsed<'_, T> {
    fn candidates(&self, hashes: &[u64]) -> Result<u64> {
        let runs = || self.1.iter().zip(self.0.filters());
        count!(hashes, runs(), hash, run => {
            let (header, bytes) = black_box(run);
            // By reference: `?` would copy the view.
            match T::open_with(header, bytes) {
                Ok(ref filter) => filter.contains_hash(hash),
                Err(error) => return Err(error.into()),
            }
        })
    }
}

/// Headers parsed at each lookup.
struct Bytes<'a, T>(&'a Buffer, PhantomData<T>);

impl<T: Typed> Engine for Bytes<'_, T> {
    fn candidates(&self, hashes: &[u64]) -> Result<u64> {
        count!(hashes, self.0.filters(), hash, bytes => {
            match T::open(black_box(bytes)) {
                Ok(ref filter) => filter.contains_hash(hash),
                Err(error) => return Err(error.into()),
            }
        })
    }
}

/// `fastbloom`, opened once.
struct FastOpen(Vec<fastbloom::BloomFilter>);

impl Engine for FastOpen {
    fn candidates(&self, hashes: &[u64]) -> Result<u64> {
        count!(hashes, &self.0, hash, filter => filter.contains_hash(hash))
    }
}

/// `fastbloom`, opened at each lookup: it owns its words, so that they are
/// copied.
struct FastBytes<'a>(&'a Buffer);

impl Engine for FastBytes<'_> {
    fn candidates(&self, hashes: &[u64]) -> Result<u64> {
        count!(hashes, self.0.filters(), hash, bytes => {
            fast_from(black_box(bytes)).contains_hash(hash)
        })
    }
}

fn fast_from(bytes: &[u8]) -> fastbloom::BloomFilter {
    let words = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    fastbloom::BloomFilter::from_vec(words.collect()).hashes(PROBES)
}

/// A Bloom filter as in LevelDB: bits, and the number of probes in the last
/// byte; nothing to open.
struct Plain<'a>(&'a Buffer);

impl Engine for Plain<'_> {
    fn candidates(&self, hashes: &[u64]) -> Result<u64> {
        count!(hashes, self.0.filters(), hash, bytes => {
            plain_contains(black_box(bytes), hash)
        })
    }
}

/// The positions of a key, by double hashing with 32-bit halves.
fn plain_positions(bytes: &[u8], hash: u64) -> impl Iterator<Item = usize> {
    let (bits, probes) = match bytes {
        [bits @ .., probes] => (8 * bits.len() as u64, *probes),
        [] => (1, 0),
    };
    let (mut at, step) = (hash as u32, (hash >> 32) as u32 | 1);
    (0..probes).map(move |_| {
        let position = u64::from(at) * bits >> 32;
        at = at.wrapping_add(step);
        position as usize
    })
}

fn plain_contains(bytes: &[u8], hash: u64) -> bool {
    plain_positions(bytes, hash).all(|at| bytes[at / 8] >> (at % 8) & 1 != 0)
}

fn plain_filter(hashes: &[u64]) -> Vec<u8> {
    let bytes = (hashes.len() as f64 * 9.6 / 8.0).ceil() as usize;
    let mut filter = vec![0; bytes + 1];
    filter[bytes] = PROBES as u8;
    for &hash in hashes {
        let positions: Vec<usize> = plain_positions(&filter, hash).collect();
        for at in positions {
            filter[at / 8] |= 1 << (at % 8);
        }
    }
    filter
}

/// The hash of a key of a run; keys from `items` on are in no run.
fn hash(run: u64, number: u64) -> u64 {
    KeyHasher::default().hash(&(run << 32 | number))
}

struct Contender<'a> {
    name: &'static str,
    opened: &'static str,
    engine: Box<dyn Engine + 'a>,
    /// Nanoseconds per lookup in the best round, for hits and for misses.
    best: [f64; 2],
}

/// The three engines with filters of one type.
fn engines<'a, T: Typed + 'a>(
    buffer: &'a Buffer,
    add: &mut impl FnMut(&'static str, &'static str, Box<dyn Engine + 'a>),
) -> Result {
    let name = T::KIND.name();
    let open: std::result::Result<Vec<_>, _> =
        buffer.filters().map(T::open).collect();
    let headers: std::result::Result<Vec<_>, _> =
        buffer.filters().map(Header::parse).collect();
    let parsed = Parsed::<T>(buffer, headers?, PhantomData);
    add(name, "once", Box::new(Open::<T>(open?)));
    add(name, "with a header parsed once", Box::new(parsed));
    add(name, "from bytes", Box::new(Bytes::<T>(buffer, PhantomData)));
    Ok(())
}

fn measure(cli: &Cli) -> Result<String> {
    let Cli { runs, items, rounds, .. } = *cli;
    let keys: Vec<Vec<u64>> = (0..runs)
        .map(|run| (0..items).map(|number| hash(run, number)).collect())
        .collect();
    let mut buffers =
        [Kind::Blocked, Kind::TinySet].map(|kind| (kind, Buffer::default()));
    let (mut plain, mut fast) = (Buffer::default(), Buffer::default());
    for (kind, buffer) in &mut buffers {
        let builder = AnyFilter::builder(*kind).items(items).fpr(FPR);
        let builder = builder.resolve()?;
        for keys in &keys {
            let mut filter = builder.build()?;
            filter.insert_hash_batch(keys);
            buffer.push(&filter.to_bytes());
        }
    }
    for keys in &keys {
        plain.push(&plain_filter(keys));
        let words = vec![0; (items as f64 * 9.6 / 64.0).ceil() as usize];
        let mut filter =
            fastbloom::BloomFilter::from_vec(words).hashes(PROBES);
        for &hash in keys {
            filter.insert_hash(hash);
        }
        let words = filter.as_slice().iter();
        fast.push(
            &words.flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>(),
        );
    }
    let mut contenders = Vec::new();
    let mut add = |name, opened, engine| {
        let best = [f64::INFINITY; 2];
        contenders.push(Contender { name, opened, engine, best });
    };
    let [(_, blocked), (_, tinyset)] = &buffers;
    engines::<Blocked>(blocked, &mut add)?;
    engines::<TinySet>(tinyset, &mut add)?;
    let open = FastOpen(fast.filters().map(fast_from).collect());
    add("fastbloom", "once", Box::new(open));
    add("fastbloom", "by a copy", Box::new(FastBytes(&fast)));
    add("plain Bloom", "from bytes", Box::new(Plain(&plain)));

    // Every run has a part of the hits.
    let share = 2000 / runs.max(1) + 1;
    let part = |start: u64| -> Vec<u64> {
        let numbers = move |run| (start..start + share).map(move |n| (run, n));
        let keys = (0..runs).flat_map(numbers);
        keys.map(|(run, number)| hash(run, number)).collect()
    };
    let queries = [part(0), part(items)];
    for _ in 0..rounds {
        for contender in &mut contenders {
            let pairs = contender.best.iter_mut().zip(&queries);
            for (which, (best, hashes)) in pairs.enumerate() {
                let engine = &contender.engine;
                let (ns, found) = timed(|| engine.candidates(hashes));
                *best = best.min(ns / hashes.len() as f64);
                if which == 0 && found? < hashes.len() as u64 {
                    return Err(
                        format!("{}: a key is lost", contender.name).into()
                    );
                }
            }
        }
    }
    let mut table = String::from(
        "| filter | opened at a lookup | hit, ns | miss, ns |\n|---|---|---|---|\n",
    );
    for Contender { name, opened, best: [hit, miss], .. } in &contenders {
        let _ =
            writeln!(table, "| {name} | {opened} | {hit:.0} | {miss:.0} |");
    }
    Ok(table)
}

fn run(cli: &Cli) -> Result {
    let table = measure(cli)?;
    let Cli { runs, items, rounds, write_docs } = cli;
    let machine = Machine::this();
    if *write_docs {
        let version = version_of("fastbloom").unwrap_or_default();
        let text = format!(
            "## Filters in a storage engine\n\n\
             ```console\n$ cargo xtask bench adapter --runs {runs} --items \
             {items} --rounds {rounds} --write-docs\n```\n\n\
             {runs} runs of {items} keys, each with a filter of 1 % at an odd \
             offset of one buffer. A\nlookup hashes its key once and probes \
             every run. Engines that keep filters as\nbytes open them at each \
             lookup. The plain Bloom filter is LevelDB's: bits, with\nthe \
             number of probes in the last byte. Nanoseconds of processor time \
             per lookup.\n\n* Machine: {machine}.\n* {RUSTC}; fastbloom \
             {version}.\n\n{table}"
        );
        section::replace("adapter", &text)?;
    }
    Ok(output::print(&format!("{table}\n{machine}\n{RUSTC}\n"))?)
}

fn main() -> ExitCode {
    output::exit_code("adapter", run(&Cli::parse()))
}
