//! The classes of filters.

mod classes;
mod functions;
mod state;

use std::ffi::c_int;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use arrow_array::{ArrayRef, BooleanArray};
use bytes::Bytes;
use numpy::{PyArray1, PyUntypedArray};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use pyo3_arrow::PyArray;
use tamis::{AnyFilter, KeyHasher, Kind, Mapped};
use tamis_arrow::{KeyRecord, Keys, Value};

use crate::error::{Failure, Result, not_a_key, poisoned};
use crate::guarded::{Guarded, Reader, Writer};
use crate::keys::{Batch, Hashes, pieces, with_value};
use crate::memory::{self, Buffer};
use crate::progress::Progress;
use functions::insert_hashes;
use state::{Data, State, View, each};

pub(crate) use classes::{Balanced, Blocked, Bloom, Split, TinySet};
pub(crate) use functions::{_from_parts, build, from_bytes, open};

/// A set of keys that answers "probably" or "certainly not": the base of the
/// classes `Bloom`, `Blocked`, `Split`, `Balanced` and `TinySet`.
///
/// Keys are integers of up to 64 bits, strings and bytes. A filter takes keys
/// of one type, that of the first key; a string and the bytes of its UTF-8
/// form are the same key. Batches, builds and file operations release the GIL,
/// and any number of threads may use a filter.
///
/// >>> import tamis
/// >>> f = tamis.build(["apple", "pear"], fpr=0.001)
/// >>> "apple" in f, "plum" in f
/// (True, False)
/// >>> isinstance(f, tamis.Filter)
/// True
#[pyclass(subclass, frozen, module = "tamis")]
pub(crate) struct Filter {
    hasher: KeyHasher,
    kind: Kind,
    state: Guarded<State>,
}

impl Filter {
    fn new(data: Data, is_read_only: bool) -> Result<Self> {
        Ok(Self {
            hasher: *data.get().hasher(),
            kind: data.get().kind(),
            state: Guarded::new(State {
                record: data.record()?,
                data,
                is_read_only,
            }),
        })
    }

    pub(crate) fn owned(filter: AnyFilter) -> Result<Self> {
        Self::new(Data::Owned(Arc::new(filter)), false)
    }

    pub(crate) fn open(path: PathBuf, mmap: bool) -> Result<Self> {
        let mapped = match mmap {
            true => Mapped::open(path)?,
            false => Mapped::read(path)?,
        };
        let view = View::new(Bytes::from_owner(mapped))?;
        if !mmap {
            view.filter.verify()?;
        }
        Self::new(Data::View(view), mmap)
    }

    pub(crate) fn from_bytes(bytes: Bytes) -> Result<Self> {
        Self::new(Data::View(View::new(bytes)?), false)
    }

    /// The Python object, of the class of its kind.
    pub(crate) fn into_object(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        classes::into_object(self, py)
    }

