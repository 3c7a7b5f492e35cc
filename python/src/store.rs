//! The key-value store.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::{PyFileNotFoundError, PyKeyError, PyMemoryError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::{MutexExt as _, RwLockExt as _};
use pyo3::types::{PyBytes, PyList, PyTuple};
use tamis_arrow::Value;
use tamis_store::{Batch, Durability, Error, Options};

use crate::error::{
    Failure, Result, exception, invalid, not_a_key, poisoned, type_error,
};
use crate::keys::with_value;

/// Writes applied together, at most.
const WRITES_PER_BATCH: usize = 1 << 14;

/// Bytes of keys and values, after which they are applied.
const BYTES_PER_BATCH: usize = 1 << 24;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let class = match error {
            // The class depends on the error number, as for `open()`.
            Error::Io { source, .. } => return Self::Python(source.into()),
            Error::Filter(error) => return error.into(),
            Error::Ram { .. } => {
                return PyMemoryError::new_err(error.to_string()).into();
            }
            Error::NotFound => {
                return PyFileNotFoundError::new_err(error.to_string()).into();
            }
            Error::Locked => "BusyError",
            Error::UnsupportedVersion { .. } | Error::Corrupt { .. } => {
                "FormatError"
            }
            Error::ReadOnly => "ReadOnlyError",
            Error::InvalidArgument { .. } | Error::TooLong { .. } => {
                "ArgumentError"
            }
            _ => "TamisError",
        };
        Self::Python(exception(class, error))
    }
}

/// A key-value store in a directory, with the operators of a `dict`: one read
/// of the disk for a present key, almost none for an absent one, a fixed
/// amount of memory (`ram`, in bytes).
///
/// The store is created if the directory has none. Keys and values are
/// `bytes` or `str`, which stands for its UTF-8 form; integer keys are 8
/// bytes, little-endian. One process writes to a store. `durability` is
/// `"always"`, `"none"`, or the number of seconds after which a write is on the
/// disk at the latest. All methods release the GIL, and any number of threads
/// may use a store.
///
/// >>> import tamis, tempfile
/// >>> store = tamis.Store(tempfile.mkdtemp())
/// >>> store["apple"] = "red"
/// >>> store["apple"], "pear" in store
/// (b'red', False)
/// >>> store.get_many(["apple", "pear"])
/// [b'red', None]
/// >>> store.close()
#[pyclass(frozen, module = "tamis")]
pub(crate) struct Store {
    /// `None` after `close`.
    store: RwLock<Option<Arc<tamis_store::Store>>>,
}

impl Store {
    fn get_store(&self, py: Python<'_>) -> Result<Arc<tamis_store::Store>> {
        let store = self.store.read_py_attached(py).map_err(|_| poisoned())?;
        match &*store {
            Some(store) => Ok(Arc::clone(store)),
            None => Err(exception("TamisError", "the store is closed").into()),
        }
    }

    fn look_up(&self, key: &Bound<'_, PyAny>) -> Result<Option<Vec<u8>>> {
        let py = key.py();
        let store = self.get_store(py)?;
        let key = key_bytes(key)?;
        Ok(py.detach(|| store.get(&key))?)
    }
}

/// The bytes of a key.
fn key_bytes(key: &Bound<'_, PyAny>) -> Result<Vec<u8>> {
    with_value(key, |value| match value {
        Some(Value::Text(text)) => Ok(text.as_bytes().to_vec()),
        Some(Value::Binary(bytes)) => Ok(bytes.to_vec()),
        Some(Value::Integer(number)) => Ok(number.to_le_bytes().to_vec()),
        None => Err(not_a_key("None is no key").into()),
    })
}

/// The bytes of a value.
fn value_bytes(value: &Bound<'_, PyAny>) -> Result<Vec<u8>> {
    with_value(value, |value| match value {
        Some(Value::Text(text)) => Ok(text.as_bytes().to_vec()),
        Some(Value::Binary(bytes)) => Ok(bytes.to_vec()),
        _ => Err(type_error("values are bytes or str").into()),
    })
}

