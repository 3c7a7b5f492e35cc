//! `tamis store get` and `scan`.

use std::io::{BufWriter, Write};

use serde_json::{Map, Value};
use tamis_store::ReadMode;

use super::StoreArgs;
use super::keys::KeyArgs;
use crate::failure::{Exit, Result};
use crate::report::count;

/// Print the records of keys: key TAB value
///
/// Keys without a record are not printed. Exit status: 0 if a key has a
/// record, 1 if none has, 2 on error.
#[derive(clap::Args)]
pub(super) struct GetArgs {
    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    keys: KeyArgs,

    #[command(flatten)]
    form: RecordForm,

    /// Print the keys without a record instead
    #[arg(short = 'v', long, conflicts_with_all = ["values", "json"])]
    invert: bool,

    /// Print only the number of records
    #[arg(short, long)]
    count: bool,

    /// How pages are read
    #[arg(long, value_name = "MODE", value_enum, default_value = "buffered")]
    read_mode: Mode,
}

/// A [`ReadMode`] as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    /// A system call per page, through the page cache
    Buffered,
    /// A system call per page, past the page cache
    Direct,
    /// Through maps of the file, on Linux: faster while the data is in the
    /// page cache; an error of the device ends the program with a signal
    Mapped,
}

impl From<Mode> for ReadMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Buffered => Self::Buffered,
            Mode::Direct => Self::Direct,
            Mode::Mapped => Self::Mapped,
        }
    }
}

/// Print all records, in the order of the hashes of their keys
#[derive(clap::Args)]
pub(super) struct ScanArgs {
    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    form: RecordForm,

    /// Records end with a NUL byte
    #[arg(short = '0', long)]
    null: bool,

    /// Stop after N records
    #[arg(short = 'm', long, value_name = "N")]
    max_count: Option<u64>,
}

/// Form of the records that are printed.
#[derive(clap::Args)]
struct RecordForm {
    /// Print values without keys
    #[arg(long, conflicts_with = "json")]
    values: bool,

    /// Print objects such as {"key":"a","value":"b"}, one per line; bytes
    /// that are not UTF-8 as {"hex":"ff00"}
    #[arg(long)]
    json: bool,
}

impl RecordForm {
    fn print(
        &self,
        out: &mut impl Write,
        key: &[u8],
        value: &[u8],
        end: u8,
    ) -> Result<()> {
        if self.json {
            let record = Map::from_iter([
                ("key".into(), text(key)),
                ("value".into(), text(value)),
            ]);
            serde_json::to_writer(&mut *out, &record)?;
            out.write_all(b"\n")?;
            return Ok(());
        }
        if !self.values {
            out.write_all(key)?;
            out.write_all(b"\t")?;
        }
        out.write_all(value)?;
        out.write_all(&[end])?;
        Ok(())
    }
}

/// Bytes as a JSON value.
fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => {
            Map::from_iter([("hex".into(), hex::encode(bytes).into())]).into()
        }
    }
}

impl GetArgs {
    pub(super) fn run(&self) -> Result<Exit> {
        let store = self.store.open_to_look_up(self.read_mode.into())?;
        let mut out = BufWriter::new(std::io::stdout().lock());
        let end = self.keys.end();
        let (mut found, mut absent) = (0u64, 0u64);
        self.keys.for_each_group(|keys| {
            let values = store
                .get_many(keys)
                .map_err(|error| self.store.failure(&error))?;
            for (key, value) in keys.iter().zip(values) {
                match &value {
                    Some(_) => found += 1,
                    None => absent += 1,
                }
                match value {
                    _ if self.count => {}
                    Some(value) if !self.invert => {
                        self.form.print(&mut out, key, &value, end)?;
                    }
                    None if self.invert => {
                        out.write_all(key)?;
                        out.write_all(&[end])?;
                    }
                    _ => {}
                }
            }
            out.flush()?;
            Ok(())
        })?;
        let selected = if self.invert { absent } else { found };
        if self.count {
            writeln!(out, "{selected}")?;
        }
        out.flush()?;
        Ok(Exit::success_if(selected > 0))
    }
}

impl ScanArgs {
    pub(super) fn run(&self) -> Result<Exit> {
        let store = self.store.open_to_read()?;
        let failed = |error| self.store.failure(&error);
        let mut out = BufWriter::new(std::io::stdout().lock());
        let end = if self.null { 0 } else { b'\n' };
        let most = self.max_count.unwrap_or(u64::MAX);
        let snapshot = store.snapshot().map_err(failed)?;
        let mut records = snapshot.iter();
        let mut printed = 0;
        while printed < most {
            let Some(record) = records.next() else { break };
            let (key, value) = record.map_err(failed)?;
            self.form.print(&mut out, &key, &value, end)?;
            printed += 1;
        }
        out.flush()?;
        Ok(Exit::Success)
    }
}

/// Formats a number of records.
pub(super) fn records(number: u64) -> String {
    counted(number, "record")
}

/// Formats a number of things with this name.
pub(super) fn counted(number: u64, name: &str) -> String {
    match number {
        1 => format!("1 {name}"),
        number => format!("{} {name}s", count(number)),
    }
}
