//! Filters in a log-structured merge tree: one filter per sorted run, all
//! filters in one file, one hash per lookup for all runs.
//!
//! ```text
//! cargo run -p tamis --example lsm_adapter
//! ```

use std::error::Error;
use std::fs::File;
use std::io::Write as _;

use tamis::{AnyFilter, Builder, Header, KeyHasher, Kind, Mapped};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

const RUNS: u64 = 20;
const KEYS_PER_RUN: u64 = 5_000;
const FPR: f64 = 0.01;

/// A key of a run, and one that no run has.
fn key(run: u64, number: u64) -> String {
    format!("run {run:02} key {number:08}")
}

/// Writes runs: each gets a filter at the position where its data ends.
struct TableWriter {
    /// Resolved once: a filter then costs its memory and its insertions.
    filters: Builder<AnyFilter>,
    file: File,
    position: u64,
    /// Offsets of the filters.
    index: Vec<u64>,
}

impl TableWriter {
    fn new(file: File, kind: Kind) -> Result<Self> {
        let filters = AnyFilter::builder(kind).fpr(FPR).resolve()?;
        Ok(Self { filters, file, position: 0, index: Vec::new() })
    }

    fn write_run(&mut self, run: u64) -> Result {
        // Stands for the blocks of the run; odd lengths, as after
        // compression.
        let data = vec![0xd0; 1001 + run as usize * 13];
        self.file.write_all(&data)?;
        self.position += data.len() as u64;
        self.index.push(self.position);
        let keys = (0..KEYS_PER_RUN).map(|number| key(run, number));
        let filter = self.filters.build_from(keys)?;
        filter.write_to(&mut self.file)?;
        self.position += filter.bytes();
        Ok(())
    }
}

/// A filter that stays open: the map is shared, lookups read the page cache.
struct Run {
    filter: AnyFilter<Mapped>,
}

/// Lookups that probe all runs with one hash.
struct Table {
    runs: Vec<Run>,
    hasher: KeyHasher,
}

impl Table {
    fn open(file: &File, index: &[u64]) -> Result<Self> {
        let whole = Mapped::from_file(file)?;
        let mut runs = Vec::new();
        for &offset in index {
            // The length is in the header: no need to store it.
            let bytes = &whole.as_ref()[offset as usize..];
            let len = Header::image_len(bytes)? as usize;
            let region = Mapped::region(file, offset, len)?;
            let filter = AnyFilter::from_bytes(region)?;
            filter.verify()?;
            runs.push(Run { filter });
        }
        let hasher = runs
            .first()
            .map_or_else(KeyHasher::default, |run| *run.filter.hasher());
        Ok(Self { runs, hasher })
    }

    /// Numbers of the runs that may have the key: the others are not read.
    fn candidates(&self, key: &str) -> impl Iterator<Item = usize> + '_ {
        let hash = self.hasher.hash(key);
        for run in &self.runs {
            run.filter.prefetch(hash);
        }
        let runs = self.runs.iter().enumerate();
        runs.filter(move |(_, run)| run.filter.contains_hash(hash))
            .map(|(number, _)| number)
    }
}

/// The same lookup by an engine that keeps bytes and headers, and no filter
/// objects: a filter is a view that is made for one lookup. `cargo xtask bench
/// adapter` measures it.
fn candidates_opened_per_lookup(
    whole: &[u8],
    index: &[(u64, Header)],
    key: &str,
) -> Result<Vec<usize>> {
    let mut candidates = Vec::new();
    for (number, (offset, header)) in index.iter().enumerate() {
        let bytes = &whole[*offset as usize..][..header.bytes() as usize];
        let filter = AnyFilter::from_bytes_with(header, bytes)?;
        if filter.contains(key) {
            candidates.push(number);
        }
    }
    Ok(candidates)
}

/// Parses the header of every filter once, and verifies the filter.
fn headers(whole: &[u8], index: &[u64]) -> Result<Vec<(u64, Header)>> {
    let parse = |&offset: &u64| {
        let bytes = &whole[offset as usize..];
        let bytes = &bytes[..Header::image_len(bytes)? as usize];
        AnyFilter::from_bytes(bytes)?.verify()?;
        Ok((offset, Header::parse(bytes)?))
    };
    index.iter().map(parse).collect()
}

fn run(kind: Kind) -> Result {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("table.data");
    let mut writer = TableWriter::new(File::create(&path)?, kind)?;
    for run in 0..RUNS {
        writer.write_run(run)?;
    }
    let index = writer.index;
    let odd = index.iter().filter(|&&offset| offset % 64 != 0).count();

    let file = File::open(&path)?;
    let table = Table::open(&file, &index)?;
    let whole = Mapped::from_file(&file)?;
    let headers = headers(whole.as_ref(), &index)?;
    let (mut wasted, mut lookups) = (0, 0);
    for run in 0..RUNS {
        for number in (0..KEYS_PER_RUN).step_by(97) {
            let present = key(run, number);
            let found: Vec<usize> = table.candidates(&present).collect();
            if !found.contains(&(run as usize)) {
                return Err(format!("{kind}: lost {present}").into());
            }
            wasted += found.len() - 1;
            let again = candidates_opened_per_lookup(
                whole.as_ref(),
                &headers,
                &present,
            )?;
            if again != found {
                return Err(format!("{kind}: unequal answers").into());
            }
            let absent = key(run, number + KEYS_PER_RUN);
            wasted += table.candidates(&absent).count();
            lookups += 2;
        }
    }
    // 19 or 20 filters can be wrong per lookup.
    let rate = wasted as f64 / (lookups as f64 * (RUNS as f64 - 0.5));
    if !(0.5 * FPR..1.2 * FPR).contains(&rate) {
        return Err(format!("{kind}: {rate} false positives").into());
    }
    println!(
        "{kind}: {RUNS} runs, {odd} filters at odd offsets, {lookups} \
         lookups, {:.2} % of probes wasted, no key lost",
        100.0 * rate
    );
    Ok(())
}

fn main() -> Result {
    [Kind::Blocked, Kind::TinySet].into_iter().try_for_each(run)
}
