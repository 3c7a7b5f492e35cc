//! `tamis build`: a filter from a list of keys.

use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

use tamis::{AnyFilter, Blocked, Bloom, HashId, KeyHasher, Kind, Split};

use super::{Output, Threads, parse_bits, parse_fpr, parse_items};
use crate::failure::{Failure, Outcome, Result};
use crate::keys::{Feed, KeyArgs, Source};

/// Build a filter from a list of keys
///
/// Give the false-positive rate or the bits per key. Files are counted
/// first; from a pipe or a compressed file without --items, the 8-byte
/// hashes are kept in a temporary file until their number is known. Repeated
/// keys do no harm.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    keys: KeyArgs,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    size: Size,

    /// The kind of filter; `tamis plan` compares them
    #[arg(long, value_parser = parse_kind, default_value = "blocked")]
    kind: Kind,

    /// Number of keys to size for, instead of counting them
    #[arg(long, value_name = "N", value_parser = parse_items)]
    items: Option<u64>,

    /// Bits in a block: 512 (a cache line) or 256
    #[arg(long, value_name = "BITS", default_value_t = 512)]
    block_bits: u32,

    /// The hash function: xxh3, or siphash for keys from strangers
    #[arg(long, value_parser = parse_hash, default_value = "xxh3")]
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
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Size {
    /// Size by false-positive rate, such as 0.001 or 0.1%
    #[arg(long, value_name = "RATE", value_parser = parse_fpr)]
    fpr: Option<f64>,

    /// Size by memory
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    bits_per_key: Option<f64>,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Outcome> {
        self.output.check()?;
        let hasher = self.hasher()?;
        // Before the keys are read: a wrong setting should not take hours.
        self.empty(0, hasher)?;
        let sources = self.keys.sources()?;
        let filter = match self.items {
            Some(items) => self.build(items, hasher, &sources)?,
            None if sources.iter().all(Source::is_rereadable) => {
                let items = self.count(&sources)?;
                self.build(items, hasher, &sources)?
            }
            None => self.build_from_spool(hasher, &sources)?,
        };
        self.output.write(&filter, self.json)?;
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

    fn empty(&self, items: u64, hasher: KeyHasher) -> Result<AnyFilter> {
        macro_rules! build {
            ($kind:ident) => {{
                let mut builder = $kind::builder()
                    .items(items)
                    .block_bits(self.block_bits)
                    .hasher(hasher);
                if let Some(fpr) = self.size.fpr {
                    builder = builder.fpr(fpr);
                }
                if let Some(bits) = self.size.bits_per_key {
                    builder = builder.bits_per_key(bits);
                }
                AnyFilter::$kind(builder.build()?)
            }};
        }
        Ok(match self.kind {
            Kind::Bloom => build!(Bloom),
            Kind::Blocked => build!(Blocked),
            Kind::Split => build!(Split),
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
        items: u64,
        hasher: KeyHasher,
        sources: &[Source],
    ) -> Result<AnyFilter> {
        let mut filter = self.empty(items, hasher)?;
        let feed = Feed::new("building", sources, self.keys.format());
        super::insert_all(&mut filter, feed, &self.threads)?;
        Ok(filter)
    }

    /// One pass over the keys, with their hashes set aside until there is a
    /// filter to put them in.
    fn build_from_spool(
        &self,
        hasher: KeyHasher,
        sources: &[Source],
    ) -> Result<AnyFilter> {
        let mut spool =
            BufWriter::new(tempfile::SpooledTempFile::new(SPOOL_MEMORY));
        let mut items = 0;
        let mut hashes = Vec::new();
        let mut feed = Feed::new("hashing", sources, self.keys.format());
        while let Some(chunk) = feed.next() {
            hashes.clear();
            if let Err(failure) = chunk.hash(&hasher, &mut hashes) {
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
        let mut filter = self.empty(items, hasher)?;
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

fn parse_hash(name: &str) -> std::result::Result<HashId, String> {
    name.parse().map_err(|error: tamis::Error| error.to_string())
}

fn parse_seed(text: &str) -> std::result::Result<u128, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "expected a number, decimal or 0x hexadecimal".into())
}