/// The values of a numpy array, an Arrow array or a series as Python objects,
/// or the iterable itself.
fn rows<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    for method in ["to_pylist", "to_list", "tolist"] {
        if keys.hasattr(method)? {
            return keys.call_method0(method);
        }
    }
    if keys.hasattr(intern!(py, "__arrow_c_array__"))? {
        let array = py.import(intern!(py, "pyarrow"))?;
        let array = array.call_method1(intern!(py, "array"), (keys,))?;
        return array.call_method0(intern!(py, "to_pylist"));
    }
    Ok(keys.clone())
}

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (
        path, *, ram = 268_435_456, absent_reads = None, durability = None
    ))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        ram: u64,
        absent_reads: Option<f64>,
        durability: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut options = Options::new().ram(ram);
        if let Some(share) = absent_reads {
            options = options.absent_reads(share);
        }
        if let Some(when) = durability {
            options = options.durability(self::durability(when)?);
        }
        let opened =
            py.detach(|| match tamis_store::Store::open(&path, &options) {
                Err(Error::NotFound) => {
                    tamis_store::Store::create(&path, &options)
                }
                opened => opened,
            });
        let store = opened.map_err(Failure::from)?;
        Ok(Self { store: RwLock::new(Some(Arc::new(store))) })
    }

    fn __getitem__<'py>(
        &self,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        match self.look_up(key)? {
            Some(value) => Ok(PyBytes::new(key.py(), &value)),
            None => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    /// The value of a key, or `default`.
    ///
    /// >>> import tamis, tempfile
    /// >>> store = tamis.Store(tempfile.mkdtemp())
    /// >>> store.get("apple", b"?")
    /// b'?'
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match self.look_up(key)? {
            Some(value) => Some(PyBytes::new(key.py(), &value).into_any()),
            None => default,
        })
    }

    /// The values of several keys, `None` for absent ones: a list, or an
    /// Arrow array for an Arrow array of keys.
    ///
    /// >>> import numpy, tamis, tempfile
    /// >>> store = tamis.Store(tempfile.mkdtemp())
    /// >>> store[7] = "seven"
    /// >>> store.get_many(numpy.arange(6, 8))
    /// [None, b'seven']
    fn get_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = keys.py();
        let store = self.get_store(py)?;
        let mut wanted = Vec::new();
        for key in rows(keys)?.try_iter()? {
            let key = key?;
            // A null has no value.
            wanted.push(match key.is_none() {
                true => None,
                false => Some(key_bytes(&key)?),
            });
        }
        let present: Vec<&Vec<u8>> = wanted.iter().flatten().collect();
        let found =
            py.detach(|| store.get_many(&present)).map_err(Failure::from)?;
        let mut found = found.into_iter();
        let values = wanted.iter().map(|key| {
            let value = key.as_ref().and_then(|_| found.next().flatten());
            value.map(|value| PyBytes::new(py, &value))
        });
        let values: Vec<Option<Bound<'py, PyBytes>>> = values.collect();
        let values = PyList::new(py, values)?.into_any();
        let output = py.import(intern!(py, "tamis._output"))?;
        output.call_method1(intern!(py, "values_like"), (keys, values))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let store = self.get_store(key.py())?;
        let bytes = key_bytes(key)?;
        let found = key.py().detach(|| store.contains(&bytes));
        Ok(found.map_err(Failure::from)?)
    }

    fn __setitem__(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let store = self.get_store(key.py())?;
        let (bytes, value) = (key_bytes(key)?, value_bytes(value)?);
        let put = key.py().detach(|| store.put(&bytes, &value));
        Ok(put.map_err(Failure::from)?)
    }

    /// Removes a key. Reads it first, to raise `KeyError`; `discard` does not.
    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if !self.__contains__(key)? {
            return Err(PyKeyError::new_err(key.clone().unbind()));
        }
        self.discard(key)
    }

    /// Removes a key if it is in the store, without reading it.
    ///
    /// >>> import tamis, tempfile
    /// >>> store = tamis.Store(tempfile.mkdtemp())
    /// >>> store.discard("apple")
    fn discard(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let store = self.get_store(key.py())?;
        let bytes = key_bytes(key)?;
        let deleted = key.py().detach(|| store.delete(&bytes));
        Ok(deleted.map_err(Failure::from)?)
    }

    /// Writes all pairs of a mapping or of an iterable of pairs, in batches of
    /// which each is applied completely or not at all.
    ///
    /// >>> import tamis, tempfile
    /// >>> store = tamis.Store(tempfile.mkdtemp())
    /// >>> store.update({"apple": "red", "pear": "green"})
    /// >>> store.update(zip(range(3), ["a", "b", "c"]))
    /// >>> store[1]
    /// b'b'
    fn update(
        &self,
        py: Python<'_>,
        pairs: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let pairs = match pairs.hasattr(intern!(py, "keys"))? {
            true => pairs.call_method0(intern!(py, "items"))?,
            false => pairs.clone(),
        };
        let store = self.get_store(py)?;
        let write = |batch: &mut Batch| -> Result<()> {
            py.detach(|| store.write_batch(batch))?;
            batch.clear();
            Ok(py.check_signals()?)
        };
        let (mut batch, mut bytes) = (Batch::new(), 0);
        for pair in pairs.try_iter()? {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
                pair?.extract()?;
            let (key, value) = (key_bytes(&key)?, value_bytes(&value)?);
            bytes += key.len() + value.len();
            batch.put(key, value).map_err(Failure::from)?;
            if batch.len() == WRITES_PER_BATCH || bytes >= BYTES_PER_BATCH {
                write(&mut batch)?;
                bytes = 0;
            }
        }
        if !batch.is_empty() {
            write(&mut batch)?;
        }
        Ok(())
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Records> {
        self.records(py, Part::Key)
    }

    /// All keys, as `bytes`, in the order of a hash, of the moment of the call.
    ///
    /// >>> import tamis, tempfile
    /// >>> store = tamis.Store(tempfile.mkdtemp())
    /// >>> store["apple"] = "red"
    /// >>> list(store.keys()), list(store.values()), list(store.items())
    /// ([b'apple'], [b'red'], [(b'apple', b'red')])
    fn keys(&self, py: Python<'_>) -> PyResult<Records> {
        self.records(py, Part::Key)
    }

    /// All values, in the order of `keys`.
    fn values(&self, py: Python<'_>) -> PyResult<Records> {
        self.records(py, Part::Value)
    }

    /// All pairs of key and value.
    fn items(&self, py: Python<'_>) -> PyResult<Records> {
        self.records(py, Part::Pair)
    }

    /// Makes all writes durable.
    ///
    /// >>> import tamis, tempfile
    /// >>> tamis.Store(tempfile.mkdtemp()).flush()
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let store = self.get_store(py)?;
        Ok(py.detach(|| store.flush()).map_err(Failure::from)?)
    }

    /// Makes all writes durable and closes the store, for other processes to
    /// open. `with tamis.Store(path) as store:` closes it at the end.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let store = {
            let mut store =
                self.store.write_py_attached(py).map_err(|_| poisoned())?;
            store.take()
        };
        let Some(store) = store else { return Ok(()) };
        let closed = py.detach(|| {
            let flushed = store.flush();
            drop(store);
            flushed
        });
        Ok(closed.map_err(Failure::from)?)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        self.close(py)
    }
}

