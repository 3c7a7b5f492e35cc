//! Sources of keys: files, compressed files, standard input and the command
//! line.

mod chunk;
mod format;
mod source;

pub(crate) use chunk::KeyChunk;
pub(crate) use format::KeyFormat;
pub(crate) use source::{Feed, KeySource};

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::identity::FileIdentity;

/// Arguments that name the keys, shared by all verbs that read keys.
#[derive(clap::Args)]
pub(crate) struct KeyArgs {
    /// Files of keys, `-` for standard input; `.gz` and `.zst` files are
    /// decompressed [default: -]
    #[arg(value_name = "KEYS")]
    files: Vec<PathBuf>,

    /// Use this key instead of files; repeatable
    #[arg(
        short = 'k',
        long = "key",
        value_name = "KEY",
        conflicts_with = "files",
        allow_hyphen_values = true
    )]
    literal: Vec<OsString>,

    /// Encoding of the keys. `query`, `add` and `remove` need the encoding
    /// that `build` used
    #[arg(long, value_enum, default_value_t = KeyFormat::Lines)]
    key_format: KeyFormat,
}

impl KeyArgs {
    pub(crate) fn format(&self) -> KeyFormat {
        self.key_format
    }

    /// True if `path` is one of the files of keys, under any name.
    pub(crate) fn contain(&self, path: &Path) -> bool {
        let Some(output) = FileIdentity::of(path) else { return false };
        let reads_stdin = self.files.is_empty() && self.literal.is_empty();
        let stdin = reads_stdin.then(|| Path::new("-"));
        let files = self.files.iter().map(PathBuf::as_path);
        files
            .chain(stdin)
            .filter_map(|file| match file.as_os_str() == "-" {
                true => FileIdentity::of_stdin(),
                false => FileIdentity::of(file),
            })
            .any(|input| input == output)
    }

    /// Chunks of `sources`, with a progress bar labelled `verb`.
    pub(crate) fn feed<'a>(
        &self,
        verb: &'static str,
        sources: &'a [KeySource],
    ) -> Feed<'a> {
        Feed::new(verb, sources, self.key_format)
    }

    /// Sources of the keys, unopened. Fails if a file is missing or a
    /// directory.
    pub(crate) fn sources(&self) -> Result<Vec<KeySource>> {
        if !self.literal.is_empty() {
            let encoded = self.key_format.encode(&self.literal)?;
            return Ok(vec![KeySource::Memory(encoded)]);
        }
        if self.files.is_empty() {
            return Ok(vec![KeySource::Stdin]);
        }
        let standard = self.files.iter().filter(|f| f.as_os_str() == "-");
        if standard.count() > 1 {
            return Err(Failure::new("`-`: standard input given twice"));
        }
        self.files.iter().map(|path| KeySource::new(path)).collect()
    }
}