    #[inline]
    fn read(&self, py: Python<'_>) -> Result<Reader<'_, State>> {
        Ok(self.state.read(py).map_err(poison)?)
    }

    fn write(&self, py: Python<'_>) -> Result<Writer<'_, State>> {
        Ok(self.state.write(py).map_err(poison)?)
    }

    /// The answer for a `str`, without the lock. Errors have no path through this
    /// function, which saves 80 of 530 instructions of `key in filter`: `None`
    /// leaves them to [`look_up`](Self::look_up).
    #[inline]
    fn peek_text(&self, key: &Bound<'_, PyAny>) -> Option<bool> {
        if !key.is_instance_of::<PyString>() {
            return None;
        }
        let text = key.cast::<PyString>().ok()?.to_str().ok()?;
        #[expect(unsafe_code, reason = "a lock less per lookup")]
        // SAFETY: `peek` of `State` hashes the text and reads blocks.
        let found = unsafe {
            self.state.peek(key.py(), |state| {
                state.peek(&self.hasher, Value::Text(text))
            })
        };
        found?
    }

    /// The answer for any key.
    #[inline(never)]
    fn look_up(&self, key: &Bound<'_, PyAny>) -> Result<bool> {
        let py = key.py();
        with_value(key, |value| {
            let Some(value) = value else { return Ok(false) };
            #[expect(unsafe_code, reason = "a lock less per lookup")]
            // SAFETY: `contains` hashes bytes and reads blocks.
            let found = unsafe {
                self.state
                    .peek(py, |state| state.contains(&self.hasher, value))
            };
            match found {
                Some(found) => found,
                None => self.read(py)?.contains(&self.hasher, value),
            }
        })
    }

    /// The filter at this moment, without a copy of its blocks.
    fn snapshot(&self, py: Python<'_>) -> Result<Data> {
        Ok(self.read(py)?.data.clone())
    }

    /// A copy made by `change`, of the same kind.
    fn derived(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&AnyFilter) -> tamis::Result<AnyFilter> + Send,
    ) -> Result<Py<PyAny>> {
        let data = self.snapshot(py)?;
        let filter = py.detach(|| match &data {
            Data::Owned(filter) => change(filter),
            Data::View(view) => change(&view.filter.clone().into_owned()?),
        })?;
        Ok(Self::owned(filter)?.into_object(py)?)
    }

    /// Inserts all keys of a batch.
    pub(crate) fn insert(
        &self,
        py: Python<'_>,
        batch: &Batch<'_>,
        threads: NonZero<usize>,
        progress: &Progress<'_>,
    ) -> Result<()> {
        let (mut record, is_open) = {
            let state = self.read(py)?;
            state.check_writable()?;
            (state.record, state.is_open())
        };
        let total = batch.present();
        let mut done = 0;
        if let Batch::Iterable(iterable) = batch {
            let mut keys =
                Hashes::new(iterable, self.hasher, record, is_open)?;
            let mut hashes = Vec::new();
            loop {
                hashes.clear();
                if keys.next(&mut hashes, |_| ())? == 0 {
                    return progress.end();
                }
                {
                    let mut state = self.write(py)?;
                    let filter = state.change(keys.record)?;
                    py.detach(|| insert_hashes(filter, &hashes, threads));
                }
                done += hashes.len() as u64;
                progress.report(done, None)?;
            }
        }
        let columns = batch.columns(&self.hasher)?;
        for keys in &columns {
            if keys.present() == 0 {
                continue;
            }
            if is_open && record.is_empty() {
                record = KeyRecord::for_type(keys.key_type());
            }
            record.admit(keys)?;
            for rows in pieces(keys.len()) {
                {
                    let mut state = self.write(py)?;
                    let filter = state.change(record)?;
                    let rows = rows.clone();
                    py.detach(|| {
                        tamis_arrow::insert(filter, keys, rows, threads);
                    });
                }
                py.check_signals()?;
                done += rows.len() as u64;
                progress.report(done, total)?;
            }
        }
        progress.end()
    }

    /// One answer for every row of an iterable.
    fn contains_iterable(
        &self,
        py: Python<'_>,
        iterable: &Bound<'_, PyAny>,
    ) -> Result<Vec<bool>> {
        let record = self.read(py)?.record;
        let mut keys = Hashes::new(iterable, self.hasher, record, false)?;
        let (mut hashes, mut absent) = (Vec::new(), Vec::new());
        let mut all = Vec::new();
        loop {
            hashes.clear();
            absent.clear();
            let rows = keys.next(&mut hashes, |row| absent.push(row))?;
            if rows == 0 {
                return Ok(all);
            }
            let start = all.len();
            let state = self.read(py)?;
            let filter = state.data.get();
            py.detach(|| {
                all.resize(start + hashes.len(), false);
                filter.contains_hash_batch(&hashes, &mut all[start..]);
            });
            drop(state);
            // In ascending order: each row moves those after it.
            for &row in &absent {
                all.insert(start + row, false);
            }
        }
    }

    /// The answers of each chunk.
    fn contains_columns(
        &self,
        py: Python<'_>,
        columns: &[Keys<'_>],
        threads: NonZero<usize>,
    ) -> Result<Vec<BooleanArray>> {
        let state = self.read(py)?;
        for keys in columns.iter().filter(|keys| keys.present() > 0) {
            state.record.admit(keys)?;
        }
        let filter = state.data.get();
        let answers = |keys| tamis_arrow::contains(filter, keys, threads);
        Ok(py.detach(|| columns.iter().map(answers).collect()))
    }
}

fn poison<T>(_: PoisonError<T>) -> PyErr {
    poisoned()
}

#[pymethods]
impl Filter {
    #[inline]
    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        match self.peek_text(key) {
            Some(found) => Ok(found),
            None => Ok(self.look_up(key)?),
        }
    }

    /// The answers for several keys: a numpy array of `bool`; for an Arrow
    /// array, a polars or pandas series, one of the same library, null where
    /// the key is null. `None` in other iterables is not in the filter.
    ///
    /// `threads=None` uses all cores.
    ///
    /// >>> import numpy, tamis
    /// >>> f = tamis.build(numpy.arange(1000), fpr=0.001)
    /// >>> f.contains(numpy.array([7, 999, -1]))
    /// array([ True,  True, False])
    /// >>> f.contains([7, None])
    /// array([ True, False])
    #[pyo3(signature = (keys, *, threads = Some(1)))]
    fn contains<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let threads = crate::options::threads(threads)?;
        let batch = Batch::new(keys)?;
        match &batch {
            Batch::Iterable(iterable) => {
                let found = self.contains_iterable(py, iterable)?;
                let found = PyArray1::from_vec(py, found).into_any();
                shaped(keys, found)
            }
            Batch::Numpy(array) => {
                let mut found = vec![false; array.len()];
                let columns = batch.columns(&self.hasher)?;
                let state = self.read(py)?;
                let filter = state.data.get();
                for keys in columns.iter().filter(|keys| !keys.is_empty()) {
                    state.record.admit(keys).map_err(Failure::from)?;
                    py.detach(|| {
                        tamis_arrow::contains_bools(
                            filter, keys, &mut found, threads,
                        );
                    });
                }
                drop(state);
                shaped(keys, PyArray1::from_vec(py, found).into_any())
            }
            Batch::Arrow(_) => {
                let columns = batch.columns(&self.hasher)?;
                let found = self.contains_columns(py, &columns, threads)?;
                let found: Vec<Bound<'_, PyArray>> = found
                    .into_iter()
                    .map(|chunk| {
                        let chunk: ArrayRef = Arc::new(chunk);
                        Bound::new(py, PyArray::from_array_ref(chunk))
                    })
                    .collect::<PyResult<_>>()?;
                let output = py.import(intern!(py, "tamis._output"))?;
                output.call_method1(intern!(py, "like"), (keys, found))
            }
        }
    }

