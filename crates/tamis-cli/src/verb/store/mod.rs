//! `tamis store`: a key-value store in a directory.

mod create;
mod inspect;
mod keys;
mod load;
mod plan;
mod read;
mod records;
mod write;

use std::path::{Path, PathBuf};

use tamis_store::{Durability, Options, ReadMode, Store};

use crate::failure::{Exit, Failure, Result};
use crate::keys::parse_bytes;
use crate::verb::parse_fpr;

/// Keep records (key and value) on disk, one read per lookup
///
/// A store is a directory. Its index stays in memory within --ram: a lookup
/// reads one page of 4 KiB if the key is present and almost never one if it
/// is absent. `get` reads many keys at the same time, and has three modes of
/// reading (--read-mode). One process writes at a time; any number of
/// processes read.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis store plan --items 1e8 --record-bytes 120 --ram 1GiB
  tamis store create users --ram 1GiB
  tamis store load users users.tsv.gz --ram 1GiB  # key TAB value
  tamis store put users alice '{\"age\": 42}'
  tamis store get users alice bob
  cut -f1 log.tsv | tamis store get users -
  tamis store delete users bob

Exit status: 0 on success, 1 if no key was found, 2 on error.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Create(create::Args),
    Load(load::Args),
    Put(write::PutArgs),
    Delete(write::DeleteArgs),
    Get(read::GetArgs),
    Scan(read::ScanArgs),
    Stats(inspect::StatsArgs),
    Verify(inspect::VerifyArgs),
    Compact(inspect::CompactArgs),
    Plan(plan::Args),
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        match &self.verb {
            Verb::Create(args) => args.run(),
            Verb::Load(args) => args.run(),
            Verb::Put(args) => args.run(),
            Verb::Delete(args) => args.run(),
            Verb::Get(args) => args.run(),
            Verb::Scan(args) => args.run(),
            Verb::Stats(args) => args.run(),
            Verb::Verify(args) => args.run(),
            Verb::Compact(args) => args.run(),
            Verb::Plan(args) => args.run(),
        }
    }
}

/// A store that exists.
#[derive(clap::Args)]
struct StoreArgs {
    /// Directory of the store
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    #[command(flatten)]
    ram: RamArgs,
}

/// Memory of an open store.
#[derive(clap::Args)]
struct RamArgs {
    /// Memory for the index, the write buffer and merging: a limit
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = parse_bytes,
        default_value = "256MiB"
    )]
    ram: u64,
}

impl RamArgs {
    /// Settings for a command, which syncs once at its end.
    fn options(&self) -> Options {
        Options::new().ram(self.ram).durability(Durability::None)
    }
}

/// Size of the filters.
#[derive(clap::Args)]
struct FilterArgs {
    /// Share of lookups of absent keys that read a page, such as 0.01 or 1%:
    /// fewer take more memory [default: 1%]
    #[arg(long, value_name = "P", value_parser = parse_fpr)]
    absent_reads: Option<f64>,

    /// Memory of the filters in bits per key, instead of --absent-reads
    #[arg(long, value_name = "BITS", conflicts_with = "absent_reads")]
    ram_bits_per_key: Option<f64>,
}

impl FilterArgs {
    fn apply(&self, mut options: Options) -> Options {
        if let Some(share) = self.absent_reads {
            options = options.absent_reads(share);
        }
        if let Some(bits) = self.ram_bits_per_key {
            options = options.ram_bits_per_key(bits);
        }
        options
    }
}

impl StoreArgs {
    fn open(&self) -> Result<Store> {
        Store::open(&self.dir, &self.ram.options())
            .map_err(|error| failure(&self.dir, &error))
    }

    /// A store for reading, while another process may write.
    fn open_to_read(&self) -> Result<Store> {
        self.open_to_look_up(ReadMode::default())
    }

    /// [`open_to_read`](Self::open_to_read) with a mode of lookups.
    fn open_to_look_up(&self, mode: ReadMode) -> Result<Store> {
        let options = self.ram.options().read_mode(mode);
        Store::open_read_only(&self.dir, &options)
            .map_err(|error| failure(&self.dir, &error))
    }

    /// Error of an operation on the store.
    fn failure(&self, error: &tamis_store::Error) -> Failure {
        failure(&self.dir, error)
    }
}

/// Error of the store in `dir`, with a hint.
fn failure(dir: &Path, error: &tamis_store::Error) -> Failure {
    use tamis_store::Error;
    let hint = match error {
        Error::NotFound => " (`tamis store create` makes one)",
        Error::Exists => " (choose another directory)",
        Error::Locked => " (run the command again when it has ended)",
        Error::Corrupt { .. } => {
            " (the store is damaged: restore it from a copy)"
        }
        Error::Ram { .. } => " (give more with --ram)",
        _ => "",
    };
    Failure::new(format_args!("{}: {error}{hint}", dir.display()))
}
