//! `tamis build`: a filter from a list of keys.

use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::str::FromStr;

use tamis::{
    AnyFilter, Balanced, BalancedBuilder, Blocked, Bloom, HashId, KeyHasher,
    Kind, Overflow, Scheme, Split, TinySet, TinySetBuilder,
};

use super::choice::{self, Prefer};
use super::{BlockSize, Output, Size, Threads, parse_items};
use crate::failure::{Failure, Outcome, Result};
use crate::keys::{Feed, KeyArgs, Source};
use crate::report::Report;

/// Build a filter from a list of keys
///
/// Give the false-positive rate or the bits per key. Files are counted
/// first; from a pipe or a compressed file without --items, the 8-byte
/// hashes are kept in a temporary file until their number is known. Repeated
/// keys do no harm, but take room in a filter that stores repeats.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    keys: KeyArgs,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    size: Size,

    /// The kind of filter: bloom, blocked, split, balanced or tinyset;
    /// `tamis plan` compares them [default: tinyset if that is the smaller
    /// one and the rate is 0.01% to 3%, otherwise blocked]
    #[arg(long, value_parser = parse_kind)]
    kind: Option<Kind>,

    /// What the kind is chosen for if none is named; `speed` takes blocked
    /// [default: space]
    #[arg(
        long,
        value_name = "WHAT",
        conflicts_with = "kind",
        hide_possible_values = true
    )]
    prefer: Option<Prefer>,

    /// Number of keys to size for, instead of counting them
    #[arg(long, value_name = "N", value_parser = parse_items)]
    items: Option<u64>,

    #[command(flatten)]
    block: BlockSize,

    /// The hash function: xxh3, or siphash for keys from strangers
    #[arg(long, value_parser = parse::<HashId>, default_value = "xxh3")]
    hash: HashId,

    /// Seed of the hash, decimal or 0x hexadecimal [default: 0 for xxh3, a
    /// random 128-bit key for siphash]. Filters merge only if seeds agree
    #[arg(long, value_name = "N", value_parser = parse_seed)]
    seed: Option<u128>,

    #[command(flatten)]
    threads: Threads,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    // Last: their headings in the help would cover what follows.
    #[command(flatten)]
    tinyset: TinySetArgs,

    #[command(flatten)]
    balanced: BalancedArgs,
}

/// The design of a tinyset filter.
#[derive(clap::Args)]
#[command(next_help_heading = "Tinyset filters (--kind tinyset)")]
struct TinySetArgs {
    /// Let keys be removed with `tamis remove`, for a little more memory.
    /// Every repeat of a key is stored, so that each can be taken back
    #[arg(long)]
    removable: bool,

    /// Levels of blocks: 1, or 2 for the least memory at rates below 0.02%.
    /// Filters of two levels can be added to, but not removed from, merged,
    /// folded or grown [default: 1]
    #[arg(long, value_name = "N")]
    levels: Option<u32>,

    /// Store a key again when it is added again
    #[arg(long)]
    repeats: bool,
}

impl TinySetArgs {
    /// Refuses what would be ignored.
    fn check(&self, kind: Option<Kind>) -> Result<()> {
        let refuse = |why: &str| Err(Failure::new(why));
        let Self { removable, levels, repeats } = *self;
        let some = removable || levels.is_some() || repeats;
        if some && kind != Some(Kind::TinySet) {
            return refuse("options of tinyset filters need --kind tinyset");
        }
        match levels {
            None | Some(1) => Ok(()),
            Some(2) if removable => refuse(
                "--removable needs one level: what has moved to a second \
                 cannot be found again",
            ),
            Some(2) => Ok(()),
            Some(_) => refuse("--levels: expected 1 or 2"),
        }
    }