    /// Adds a key. `True` if it certainly is new, `False` if it probably was
    /// in the filter.
    ///
    /// >>> import tamis
    /// >>> seen = tamis.TinySet(items=1000, fpr=0.001)
    /// >>> seen.add("apple"), seen.add("apple")
    /// (True, False)
    fn add(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let added = with_value(key, |value| {
            let Some(value) = value else {
                return Err(not_a_key("None is no key").into());
            };
            let mut state = self.write(key.py())?;
            let record = match state.is_open() {
                true => KeyRecord::for_type(value.key_type()),
                false => state.record,
            };
            record.admit_value(value)?;
            let hash = value.hash(&self.hasher);
            Ok(tamis::FilterMut::insert_hash(state.change(record)?, hash))
        });
        Ok(added?)
    }

    /// Adds all keys of an array, a series or an iterable; nulls are skipped.
    /// The bytes of the filter do not depend on `threads`; `None` uses all
    /// cores.
    ///
    /// `progress=True` shows a bar (of tqdm, if that is installed), a callable
    /// is called with the number of keys and the total or `None`.
    ///
    /// After an exception, an interrupt for example, a part of the keys has
    /// been added.
    ///
    /// >>> import tamis
    /// >>> f = tamis.Blocked(items=3, fpr=0.01)
    /// >>> f.update(["apple", "pear"])
    /// >>> len(f)
    /// 2
    #[pyo3(signature = (keys, *, threads = Some(1), progress = None))]
    fn update<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        threads: Option<usize>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let threads = crate::options::threads(threads)?;
        let progress = Progress::new(py, progress)?;
        Ok(self.insert(py, &Batch::new(keys)?, threads, &progress)?)
    }

    /// Removes one occurrence of a key from a `TinySet` built with
    /// `removable=True`; `False` if it certainly was not in the filter.
    /// Remove only keys that were added: another key may share the
    /// fingerprint. A key that was added 16 times or more, without a removal
    /// between, stays in the filter.
    ///
    /// >>> import tamis
    /// >>> f = tamis.TinySet(items=10, fpr=0.001, removable=True)
    /// >>> f.add("apple"), f.remove("apple"), f.remove("apple")
    /// (True, True, False)
    fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let removed = with_value(key, |value| {
            let Some(value) = value else {
                return Err(not_a_key("None is no key").into());
            };
            let mut state = self.write(key.py())?;
            let record = state.record;
            record.admit_value(value)?;
            let hash = value.hash(&self.hasher);
            let removal = state.change(record)?.remove_hash(hash)?;
            Ok(removal != tamis::Removal::Absent)
        });
        Ok(removed?)
    }

    /// Removes all keys; size and settings stay.
    ///
    /// >>> import tamis
    /// >>> f = tamis.build(["apple"], fpr=0.01)
    /// >>> f.clear()
    /// >>> len(f)
    /// 0
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.write(py)?;
        let record = state.record;
        tamis::FilterMut::clear(state.change(record)?);
        Ok(())
    }

    /// Adds all keys of another filter of the same kind, size and hash.
    ///
    /// >>> import tamis
    /// >>> f, g = (tamis.Blocked(items=9, fpr=0.01) for _ in range(2))
    /// >>> f.add(1), g.add(2)
    /// (True, True)
    /// >>> f.merge(g)
    /// >>> 2 in f
    /// True
    fn merge(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let theirs = other.get().snapshot(py)?;
        let their_record = theirs.record()?;
        let mut state = self.write(py)?;
        let record =
            state.record.common(their_record).map_err(Failure::from)?;
        state.check_writable()?;
        let merged = {
            let filter = state.data.change()?;
            py.detach(|| each!(&theirs, theirs => filter.merge_from(theirs)))
        };
        merged.map_err(Failure::from)?;
        state.change(record)?;
        Ok(())
    }

    fn __or__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, Self>,
    ) -> PyResult<Py<PyAny>> {
        let copy = Self::new(self.snapshot(py)?, false)?;
        copy.merge(py, other)?;
        copy.into_object(py)
    }

    fn __ior__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, Self>,
    ) -> PyResult<()> {
        self.merge(py, other)
    }

    /// The filter of half the size, with the same keys.
    ///
    /// >>> import tamis
    /// >>> f = tamis.Blocked(items=1000, fpr=0.001)
    /// >>> f.halved().nbytes < f.nbytes
    /// True
    fn halved(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.derived(py, AnyFilter::halved)?)
    }

    /// The smallest filter that halving reaches at a false-positive rate of
    /// at most `fpr`, for filters that received fewer keys than expected.
    ///
    /// >>> import tamis
    /// >>> f = tamis.Blocked(items=100_000, fpr=0.01, foldable=8)
    /// >>> f.add("apple")
    /// True
    /// >>> f.folded_to(0.01).nbytes < 1000
    /// True
    fn folded_to(&self, py: Python<'_>, fpr: f64) -> PyResult<Py<PyAny>> {
        Ok(self.derived(py, |filter| filter.folded_to(fpr))?)
    }

    /// The TinySet of twice the size, with the same keys.
    ///
    /// >>> import tamis
    /// >>> f = tamis.build(["apple"], fpr=0.001)
    /// >>> "apple" in f.doubled()
    /// True
    fn doubled(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.derived(py, AnyFilter::doubled)?)
    }

    /// A copy that can be changed, also of a filter in a file. The blocks are
    /// copied when one of both changes.
    ///
    /// >>> import tamis
    /// >>> f = tamis.build(["apple"], fpr=0.001)
    /// >>> g = f.copy()
    /// >>> g == f and g is not f
    /// True
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Self::new(self.snapshot(py)?, false)?.into_object(py)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    fn __deepcopy__(
        &self,
        py: Python<'_>,
        _memo: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    /// Writes the filter to a file, atomically. `overwrite=False` refuses to
    /// replace one.
    ///
    /// >>> import tamis, tempfile, os.path
    /// >>> path = os.path.join(tempfile.mkdtemp(), "keys.tamis")
    /// >>> tamis.build(["apple"], fpr=0.001).save(path)
    /// >>> "apple" in tamis.open(path)
    /// True
    #[pyo3(signature = (path, *, overwrite = true))]
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        overwrite: bool,
    ) -> PyResult<()> {
        let data = self.snapshot(py)?;
        let saved = py.detach(|| {
            each!(&data, filter => match overwrite {
                true => filter.save(path),
                false => filter.save_new(path),
            })
        });
        Ok(saved.map_err(Failure::from)?)
    }

    /// The filter as the bytes of a file; `bytes(filter)` is the same.
    ///
    /// >>> import tamis
    /// >>> tamis.build(["apple"], fpr=0.001).to_bytes()[1:6]
    /// b'TAMIS'
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let data = self.snapshot(py)?;
        let bytes = py.detach(|| each!(&data, filter => filter.to_bytes()));
        Ok(PyBytes::new(py, &bytes))
    }

    fn __bytes__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.to_bytes(py)
    }

    /// [`to_bytes`] in parts, without a copy of the blocks, for vectored
    /// writes such as `os.writev`. The parts keep their content when the
    /// filter changes: it is copied then.
    ///
    /// >>> import tamis
    /// >>> f = tamis.build(["apple"], fpr=0.001)
    /// >>> b"".join(f.parts()) == f.to_bytes()
    /// True
    fn parts(&self, py: Python<'_>) -> PyResult<Vec<Buffer>> {
        let parts = match self.snapshot(py)? {
            Data::Owned(filter) => py.detach(|| memory::parts(&filter)),
            Data::View(view) => vec![view.image.clone()],
        };
        Ok(parts.into_iter().map(Buffer).collect())
    }

    /// Read-only: of a filter in a file the map itself, else a copy.
    #[expect(unsafe_code, reason = "the buffer protocol of C")]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let py = slf.py();
        let parts = match slf.get().snapshot(py)? {
            Data::Owned(filter) => {
                py.detach(|| vec![Bytes::from(filter.to_bytes())])
            }
            Data::View(view) => vec![view.image.clone()],
        };
        let buffer = Bound::new(py, Buffer(memory::join(parts)))?;
        // SAFETY: `view` is valid, by the protocol. The view refers to
        // `buffer`, not to the filter: an object may pass a view of another
        // one on.
        match unsafe { ffi::PyObject_GetBuffer(buffer.as_ptr(), view, flags) }
        {
            0 => Ok(()),
            _ => Err(PyErr::fetch(py)),
        }
    }

    /// From protocol 5 on, the parts can go out of band.
    fn __reduce_ex__<'py>(
        &self,
        py: Python<'py>,
        protocol: u8,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let load = py
            .import(intern!(py, "tamis._tamis"))?
            .getattr(intern!(py, "_from_parts"))?;
        if protocol < 5 {
            return (load, (self.to_bytes(py)?,)).into_pyobject(py);
        }
        let pickle = py.import(intern!(py, "pickle"))?;
        let pickle = pickle.getattr(intern!(py, "PickleBuffer"))?;
        let parts: Vec<Bound<'py, PyAny>> = self
            .parts(py)?
            .into_iter()
            .map(|part| pickle.call1((part,)))
            .collect::<PyResult<_>>()?;
        (load, PyTuple::new(py, parts)?).into_pyobject(py)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(usize::try_from(self.read(py)?.data.get().len())?)
    }

    fn __eq__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else {
            return Ok(py.NotImplemented());
        };
        let (ours, theirs) = (self.snapshot(py)?, other.get().snapshot(py)?);
        let equal = py.detach(|| {
            each!(&ours, ours => each!(&theirs, theirs => *ours == *theirs))
        });
        Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let state = self.read(py)?;
        let filter = state.data.get();
        let class = classes::name(self.kind);
        Ok(format!(
            "<tamis.{class}: {} of {} keys, fpr {}, {} bytes{}>",
            filter.len(),
            filter.capacity(),
            three_digits(filter.design_fpr()),
            filter.bytes(),
            if state.is_read_only { ", read-only" } else { "" },
        ))
    }

    /// Load, rates and reads, measured on the whole filter: `tamis.Stats`.
    ///
    /// >>> import tamis
    /// >>> stats = tamis.build(range(10_000), fpr=0.001).stats()
    /// >>> stats.items, stats.kind, stats.expected_fpr < 0.001
    /// (10000, 'tinyset', True)
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let state = self.read(py)?;
        let filter = state.data.get();
        let stats = py.detach(|| filter.stats());
        drop(state);
        let fields = PyDict::new(py);
        fields.set_item("kind", stats.kind.name())?;
        fields.set_item("items", stats.items)?;
        fields.set_item("least_items", stats.least_items)?;
        fields.set_item("estimated_items", stats.estimated_items)?;
        fields.set_item("most_items", stats.most_items)?;
        fields.set_item("design_items", stats.design_items)?;
        fields.set_item("bytes", stats.bytes)?;
        fields.set_item("bits_per_key", stats.bits_per_key)?;
        fields.set_item("expected_fpr", stats.expected_fpr)?;
        fields.set_item("design_fpr", stats.design_fpr)?;
        fields.set_item("reads_hit", stats.reads_hit)?;
        fields.set_item("reads_miss", stats.reads_miss)?;
        fields.set_item("saturated_blocks", stats.saturated_blocks)?;
        fields.set_item("over_design", stats.over_design)?;
        py.import("tamis._report")?.getattr("Stats")?.call((), Some(&fields))
    }

    /// Reads the whole filter and checks it: the checksums of one that came
    /// from bytes, and the invariants of its blocks. Raises `FormatError`.
    ///
    /// >>> import tamis
    /// >>> tamis.build(["apple"], fpr=0.001).verify()
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        let state = self.read(py)?;
        let filter = state.data.get();
        Ok(py.detach(|| filter.verify()).map_err(Failure::from)?)
    }

    /// The texts that the filter carries, as a new `dict`.
    ///
    /// >>> import tamis
    /// >>> tamis.build(["apple"], fpr=0.001).metadata
    /// {'key-format': 'lines'}
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = self.read(py)?;
        let metadata = each!(&state.data, filter => filter.metadata());
        let metadata = metadata.map_err(Failure::from)?;
        let entries = PyDict::new(py);
        for (name, value) in metadata.iter() {
            entries.set_item(name, value)?;
        }
        Ok(entries)
    }

    /// Sets a text in the metadata; an empty one removes it.
    ///
    /// >>> import tamis
    /// >>> f = tamis.build(["apple"], fpr=0.001)
    /// >>> f.set_metadata("note", "fruit")
    /// >>> f.metadata["note"]
    /// 'fruit'
    fn set_metadata(
        &self,
        py: Python<'_>,
        name: &str,
        value: &str,
    ) -> PyResult<()> {
        let mut state = self.write(py)?;
        let record = state.record;
        let filter = state.change(record)?;
        filter.set_metadata(name, value).map_err(Failure::from)?;
        state.record = state.data.record()?;
        Ok(())
    }

    /// The kind of filter: `"bloom"`, `"blocked"`, `"split"`, `"balanced"`
    /// or `"tinyset"`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind.name()
    }

    /// Type of the keys: `"integers"`, `"strings or bytes"`, `"bytes"`, a
    /// digest such as `"sha1 digests"`, or `None` before the first key.
    #[getter]
    fn key_type(&self, py: Python<'_>) -> PyResult<Option<String>> {
        use tamis_arrow::KeyFormat;
        let record = self.read(py)?.record;
        let name = record.to_string();
        Ok(match record.format() {
            _ if name.ends_with(" digests") => Some(name),
            None => None,
            Some(KeyFormat::U64le) => Some("integers".into()),
            Some(KeyFormat::Hex) => Some("bytes".into()),
            Some(_) => Some("strings or bytes".into()),
        })
    }

    /// Keys the filter was sized for. More fit, at a higher rate.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.read(py)?.data.get().capacity())
    }

    /// Predicted false-positive rate with `capacity` keys.
    #[getter]
    fn design_fpr(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.read(py)?.data.get().design_fpr())
    }

    /// Length of the file in bytes.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.read(py)?.data.get().bytes())
    }

    /// Name of the hash function: `"xxh3"` or `"siphash"`.
    #[getter]
    fn hash_name(&self) -> &'static str {
        self.hasher.id().name()
    }

    /// Seed of the hash function.
    #[getter]
    fn seed(&self) -> u128 {
        self.hasher.seed()
    }

    /// Whether changes raise `ReadOnlyError`: true for files opened as memory
    /// maps.
    #[getter]
    fn read_only(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.read(py)?.is_read_only)
    }
}

/// Answers in the shape of a numpy array of keys.
fn shaped<'py>(
    keys: &Bound<'py, PyAny>,
    found: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    if !keys.is_instance_of::<PyUntypedArray>() {
        return Ok(found);
    }
    let shape = keys.getattr(intern!(py, "shape"))?;
    if shape.len()? == 1 {
        return Ok(found);
    }
    found.call_method1(intern!(py, "reshape"), (shape,))
}

/// A rate rounded to three digits.
fn three_digits(rate: f64) -> f64 {
    format!("{rate:.2e}").parse().unwrap_or(rate)
}
