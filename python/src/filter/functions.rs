//! The functions that make filters.

use std::num::NonZero;
use std::path::PathBuf;

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tamis::{AnyFilter, Kind};
use tamis_arrow::KeyRecord;

use super::Filter;
use crate::error::{Failure, Result, invalid};
use crate::keys::{Batch, Hashes, pieces};
use crate::memory;
use crate::options::Options;
use crate::progress::Progress;

/// A filter with these keys, sized for their number unless `items` is given.
///
/// `keys` is an iterable, a numpy array, an Arrow array, a polars or pandas
/// series, of integers, strings or bytes. `kind` is `"bloom"`, `"blocked"`,
/// `"split"`, `"balanced"` or `"tinyset"`; by default a `TinySet` at rates
/// from 0.01 % to 3 %, else `Blocked`. The keys of an iterable are kept as 8
/// bytes each until their number is known; with `items` they are not.
///
/// >>> import tamis
/// >>> f = tamis.build(["apple", "pear"], fpr=0.001)
/// >>> "apple" in f
/// True
/// >>> tamis.build(range(100), fpr=0.1).kind
/// 'blocked'
#[pyfunction]
#[pyo3(signature = (
    keys, fpr = None, *, bits_per_key = None, items = None, kind = None,
    prefer = "space", block_bits = 512, hash = "xxh3", seed = None,
    foldable = 0, removable = false, repeats = false, levels = 1,
    max_reads_miss = None, threads = Some(1), progress = None
))]
#[expect(clippy::too_many_arguments, reason = "keywords")]
pub(crate) fn build<'py>(
    py: Python<'py>,
    keys: &Bound<'py, PyAny>,
    fpr: Option<f64>,
    bits_per_key: Option<f64>,
    items: Option<&Bound<'py, PyAny>>,
    kind: Option<&str>,
    prefer: &str,
    block_bits: u32,
    hash: &str,
    seed: Option<u128>,
    foldable: u32,
    removable: bool,
    repeats: bool,
    levels: u32,
    max_reads_miss: Option<f64>,
    threads: Option<usize>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let threads = crate::options::threads(threads)?;
    let kind = kind.map(str::parse::<Kind>).transpose();
    let options = Options {
        items,
        fpr,
        bits_per_key,
        kind: kind.map_err(invalid)?,
        prefer,
        block_bits,
        hash,
        seed,
        foldable,
        removable,
        repeats,
        levels,
        max_reads_miss,
    };
    let builder = options.builder(py)?;
    let progress = Progress::new(py, progress)?;
    let batch = Batch::new(keys)?;
    let known = match items {
        Some(_) => options.items()?,
        None => batch.present(),
    };
    if let (None, Batch::Iterable(iterable)) = (known, &batch) {
        let filter = collect(py, &builder, iterable, threads, &progress)?;
        return Filter::owned(filter)?.into_object(py);
    }
    let builder = builder.items(known.unwrap_or_default());
    let empty = py.detach(|| builder.build()).map_err(Failure::from)?;
    let filter = Filter::owned(empty)?;
    filter.insert(py, &batch, threads, &progress)?;
    filter.into_object(py)
}

/// Builds a filter from an iterable of unknown length.
fn collect(
    py: Python<'_>,
    builder: &tamis::Builder<AnyFilter>,
    iterable: &Bound<'_, PyAny>,
    threads: NonZero<usize>,
    progress: &Progress<'_>,
) -> Result<AnyFilter> {
    let hasher = builder.items(1).build()?;
    let hasher = *hasher.hasher();
    let mut keys = Hashes::new(iterable, hasher, KeyRecord::default(), true)?;
    let mut hashes = Vec::new();
    while keys.next(&mut hashes, |_| ())? > 0 {
        progress.report(hashes.len() as u64, None)?;
    }
    let record = keys.record;
    let mut filter =
        py.detach(|| builder.items(hashes.len() as u64).build())?;
    for rows in pieces(hashes.len()) {
        py.detach(|| insert_hashes(&mut filter, &hashes[rows], threads));
        py.check_signals()?;
    }
    if !record.is_empty() {
        record.store(&mut filter)?;
    }
    progress.end()?;
    Ok(filter)
}

/// Opens a file as a read-only memory map: in constant time, and shared by
/// all processes that open it. `mmap=False` reads and verifies it instead,
/// for files that other programs may shorten.
///
/// >>> import tamis, tempfile, os.path
/// >>> path = os.path.join(tempfile.mkdtemp(), "keys.tamis")
/// >>> tamis.build(["apple"], fpr=0.001).save(path)
/// >>> f = tamis.open(path)
/// >>> f.read_only, "apple" in f
/// (True, True)
#[pyfunction]
#[pyo3(signature = (path, *, mmap = true))]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    mmap: bool,
) -> PyResult<Py<PyAny>> {
    let opened = py.detach(|| Filter::open(path, mmap).map_err(PyErr::from));
    opened?.into_object(py)
}

/// A filter in bytes, without a copy until it is changed. The bytes must not
/// change meanwhile. They are not verified: `filter.verify()` is.
///
/// >>> import tamis
/// >>> data = tamis.build(["apple"], fpr=0.001).to_bytes()
/// >>> "apple" in tamis.from_bytes(data)
/// True
#[pyfunction]
pub(crate) fn from_bytes(data: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let bytes = memory::from_python(data)?;
    Filter::from_bytes(bytes)?.into_object(data.py())
}

/// The filter in the parts of a pickle.
#[pyfunction]
#[pyo3(signature = (*parts))]
pub(crate) fn _from_parts(
    py: Python<'_>,
    parts: &Bound<'_, PyTuple>,
) -> PyResult<Py<PyAny>> {
    let parts: Vec<Bytes> = parts
        .iter()
        .map(|part| memory::from_python(&part))
        .collect::<PyResult<_>>()?;
    let bytes = py.detach(|| memory::join(parts));
    Filter::from_bytes(bytes)?.into_object(py)
}

/// Inserts hashes with one thread or several.
pub(super) fn insert_hashes(
    filter: &mut AnyFilter,
    hashes: &[u64],
    threads: NonZero<usize>,
) {
    const CHUNK: usize = 1 << 12;
    if threads.get() == 1 {
        return filter.insert_hash_batch(hashes);
    }
    filter.insert_parallel_with(
        hashes.chunks(CHUNK),
        threads,
        |chunk, out| out.extend_from_slice(chunk),
    );
}
