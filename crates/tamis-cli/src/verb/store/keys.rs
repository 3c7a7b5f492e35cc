//! Keys on the command line or on standard input.

use std::ffi::OsString;
use std::io::{self, BufRead, Read};
use std::os::unix::ffi::OsStrExt as _;

use tamis_store::MAX_KEY;

use crate::failure::{Failure, Result};

/// Keys of a verb.
#[derive(clap::Args)]
pub(super) struct KeyArgs {
    /// Keys; `-` or none reads one per line from standard input
    #[arg(value_name = "KEY", allow_hyphen_values = true)]
    keys: Vec<OsString>,

    /// Keys on standard input, and records that are printed, end with a NUL
    /// byte
    #[arg(short = '0', long)]
    pub(super) null: bool,
}

/// Most keys of a group that [`KeyArgs::for_each_group`] passes on.
const GROUP: usize = 1024;

impl KeyArgs {
    /// Byte after each key and each record.
    pub(super) fn end(&self) -> u8 {
        match self.null {
            true => 0,
            false => b'\n',
        }
    }

    /// Calls `use_group` with all keys, some at a time. A pipe that waits for
    /// the results of the keys so far gets them.
    pub(super) fn for_each_group(
        &self,
        mut use_group: impl FnMut(&[Vec<u8>]) -> Result<()>,
    ) -> Result<()> {
        let reads_stdin = match &self.keys[..] {
            [] => true,
            [only] => only.as_bytes() == b"-",
            _ => false,
        };
        if !reads_stdin {
            let keys: Vec<_> =
                self.keys.iter().map(|k| k.as_bytes().to_vec()).collect();
            return use_group(&keys);
        }
        let mut input = io::BufReader::with_capacity(1 << 16, io::stdin());
        let failed = |error: io::Error| {
            Failure::new(format_args!("standard input: {error}"))
        };
        let mut group = Vec::new();
        let mut number = 0u64;
        loop {
            let mut key = Vec::new();
            let mut limited = input.by_ref().take(MAX_KEY as u64 + 1);
            let read =
                limited.read_until(self.end(), &mut key).map_err(failed)?;
            number += 1;
            if key.last() == Some(&self.end()) {
                key.pop();
            } else if key.len() > MAX_KEY {
                return Err(Failure::new(format_args!(
                    "standard input: key {number} is longer than {MAX_KEY} \
                     bytes"
                )));
            }
            if read > 0 {
                group.push(key);
            }
            let is_waiting = input.buffer().is_empty();
            if read == 0 || group.len() == GROUP || is_waiting {
                use_group(&group)?;
                group.clear();
            }
            if read == 0 {
                return Ok(());
            }
        }
    }
}