    fn apply(&self, mut builder: TinySetBuilder) -> TinySetBuilder {
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

/// The design of a balanced filter. Any of these asks for a particular one,
/// completed by the paper's (multilevel, a = 1.2, d = 3, list, counter); none
/// of them takes the best design known for the memory.
#[derive(clap::Args)]
#[command(next_help_heading = "Balanced filters (--kind balanced)")]
struct BalancedArgs {
    /// How blocks are proposed: single, sequential or multilevel
    #[arg(long, value_parser = parse::<Scheme>)]
    scheme: Option<Scheme>,

    /// Average blocks read per insertion (a)
    #[arg(long, value_name = "A")]
    access_budget: Option<f64>,

    /// Blocks proposed per key (d)
    #[arg(long, value_name = "D")]
    choices: Option<u32>,

    /// Where a key goes that every block refused: list, first, random or
    /// absorb
    #[arg(long, value_parser = parse::<Overflow>)]
    overflow: Option<Overflow>,

    /// The share of keys that the single scheme may refuse (gamma)
    #[arg(long, value_name = "G")]
    overflow_fraction: Option<f64>,

    /// Bits in each block that remember which keys it refused (t)
    #[arg(long, value_name = "T")]
    tracking_bits: Option<u32>,

    /// What tells a block that it is full: count (its keys) or popcount (its
    /// set bits)
    #[arg(long, value_name = "WHAT")]
    threshold_by: Option<ThresholdBy>,

    /// The most blocks a non-member may read, if the design is left open
    /// [default: 1.25]
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
            tracking_bits,
            threshold_by,
            max_reads_miss,
        } = self;
        scheme.is_none()
            && access_budget.is_none()
            && choices.is_none()
            && overflow.is_none()
            && overflow_fraction.is_none()
            && tracking_bits.is_none()
            && threshold_by.is_none()
            && max_reads_miss.is_none()
    }

    /// Refuses what would be ignored.
    fn check(&self, kind: Option<Kind>) -> Result<()> {
        let refuse = |why: &str| Err(Failure::new(why));
        if kind != Some(Kind::Balanced) && !self.is_empty() {
            return refuse("options of balanced filters need --kind balanced");
        }
        let single = self.scheme == Some(Scheme::Single);
        if self.overflow_fraction.is_some() && !single {
            return refuse("--overflow-fraction needs --scheme single");
        }
        if single && (self.access_budget.is_some() || self.choices.is_some()) {
            return refuse(
                "--scheme single has one choice and one access per key",
            );
        }
        let particular = Self { max_reads_miss: None, ..*self };
        if self.max_reads_miss.is_some() && !particular.is_empty() {
            return refuse(
                "--max-reads-miss leaves the design open: give either it or \
                 a particular design",
            );
        }
        Ok(())
    }

    fn apply(&self, mut builder: BalancedBuilder) -> BalancedBuilder {
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
        if let Some(tracking_bits) = self.tracking_bits {
            builder = builder.tracking_bits(tracking_bits);
        }
        if let Some(by) = self.threshold_by {
            builder =
                builder.threshold_by_popcount(by == ThresholdBy::Popcount);
        }
        if let Some(max_reads_miss) = self.max_reads_miss {
            builder = builder.max_reads_miss(max_reads_miss);
        }
        builder
    }
}

impl Args {
    pub(crate) fn run(&self) -> Result<Outcome> {
        self.output.check()?;
        self.balanced.check(self.kind)?;
        self.tinyset.check(self.kind)?;
        let hasher = self.hasher()?;
        let empty = self.empty(hasher)?;
        // Before the keys are read: a wrong setting should not take hours.
        empty(0)?;
        let sources = self.keys.sources()?;
        let filter = match self.items {
            Some(items) => self.build(empty(items)?, &sources)?,
            None if sources.iter().all(Source::is_rereadable) => {
                let items = self.count(&sources)?;
                self.build(empty(items)?, &sources)?
            }
            None => self.build_from_spool(&hasher, empty, &sources)?,
        };
        self.output.write(&filter)?;
        Report::new(&filter).print(self.json)?;
        Ok(Outcome::Yes)
    }

