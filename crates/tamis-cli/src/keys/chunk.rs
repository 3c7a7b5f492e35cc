//! Chunk of one source that ends with a complete row.

use std::sync::Arc;

use tamis::KeyHasher;

use super::format::{Notation, Row};
use crate::failure::{Failure, Result};

/// Source of a chunk.
#[derive(Debug)]
pub(crate) struct SourceInfo {
    /// Index in the order of the sources.
    pub(super) index: usize,
    pub(super) name: String,
    /// Header of a table, its line end included; empty if there is none.
    pub(super) header: Vec<u8>,
    /// Field of the key, from 0.
    pub(super) column: usize,
}

impl SourceInfo {
    /// Index in the order of the sources.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// Path, `standard input` or `--key`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Header of a table, its line end included; empty if there is none.
    pub(crate) fn header(&self) -> &[u8] {
        &self.header
    }
}

/// Complete rows of one source.
#[derive(Debug)]
pub(crate) struct KeyChunk {
    pub(super) bytes: Vec<u8>,
    pub(super) notation: Arc<Notation>,
    pub(super) source: Arc<SourceInfo>,
    pub(super) rows: u64,
    /// Rows of the source before this chunk.
    pub(super) rows_before: u64,
}

impl KeyChunk {
    pub(crate) fn source(&self) -> &SourceInfo {
        &self.source
    }

    /// Number of keys.
    pub(crate) fn count(&self) -> u64 {
        self.notation.count(&self.bytes, self.rows)
    }

    /// Appends the hash of every key.
    pub(crate) fn hash(
        &self,
        hasher: &KeyHasher,
        hashes: &mut Vec<u64>,
    ) -> Result<()> {
        self.for_each_key(|key, _| hashes.push(hasher.hash(key)))
    }

    /// Calls `f` with every decoded key and its row, up to the first row that
    /// cannot be decoded.
    pub(crate) fn for_each_key<'a>(
        &'a self,
        f: impl FnMut(&[u8], Row<'a>),
    ) -> Result<()> {
        let Self { notation, source, .. } = self;
        let column = source.column;
        notation.for_each_key(&self.bytes, column, f).map_err(|fault| {
            Failure::new(format_args!(
                "{}: {} {}: {}",
                source.name,
                notation.row_name(),
                self.rows_before + fault.index + 1,
                fault.reason
            ))
        })
    }

    /// Number of `row` in its source, from 1, with the header.
    pub(crate) fn number(&self, row: Row<'_>) -> u64 {
        self.rows_before + row.index + 1
    }

    /// Line end or delimiter to print after `row`: empty unless the last row
    /// of a source lacks it.
    pub(crate) fn missing_end(&self, row: &[u8]) -> &'static [u8] {
        self.notation.missing_end(row)
    }
}