impl Store {
    fn records(&self, py: Python<'_>, part: Part) -> PyResult<Records> {
        let store = self.get_store(py)?;
        let snapshot =
            py.detach(|| store.snapshot()).map_err(Failure::from)?;
        // The records borrow their snapshot: a thread keeps both.
        let (send, receive) = sync_channel(4);
        thread::spawn(move || {
            let mut records = snapshot.iter();
            loop {
                let chunk: Vec<Record> =
                    records.by_ref().take(RECORDS).collect();
                let is_last = chunk.len() < RECORDS;
                if send.send(chunk).is_err() || is_last {
                    return;
                }
            }
        });
        let records = (receive, Vec::new().into_iter());
        Ok(Records { part, records: Mutex::new(records) })
    }
}

/// Records read at a time.
const RECORDS: usize = 256;

type Record = tamis_store::Result<(Vec<u8>, Vec<u8>)>;

#[derive(Clone, Copy)]
enum Part {
    Key,
    Value,
    Pair,
}

/// An iterator over the records of a store.
#[pyclass(frozen, module = "tamis._tamis")]
pub(crate) struct Records {
    part: Part,
    /// Chunks of records, and the rest of the current one.
    records: Mutex<(Receiver<Vec<Record>>, std::vec::IntoIter<Record>)>,
}

#[pymethods]
impl Records {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut records = self
            .records
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner);
        let (receive, chunk) = &mut *records;
        // A unique reference: receivers are `Send`, but not `Sync`.
        let receive: &mut Receiver<_> = receive;
        let mut record = chunk.next();
        if record.is_none() {
            if let Ok(next) = py.detach(move || receive.recv()) {
                *chunk = next.into_iter();
                record = chunk.next();
            }
        }
        let Some(record) = record else { return Ok(None) };
        let (key, value) = record.map_err(Failure::from)?;
        Ok(Some(match self.part {
            Part::Key => PyBytes::new(py, &key).into_any(),
            Part::Value => PyBytes::new(py, &value).into_any(),
            Part::Pair => {
                let pair = (PyBytes::new(py, &key), PyBytes::new(py, &value));
                pair.into_pyobject(py)?.into_any()
            }
        }))
    }
}

fn durability(when: &Bound<'_, PyAny>) -> PyResult<Durability> {
    if let Ok(name) = when.extract::<&str>() {
        return match name {
            "always" => Ok(Durability::Always),
            "none" => Ok(Durability::None),
            _ => Err(invalid(
                "invalid durability: expected \"always\", \"none\" or seconds",
            )),
        };
    }
    Duration::try_from_secs_f64(when.extract()?)
        .map(Durability::Interval)
        .map_err(|error| invalid(format_args!("invalid durability: {error}")))
}
