//! `tamis store put` and `delete`.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;

use tamis_store::{Batch, Store};

use super::StoreArgs;
use super::keys::KeyArgs;
use crate::failure::{Exit, Failure, Result};

/// Store a record; a value that the key had is replaced
#[derive(clap::Args)]
pub(super) struct PutArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// Key
    #[arg(value_name = "KEY", allow_hyphen_values = true)]
    key: OsString,

    /// Value, `-` to read it from standard input
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: OsString,
}

/// Delete keys and their values; absent keys are ignored
#[derive(clap::Args)]
pub(super) struct DeleteArgs {
    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    keys: KeyArgs,
}

impl PutArgs {
    pub(super) fn run(&self) -> Result<Exit> {
        let value = match self.value.as_bytes() {
            b"-" => {
                let mut value = Vec::new();
                let most = tamis_store::MAX_VALUE as u64 + 1;
                std::io::stdin().take(most).read_to_end(&mut value).map_err(
                    |error| {
                        Failure::new(format_args!("standard input: {error}"))
                    },
                )?;
                value
            }
            value => value.to_vec(),
        };
        let store = self.store.open()?;
        store
            .put(self.key.as_bytes(), value)
            .and_then(|()| store.flush())
            .map_err(|error| self.store.failure(&error))?;
        Ok(Exit::Success)
    }
}

impl DeleteArgs {
    pub(super) fn run(&self) -> Result<Exit> {
        let store = self.store.open()?;
        let failed = |error| self.store.failure(&error);
        self.keys
            .for_each_group(|keys| delete(&store, keys).map_err(failed))?;
        store.flush().map_err(failed)?;
        Ok(Exit::Success)
    }
}

fn delete(store: &Store, keys: &[Vec<u8>]) -> tamis_store::Result<()> {
    let mut batch = Batch::new();
    for key in keys {
        batch.delete(key)?;
    }
    store.write_batch(&batch)
}
