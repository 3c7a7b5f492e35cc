//! `tamis store load`.

use std::path::PathBuf;

use tamis_store::{Batch, Loader, Store};

use super::StoreArgs;
use super::read::records;
use super::records::{Fields, Format, Records};
use crate::failure::{Exit, Failure, Result};
use crate::keys::KeySource;
use crate::progress::{self, Extent, Progress, Work};

/// Bytes of records that are written at a time.
const BATCH: usize = 1 << 20;

/// Store all records of files
///
/// Records of later lines replace those of earlier ones with the same key.
/// After an error in the input the store has the records before it. A load of
/// an empty store, or of at least a quarter of its bytes, is one step: an
/// interruption leaves the store as it was. After that of a smaller one the
/// store has a first part of the input; loading the files again completes it.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Files of records, `-` for standard input; compressed ones are
    /// decompressed
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Notation of the records [default: by the name of each file, otherwise
    /// tsv]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,

    /// Field of the key in JSON objects, or in the header of CSV
    #[arg(long, value_name = "NAME")]
    key: Option<String>,

    /// Field of the value in JSON objects, or in the header of CSV
    #[arg(long, value_name = "NAME")]
    value: Option<String>,

    /// Print nothing
    #[arg(short, long)]
    quiet: bool,
}

impl Args {
    pub(super) fn run(&self) -> Result<Exit> {
        let fields = Fields {
            key: self.key.clone().unwrap_or_else(|| "key".into()),
            value: self.value.clone().unwrap_or_else(|| "value".into()),
            header: self.key.is_some() || self.value.is_some(),
        };
        let sources = self
            .files
            .iter()
            .map(|path| {
                let format = self.format.unwrap_or_else(|| Format::of(path));
                Ok((KeySource::new(path)?, format))
            })
            .collect::<Result<Vec<_>>>()?;
        let store = self.store.open()?;
        let failed = |error| self.store.failure(&error);
        let bytes = sources
            .iter()
            .map(|(source, _)| source.bytes())
            .sum::<Option<u64>>();
        let progress = Progress::new(Work {
            verb: "loading",
            extent: bytes.map_or(Extent::Stream, Extent::Bytes),
            reads_stdin: sources.iter().any(|(s, _)| s.is_stdin()),
            prints_rows: false,
        });
        let mut sink = Sink::new(&store, bytes).map_err(failed)?;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for (source, format) in &sources {
            let name = source.name();
            let reader =
                source.open(&progress, format.is_text()).map_err(|error| {
                    Failure::new(format_args!("{name}: {error}"))
                })?;
            let mut input =
                Records::new(name, reader, *format, fields.clone())?;
            let failure = loop {
                match input.next(&mut key, &mut value) {
                    Ok(true) => sink.put(&key, &value).map_err(failed)?,
                    Ok(false) => break None,
                    Err(failure) => break Some(failure),
                }
            };
            if let Some(failure) = failure {
                let loaded = sink.finish().map_err(failed)?;
                return Err(Failure::new(format_args!(
                    "{failure}; {} before it are stored",
                    records(loaded)
                )));
            }
        }
        drop(progress);
        let loaded =
            progress::during("writing", || sink.finish()).map_err(failed)?;
        if !self.quiet {
            println_count(loaded)?;
        }
        Ok(Exit::Success)
    }
}

/// Where records go.
enum Sink<'a> {
    /// All segments are written again, in one step.
    Bulk(Box<Loader>),
    /// Through the log and the write buffer.
    Batches { store: &'a Store, batch: Batch, size: usize, loaded: u64 },
}

impl<'a> Sink<'a> {
    /// The sink that costs less for records of `bytes` bytes, if that is
    /// known.
    fn new(store: &'a Store, bytes: Option<u64>) -> tamis_store::Result<Self> {
        let stats = store.stats()?;
        let held = stats.disk.data - stats.disk.free + stats.ram.buffer;
        let is_empty = stats.records == 0 && stats.buffered == 0;
        if is_empty || bytes.is_some_and(|bytes| bytes >= held / 4) {
            return Ok(Self::Bulk(Box::new(store.loader()?)));
        }
        Ok(Self::Batches { store, batch: Batch::new(), size: 0, loaded: 0 })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> tamis_store::Result<()> {
        match self {
            Self::Bulk(loader) => loader.put(key, value),
            Self::Batches { store, batch, size, loaded } => {
                batch.put(key, value)?;
                *size += key.len() + value.len();
                if *size >= BATCH {
                    store.write_batch(batch)?;
                    *loaded += batch.len() as u64;
                    batch.clear();
                    *size = 0;
                }
                Ok(())
            }
        }
    }

    /// Makes all records durable and returns their number.
    fn finish(self) -> tamis_store::Result<u64> {
        match self {
            Self::Bulk(loader) => loader.finish(),
            Self::Batches { store, batch, loaded, .. } => {
                store.write_batch(&batch)?;
                store.flush()?;
                Ok(loaded + batch.len() as u64)
            }
        }
    }
}

fn println_count(loaded: u64) -> Result<()> {
    use std::io::Write as _;
    writeln!(std::io::stdout(), "loaded {}", records(loaded))?;
    Ok(())
}