    fn hasher(&self) -> Result<KeyHasher> {
        let seed = match (self.seed, self.hash) {
            (Some(seed), _) => seed,
            (None, HashId::SipHash13) => {
                let mut key = [0; 16];
                getrandom::fill(&mut key).map_err(|error| {
                    Failure::new(format_args!("no random key: {error}"))
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
        let prefer = self.prefer.unwrap_or(Prefer::Space);
        Ok(choice::one_line(&self.size, block_bits, prefer)?)
    }

    /// What makes empty filters for a number of items: the design is found
    /// once.
    fn empty(&self, hasher: KeyHasher) -> Result<Box<Empty>> {
        let block_bits = self.block.bits()?;
        macro_rules! build {
            ($kind:ident) => {
                build!($kind, $kind::builder())
            };
            ($kind:ident, $builder:expr) => {{
                let mut builder =
                    $builder.block_bits(block_bits).hasher(hasher);
                if let Some(fpr) = self.size.fpr {
                    builder = builder.fpr(fpr);
                }
                if let Some(bits) = self.size.bits_per_key {
                    builder = builder.bits_per_key(bits);
                }
                let builder = builder.resolve()?;
                Box::new(move |items| {
                    let builder = Clone::clone(&builder).items(items);
                    builder.build().map(AnyFilter::$kind)
                })
            }};
        }
        Ok(match self.kind(block_bits)? {
            Kind::Bloom => build!(Bloom),
            Kind::Blocked => build!(Blocked),
            Kind::Split => build!(Split),
            Kind::Balanced => {
                let builder = self.balanced.apply(Balanced::builder());
                build!(Balanced, builder)
            }
            Kind::TinySet => {
                let builder = self.tinyset.apply(TinySet::builder());
                build!(TinySet, builder)
            }
            other => {
                return Err(Failure::new(format_args!(
                    "cannot build a {other} filter"
                )));
            }
        })
    }

    fn count(&self, sources: &[Source]) -> Result<u64> {
        let mut feed = Feed::new("counting", sources, self.keys.format());
        let items = feed.by_ref().map(|chunk| chunk.count()).sum();
        feed.finish()?;
        Ok(items)
    }

    fn build(
        &self,
        mut filter: AnyFilter,
        sources: &[Source],
    ) -> Result<AnyFilter> {
        let feed = Feed::new("building", sources, self.keys.format());
        super::insert_all(&mut filter, feed, &self.threads)?;
        Ok(filter)
    }

    /// One pass over the keys, with their hashes set aside until there is a
    /// filter to put them in.
    fn build_from_spool(
        &self,
        hasher: &KeyHasher,
        empty: impl Fn(u64) -> tamis::Result<AnyFilter>,
        sources: &[Source],
    ) -> Result<AnyFilter> {
        let mut spool =
            BufWriter::new(tempfile::SpooledTempFile::new(SPOOL_MEMORY));
        let mut items = 0;
        let mut hashes = Vec::new();
        let mut feed = Feed::new("hashing", sources, self.keys.format());
        while let Some(chunk) = feed.next() {
            hashes.clear();
            if let Err(failure) = chunk.hash(hasher, &mut hashes) {
                feed.fail(failure);
            }
            items += hashes.len() as u64;
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
        let mut spool = BufReader::new(spool);
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

/// Makes an empty filter for a number of items.
type Empty = dyn Fn(u64) -> tamis::Result<AnyFilter>;

/// Hashes kept in memory before the temporary file is created.
const SPOOL_MEMORY: usize = 32 << 20;
/// Bytes of hashes handed out at a time; a multiple of eight.
const SPOOL_CHUNK: u64 = 1 << 17;

fn spool_error(error: &io::Error) -> Failure {
    Failure::new(format_args!(
        "cannot keep the hashes of the input in {}: {error} (give --items, \
         or point TMPDIR elsewhere)",
        std::env::temp_dir().display()
    ))
}

fn parse_kind(name: &str) -> std::result::Result<Kind, String> {
    name.parse().map_err(|_| {
        let names: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// Anything the library knows by name.
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
    parsed.map_err(|_| "expected a number, decimal or 0x hexadecimal".into())
}
