//! `tamis store load`.

use std::path::PathBuf;

use tamis_store::Batch;

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
/// After an error or an interruption the store has the records of a first
/// part of the input; loading the same files again completes it.
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
        let bytes = sources.iter().map(|(source, _)| source.bytes());
        let progress = Progress::new(Work {
            verb: "loading",
            extent: bytes
                .sum::<Option<_>>()
                .map_or(Extent::Stream, Extent::Bytes),
            reads_stdin: sources.iter().any(|(s, _)| s.is_stdin()),
            prints_rows: false,
        });
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut loaded = 0u64;
        for (source, format) in &sources {
            let name = source.name();
            let reader =
                source.open(&progress, format.is_text()).map_err(|error| {
                    Failure::new(format_args!("{name}: {error}"))
                })?;
            let mut input =
                Records::new(name, reader, *format, fields.clone())?;
            let mut batch = Batch::new();
            let mut size = 0;
            let result = loop {
                match input.next(&mut key, &mut value) {
                    Ok(true) => {}
                    Ok(false) => break Ok(()),
                    Err(failure) => break Err(failure),
                }
                batch.put(&key, &value).map_err(failed)?;
                size += key.len() + value.len();
                if size >= BATCH {
                    store.write_batch(&batch).map_err(failed)?;
                    loaded += batch.len() as u64;
                    batch.clear();
                    size = 0;
                }
            };
            store.write_batch(&batch).map_err(failed)?;
            loaded += batch.len() as u64;
            if let Err(failure) = result {
                store.flush().map_err(failed)?;
                return Err(Failure::new(format_args!(
                    "{failure}; {} before it are stored",
                    records(loaded)
                )));
            }
        }
        drop(progress);
        progress::during("writing", || store.flush()).map_err(failed)?;
        if !self.quiet {
            println_count(loaded)?;
        }
        Ok(Exit::Success)
    }
}

fn println_count(loaded: u64) -> Result<()> {
    use std::io::Write as _;
    writeln!(std::io::stdout(), "loaded {}", records(loaded))?;
    Ok(())
}
