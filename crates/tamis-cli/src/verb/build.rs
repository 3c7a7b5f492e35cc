//! `tamis build`.

use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::str::FromStr;

use tamis::{
    AnyFilter, Balanced, Builder, HashId, KeyHasher, Kind, Overflow, Scheme,
    TinySet,
};

use super::default_kind::{Prefer, default_kind};
use super::{BlockArgs, OutputArgs, SizeArgs, ThreadArgs, parse_items};
use crate::failure::{Exit, Failure, Result};
use crate::fullness::{StrictArgs, hint_repeats};
use crate::keys::{KeyArgs, KeyInput, parse_bytes};
use crate::progress::{Extent, Progress, Work};
use crate::report::{FilterReport, ReportArgs, ReportForm, count, size};

/// Build a filter from a list of keys
///
/// Needs --fpr or --bits-per-key. Without --items the keys are counted first:
/// plain files are read twice; for pipes and compressed files, 8 bytes per
/// key go to a temporary file. A repeated key counts again for the size of
/// the filter; it is stored again only with --repeats or --removable.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    keys: KeyArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    size: SizeArgs,

    /// Kind of filter: bloom, blocked, split, balanced or tinyset; `tamis
    /// plan` compares them [default: tinyset at rates from 0.01% to 3% if it
    /// is smaller than blocked, otherwise blocked]
    #[arg(long, value_parser = parse_kind)]
    kind: Option<Kind>,

    /// Objective if --kind is absent: space, or speed, which selects blocked
    /// [default: space]
    #[arg(
        long,
        value_name = "OBJECTIVE",
        conflicts_with = "kind",
        hide_possible_values = true
    )]
    prefer: Option<Prefer>,

    /// Number of keys to size the filter for, such as 1000000 or 1e6
    /// [default: the keys of the input, repeats included]
    #[arg(long, value_name = "N", value_parser = parse_items)]
    items: Option<u64>,

    /// Largest temporary file of hashes, 8 bytes per key, for inputs that
    /// cannot be read twice
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = parse_bytes,
        default_value = "8GiB"
    )]
    max_spool: u64,

    #[command(flatten)]
    block: BlockArgs,

    /// Hash function: xxh3, or siphash if an attacker can choose keys
    #[arg(long, value_parser = parse::<HashId>, default_value = "xxh3")]
    hash: HashId,

    /// Seed of the hash, decimal or 0x hexadecimal; filters with different
    /// seeds cannot be merged [default: 0 for xxh3, a random 128-bit key for
    /// siphash]
    #[arg(long, value_name = "N", value_parser = parse_seed)]
    seed: Option<u128>,

    #[command(flatten)]
    metadata: MetadataArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    strict: StrictArgs,

    #[command(flatten)]
    report: ReportArgs,

    // Last: a help heading applies to all arguments after it.
    #[command(flatten)]
    tinyset: TinySetArgs,

    #[command(flatten)]
    balanced: BalancedArgs,
}

/// Texts that are stored in the filter beside its keys.
#[derive(clap::Args)]
struct MetadataArgs {
    /// Store a text in the filter, which `tamis info` shows
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Store the names of the files of keys and the time of the build, by
    /// SOURCE_DATE_EPOCH if it is set. Without it equal keys give equal files
    #[arg(long)]
    provenance: bool,
}

impl MetadataArgs {
    /// Names and values.
    fn entries(&self, input: &KeyInput) -> Result<Vec<(&str, String)>> {
        let mut entries = Vec::new();
        if let Some(note) = &self.note {
            entries.push(("note", note.clone()));
        }
        if self.provenance {
            let names: Vec<_> = input.source_names().collect();
            entries.push(("source", names.join(", ")));
            entries.push(("created", iso_8601(build_time()?)));
        }
        Ok(entries)
    }
}

/// Stores the key format and `entries` in the metadata of `filter`.
fn store(
    filter: &mut AnyFilter,
    input: &KeyInput,
    entries: &[(&str, String)],
) -> Result<()> {
    input.format().store(filter)?;
    for (name, value) in entries {
        filter.set_metadata(name, value)?;
    }
    Ok(())
}

