//! Where keys come from: files, compressed files and standard input, in one
//! of several formats.

mod chunk;
mod format;
mod source;

pub(crate) use chunk::Chunk;
pub(crate) use format::Format;
pub(crate) use source::{Feed, Source};

use std::path::PathBuf;

use crate::failure::{Failure, Result};

/// The arguments that name keys, the same for every verb.
#[derive(clap::Args)]
pub(crate) struct KeyArgs {
    /// Files of keys; `-` or none for standard input. `.gz` and `.zst` files
    /// are decompressed
    #[arg(value_name = "KEYS")]
    files: Vec<PathBuf>,

    /// A key given on the command line (repeatable), instead of files
    #[arg(
        short = 'k',
        long = "key",
        value_name = "KEY",
        conflicts_with = "files"
    )]
    literal: Vec<String>,

    /// How keys are written: `lines` (without the line end), `nul`
    /// (NUL-terminated), `u64le` (8 bytes each), `hex` (a line of hex digits
    /// each, for the bytes they stand for)
    #[arg(long, value_enum, default_value_t = Format::Lines)]
    key_format: Format,
}

impl KeyArgs {
    pub(crate) fn format(&self) -> Format {
        self.key_format
    }

    /// Opens nothing yet, but finds what cannot be opened.
    pub(crate) fn sources(&self) -> Result<Vec<Source>> {
        if !self.literal.is_empty() {
            let joined = self.key_format.join(&self.literal)?;
            return Ok(vec![Source::Memory(joined)]);
        }
        if self.files.is_empty() {
            return Ok(vec![Source::Stdin]);
        }
        let standard = self.files.iter().filter(|f| f.as_os_str() == "-");
        if standard.count() > 1 {
            return Err(Failure::new("standard input can be read only once"));
        }
        self.files.iter().map(|path| Source::new(path)).collect()
    }
}