/// Seconds since 1970, from SOURCE_DATE_EPOCH if it is set.
fn build_time() -> Result<u64> {
    match std::env::var_os("SOURCE_DATE_EPOCH") {
        Some(time) => time
            .to_str()
            .and_then(|time| time.parse().ok())
            // The last second of the year 9999.
            .filter(|&time| time <= 253_402_300_799)
            .ok_or_else(|| {
                Failure::new(
                    "SOURCE_DATE_EPOCH: expected a number of seconds since \
                     1970",
                )
            }),
        None => std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map(|since| since.as_secs())
            .map_err(|_| Failure::new("the clock is before 1970")),
    }
}

/// Formats a time in seconds since 1970, in UTC.
fn iso_8601(time: u64) -> String {
    let (days, seconds) = (time / 86_400, time % 86_400);
    // Years begin in March, so that the leap day is the last day. A cycle of
    // 400 years has 146,097 days.
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = 400 * cycle + year + u64::from(month <= 2);
    let (hour, minute) = (seconds / 3600, seconds / 60 % 60);
    let second = seconds % 60;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Design of a tinyset filter.
#[derive(clap::Args)]
#[command(next_help_heading = "Tinyset filters (--kind tinyset)")]
struct TinySetArgs {
    /// Allow `tamis remove`, for slightly more memory. Every repeat of a key
    /// is stored, so that each can be removed
    #[arg(long)]
    removable: bool,

    /// Levels of blocks: 1, or 2 for less memory at rates below 0.02%.
    /// Filters of two levels support `add`, but not `remove`, `merge`, `fold`
    /// or `grow` [default: 1]
    #[arg(long, value_name = "N")]
    levels: Option<u32>,

    /// Store every repeat of a key
    #[arg(long)]
    repeats: bool,
}

impl TinySetArgs {
    /// True if an option is given, which selects the kind.
    fn is_given(&self) -> bool {
        let Self { removable, levels, repeats } = *self;
        removable || levels.is_some() || repeats
    }

    /// Refuses options that have no effect on `kind`.
    fn check(&self, kind: Option<Kind>) -> Result<()> {
        let refuse = |why: &str| Err(Failure::new(why));
        let Self { removable, levels, .. } = *self;
        if self.is_given() && kind.is_some_and(|kind| kind != Kind::TinySet) {
            return refuse(
                "--removable, --levels and --repeats need --kind tinyset",
            );
        }
        match levels {
            None | Some(1) => Ok(()),
            Some(2) if removable => refuse(
                "--removable needs one level (omit --levels 2): entries \
                 moved to a second level cannot be removed",
            ),
            Some(2) => Ok(()),
            Some(_) => refuse("--levels: expected 1 or 2"),
        }
    }

    fn apply(&self, mut builder: Builder<TinySet>) -> Builder<TinySet> {
        if self.removable {
            builder = builder.removable();
        }
        if self.levels == Some(2) {
            builder = builder.two_level();
        }
        if self.repeats {
            builder = builder.repeats();
        }
        builder
    }
}

/// Design of a balanced filter. Without any of these options the best design
/// for the memory is searched. With any of them except `max_reads_miss` the
/// others default to the paper's: multilevel, a = 1.2, d = 3, list, counter.
#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Balanced filters (--kind balanced)")]
struct BalancedArgs {
    /// Scheme that proposes blocks: single, sequential or multilevel. Without
    /// the options of this group, the best design for the memory is searched;
    /// with one of them, the others take their defaults [default: multilevel]
    #[arg(long, value_parser = parse::<Scheme>)]
    scheme: Option<Scheme>,

    /// Average blocks read per insertion (a) [default: 1.2]
    #[arg(long, value_name = "A")]
    access_budget: Option<f64>,

    /// Blocks proposed per key (d) [default: 3]
    #[arg(long, value_name = "D")]
    choices: Option<u32>,

    /// Place of a key that every block refused: list, first, random or
    /// absorb [default: list]
    #[arg(long, value_parser = parse::<Overflow>)]
    overflow: Option<Overflow>,

    /// Share of keys that every block may refuse (gamma), 0 to 1. Above the
    /// least of the sequential and multilevel schemes, insertions read more
    /// blocks than the budget instead of listing keys unread [default: 0.005
    /// with --scheme single, otherwise the least]
    #[arg(long, value_name = "G")]
    overflow_fraction: Option<f64>,

    /// Most keys of the overflow list, as a share of the items. Once it is
    /// full, a refused key goes to its first block [default: no limit]
    #[arg(long, value_name = "G")]
    list_share: Option<f64>,

    /// Load below which a block takes every key (h), or its set bits with
    /// --threshold-by popcount [default: the best for the access budget]
    #[arg(long, value_name = "H")]
    threshold: Option<u32>,

    /// Probability that a block at the threshold takes one more key (p)
    /// [default: 0 with --threshold, otherwise the best]
    #[arg(long, value_name = "P")]
    admission: Option<f64>,

    /// Relative sizes of the levels, such as 4,2,1; their number replaces
    /// --choices [default: the best for the access budget]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    level_shares: Option<Vec<f64>>,

    /// Bits set per key (k), 1 to 32 [default: the best]
    #[arg(long, value_name = "K")]
    probes: Option<u32>,

    /// Bits per block that record which keys it refused (t), 0 to 32
    /// [default: 0]
    #[arg(long, value_name = "T")]
    tracking_bits: Option<u32>,

    /// Measure by which a block is full: count (keys) or popcount (set bits)
    /// [default: count]
    #[arg(long, value_name = "MEASURE")]
    threshold_by: Option<ThresholdBy>,

    /// Limit on the average blocks read by a lookup of a non-member, for the
    /// search of the best design [default: 1.25]
    #[arg(long, value_name = "X")]
    max_reads_miss: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ThresholdBy {
    Count,
    Popcount,
}

impl BalancedArgs {
    fn is_empty(&self) -> bool {
        let Self {
            scheme,
            access_budget,
            choices,
            overflow,
            overflow_fraction,
            list_share,
            threshold,
            admission,
            level_shares,
            probes,
            tracking_bits,
            threshold_by,
            max_reads_miss,
        } = self;
        scheme.is_none()
            && access_budget.is_none()
            && choices.is_none()
            && overflow.is_none()
            && overflow_fraction.is_none()
            && list_share.is_none()
            && threshold.is_none()
            && admission.is_none()
            && level_shares.is_none()
            && probes.is_none()
            && tracking_bits.is_none()
            && threshold_by.is_none()
            && max_reads_miss.is_none()
    }

    /// Refuses options that have no effect on `kind` or on each other.
    fn check(&self, kind: Option<Kind>) -> Result<()> {
        let refuse = |why: &str| Err(Failure::new(why));
        if kind != Some(Kind::Balanced) && !self.is_empty() {
            return refuse(
                "options of balanced filters, such as --scheme, need --kind \
                 balanced",
            );
        }
        let single = self.scheme == Some(Scheme::Single);
        if single && (self.access_budget.is_some() || self.choices.is_some()) {
            return refuse(
                "--scheme single reads one block per key: omit \
                 --access-budget and --choices",
            );
        }
        if self.level_shares.is_some() && self.choices.is_some() {
            return refuse(
                "--level-shares has one number per choice: omit --choices",
            );
        }
        let particular = Self { max_reads_miss: None, ..self.clone() };
        if self.max_reads_miss.is_some() && !particular.is_empty() {
            return refuse(
                "--max-reads-miss searches the best design: omit it or the \
                 options that fix the design",
            );
        }
        Ok(())
    }

    fn apply(&self, mut builder: Builder<Balanced>) -> Builder<Balanced> {
        if let Some(scheme) = self.scheme {
            builder = builder.scheme(scheme);
        }
        if let Some(access_budget) = self.access_budget {
            builder = builder.access_budget(access_budget);
        }
        if let Some(choices) = self.choices {
            builder = builder.choices(choices);
        }
        if let Some(overflow) = self.overflow {
            builder = builder.overflow(overflow);
        }
        if let Some(overflow_fraction) = self.overflow_fraction {
            builder = builder.overflow_fraction(overflow_fraction);
        }
        if let Some(share) = self.list_share {
            builder = builder.list_share(share);
        }
        if let Some(threshold) = self.threshold {
            builder = builder.threshold(threshold);
        }
        if let Some(admission) = self.admission {
            builder = builder.admission(admission);
        }
        if let Some(shares) = &self.level_shares {
            builder = builder.level_shares(shares);
        }
        if let Some(tracking_bits) = self.tracking_bits {
            builder = builder.tracking_bits(tracking_bits);
        }
        builder = match self.threshold_by {
            Some(ThresholdBy::Popcount) => builder.refuse_by_set_bits(),
            Some(ThresholdBy::Count) => builder.refuse_by_keys(),
            None => builder,
        };
        if let Some(probes) = self.probes {
            // Given probes need a particular design.
            let scheme = self.scheme.unwrap_or(Scheme::Multilevel);
            builder = builder.scheme(scheme).probes(probes);
        }
        if let Some(max_reads_miss) = self.max_reads_miss {
            builder = builder.max_reads_miss(max_reads_miss);
        }
        builder
    }
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        self.output.check(&[])?;
        let form = self.output.form(&self.report)?;
        if self.keys.contain(&self.output.output) {
            return Err(self.output.is_input());
        }
        self.balanced.check(self.kind)?;
        self.tinyset.check(self.kind)?;
        if self.tinyset.is_given() && self.prefer == Some(Prefer::Speed) {
            return Err(Failure::new(
                "--prefer speed selects blocked, which has no --removable, \
                 --levels or --repeats (omit one of them)",
            ));
        }
        let hasher = self.hasher()?;
        let empty = self.empty_filters(hasher)?;
        // Invalid settings fail here, before the keys are read.
        let mut smallest = empty(0)?;
        let input = self.keys.open_new()?;
        let metadata = self.metadata.entries(&input)?;
        store(&mut smallest, &input, &metadata)?;
        let mut filter = match self.items {
            Some(items) => self.build(empty(items)?, &input)?,
            None if input.is_rereadable() => {
                let items = count_keys(&input)?;
                self.build(empty(items)?, &input)?
            }
            None => self.build_from_spool(&hasher, empty, &input)?,
        };
        store(&mut filter, &input, &metadata)?;
        let report = FilterReport::new(&filter);
        self.strict.check(self.output.path(), &report, || {
            format!(
                "build it again with --items {}",
                report.sufficient_items()
            )
        })?;
        self.output.write(&filter)?;
        report.print(form)?;
        if self.items.is_none() && form != ReportForm::Silent {
            hint_repeats(&filter, &report);
        }
        Ok(Exit::Success)
    }

    fn hasher(&self) -> Result<KeyHasher> {
        let seed = match (self.seed, self.hash) {
            (Some(seed), _) => seed,
            (None, HashId::SipHash13) => {
                let mut key = [0; 16];
                getrandom::fill(&mut key).map_err(|error| {
                    Failure::new(format_args!(
                        "cannot draw a random key: {error} (give --seed)"
                    ))
                })?;
                u128::from_le_bytes(key)
            }
            (None, _) => 0,
        };
        Ok(KeyHasher::new(self.hash, seed)?)
    }

    fn kind(&self, block_bits: u32) -> Result<Kind> {
        if let Some(kind) = self.kind {
            return Ok(kind);
        }
        if self.tinyset.is_given() {
            return Ok(Kind::TinySet);
        }
        let prefer = self.prefer.unwrap_or(Prefer::Space);
        Ok(default_kind(&self.size, block_bits, prefer)?)
    }

    /// Constructor of empty filters for a number of items. The design is
    /// searched once, here.
    fn empty_filters(&self, hasher: KeyHasher) -> Result<Box<EmptyFilters>> {
        let block_bits = self.block.bits()?;
        let builder = match self.kind(block_bits)? {
            Kind::Balanced => self.balanced.apply(Balanced::builder()).into(),
            Kind::TinySet => self.tinyset.apply(TinySet::builder()).into(),
            kind => AnyFilter::builder(kind),
        };
        let builder = builder
            .block_bits(block_bits)
            .hasher(hasher)
            .size(self.size.value())
            .resolve()?;
        Ok(Box::new(move |items| builder.items(items).build()))
    }

    fn build(
        &self,
        mut filter: AnyFilter,
        input: &KeyInput,
    ) -> Result<AnyFilter> {
        let feed = input.feed("building");
        super::insert_all(&mut filter, feed, &self.threads)?;
        Ok(filter)
    }

    /// Builds in one pass over the keys: the hashes are written to a
    /// temporary file, then inserted into a filter of the right size.
    fn build_from_spool(
        &self,
        hasher: &KeyHasher,
        empty: impl Fn(u64) -> tamis::Result<AnyFilter>,
        input: &KeyInput,
    ) -> Result<AnyFilter> {
        let mut spool =
            BufWriter::new(tempfile::SpooledTempFile::new(SPOOL_MEMORY));
        let mut items = 0;
        let mut hashes = Vec::new();
        let mut feed = input.feed("hashing");
        while let Some(chunk) = feed.next() {
            hashes.clear();
            if let Err(failure) = chunk.hash(hasher, &mut hashes) {
                feed.fail(failure);
            }
            items += hashes.len() as u64;
            if items > self.max_spool / 8 {
                feed.fail(Failure::new(format_args!(
                    "{}: more than {} keys need a temporary file of more than \
                     {} (give --items, or a larger --max-spool)",
                    chunk.source().name(),
                    count(self.max_spool / 8),
                    size(self.max_spool)
                )));
                break;
            }
            for hash in &hashes {
                spool
                    .write_all(&hash.to_le_bytes())
                    .map_err(|error| spool_error(&error))?;
            }
        }
        feed.finish()?;
        let mut filter = empty(items)?;
        let mut spool =
            spool.into_inner().map_err(|error| spool_error(error.error()))?;
        spool.rewind().map_err(|error| spool_error(&error))?;
        let mut fault = None;
        let progress = Progress::new(Work {
            verb: "inserting",
            extent: Extent::Bytes(8 * items),
            ..Work::default()
        });
        let mut spool = BufReader::new(progress.wrap(spool));
        let chunks = std::iter::from_fn(|| {
            let mut bytes = Vec::new();
            match (&mut spool).take(SPOOL_CHUNK).read_to_end(&mut bytes) {
                Ok(0) => None,
                Ok(_) => Some(bytes),
                Err(error) => {
                    fault = Some(spool_error(&error));
                    None
                }
            }
        });
        filter.insert_parallel_with(
            chunks,
            self.threads.count(),
            |bytes, hashes| {
                hashes.extend(bytes.chunks_exact(8).map(|hash| {
                    let mut word = [0; 8];
                    word.copy_from_slice(hash);
                    u64::from_le_bytes(word)
                }));
            },
        );
        fault.map_or(Ok(filter), Err)
    }
}

/// Number of keys of a rereadable input.
fn count_keys(input: &KeyInput) -> Result<u64> {
    let mut feed = input.feed("counting");
    let items = feed.by_ref().map(|chunk| chunk.count()).sum();
    feed.finish()?;
    Ok(items)
}

/// Constructor of an empty filter for a number of items.
type EmptyFilters = dyn Fn(u64) -> tamis::Result<AnyFilter>;

/// Bytes of hashes kept in memory before the temporary file is created.
const SPOOL_MEMORY: usize = 32 << 20;
/// Bytes of hashes per chunk; a multiple of 8.
const SPOOL_CHUNK: u64 = 1 << 17;

fn spool_error(error: &io::Error) -> Failure {
    Failure::new(format_args!(
        "cannot write the hashes of the input to {}: {error} (give --items, \
         or set TMPDIR to a directory with more space)",
        std::env::temp_dir().display()
    ))
}

fn parse_kind(name: &str) -> std::result::Result<Kind, String> {
    name.parse().map_err(|_| {
        let names: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// Parses a name with the library's own parser.
fn parse<T: FromStr<Err = tamis::Error>>(
    name: &str,
) -> std::result::Result<T, String> {
    name.parse().map_err(|error: tamis::Error| error.to_string())
}

fn parse_seed(text: &str) -> std::result::Result<u128, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| {
        "expected a number below 2^128, decimal or 0x hexadecimal".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are those of `date -u -d @TIME +%FT%TZ`.
    #[test]
    fn times_are_formatted() {
        for (time, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(iso_8601(time), text);
        }
    }
}
