//! Python values and arrays as keys.

use std::ops::Range;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use numpy::{
    PyArray1, PyArrayDescrMethods as _, PyArrayMethods as _, PyReadonlyArray1,
    PyUntypedArray, PyUntypedArrayMethods as _,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyMemoryView, PyString,
};
use pyo3_arrow::input::AnyArray;
use tamis::KeyHasher;
use tamis_arrow::{KeyRecord, KeyType, Keys, Value};

use crate::error::{Failure, Result, not_a_key, too_large, type_error};

/// Keys whose hashes are computed between two checks for signals.
pub(crate) const CHUNK: usize = 1 << 16;

/// Calls `then` with the key in a Python value, or with `None` for `None`.
#[inline]
pub(crate) fn with_value<T>(
    object: &Bound<'_, PyAny>,
    then: impl FnOnce(Option<Value<'_>>) -> Result<T>,
) -> Result<T> {
    if let Ok(text) = object.cast::<PyString>() {
        return then(Some(Value::Text(text.to_str()?)));
    }
    if let Ok(number) = object.cast_exact::<PyInt>() {
        return then(Some(Value::Integer(integer(number)?)));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return then(Some(Value::Binary(bytes.as_bytes())));
    }
    if object.is_none() {
        return then(None);
    }
    if object.is_instance_of::<PyByteArray>()
        || object.is_instance_of::<PyMemoryView>()
    {
        let bytes = object.call_method0(intern!(object.py(), "__bytes__"));
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(_) => object.py().get_type::<PyBytes>().call1((object,))?,
        };
        return then(Some(Value::Binary(bytes.cast::<PyBytes>()?.as_bytes())));
    }
    // Numbers of numpy, and subclasses of `int`.
    let is_number = !object.is_instance_of::<PyBool>()
        && object.hasattr(intern!(object.py(), "__index__"))?
        && !object.hasattr(intern!(object.py(), "dtype"))?
        || is_numpy_integer(object)?;
    match is_number {
        true => then(Some(Value::Integer(integer(object)?))),
        false => Err(refused(object)),
    }
}

fn is_numpy_integer(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let numpy = object.py().import(intern!(object.py(), "numpy"))?;
    object.is_instance(&numpy.getattr(intern!(object.py(), "integer"))?)
}

/// A number in 64 bits: -2^63 to 2^64 - 1.
fn integer(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    match object.extract::<i64>() {
        Ok(number) => Ok(number as u64),
        Err(_) => object.extract::<u64>().map_err(|_| too_large()),
    }
}

/// The error for a value that is no key.
fn refused(object: &Bound<'_, PyAny>) -> Failure {
    let py = object.py();
    let hint = if object.is_instance_of::<PyBool>() {
        DataType::Boolean
    } else if object.is_instance_of::<PyFloat>() {
        DataType::Float64
    } else if object.hasattr(intern!(py, "isoformat")).unwrap_or(false) {
        DataType::Timestamp(TimeUnit::Nanosecond, None)
    } else if object.hasattr(intern!(py, "__iter__")).unwrap_or(false) {
        let name = object.get_type().qualname();
        return tamis_arrow::Error::UnsupportedType {
            found: name.map_or("list".into(), |name| name.to_string()),
            hint: "one value is one key; contains() and update() take several",
        }
        .into();
    } else {
        DataType::Decimal128(1, 0)
    };
    let name = object.get_type().qualname();
    let found = name.map_or("such".into(), |name| name.to_string());
    renamed(&hint, found)
}

/// The error for a type without keys, under its Python name.
fn renamed(data_type: &DataType, name: String) -> Failure {
    match KeyType::of(data_type) {
        Err(tamis_arrow::Error::UnsupportedType { hint, .. }) => {
            tamis_arrow::Error::UnsupportedType { found: name, hint }.into()
        }
        Err(error) => error.into(),
        Ok(_) => not_a_key(format_args!("{name} values are no keys")).into(),
    }
}

/// Several keys, from one Python object.
pub(crate) enum Batch<'py> {
    Numpy(NumpyKeys<'py>),
    /// Chunks of one column.
    Arrow(Vec<ArrayRef>),
    /// Anything that iterates.
    Iterable(Bound<'py, PyAny>),
}

impl<'py> Batch<'py> {
    pub(crate) fn new(object: &Bound<'py, PyAny>) -> Result<Self> {
        let py = object.py();
        if object.is_instance_of::<PyString>()
            || object.is_instance_of::<PyBytes>()
        {
            return Err(not_a_key(
                "one key: use `key in filter` and filter.add(key), or pass a \
                 list",
            )
            .into());
        }
        if let Ok(array) = object.cast::<PyUntypedArray>() {
            return Self::numpy(array);
        }
        if object.hasattr(intern!(py, "__arrow_c_stream__"))?
            || object.hasattr(intern!(py, "__arrow_c_array__"))?
        {
            let array: AnyArray = object.extract()?;
            let array = array.into_chunked_array().map_err(PyErr::from)?;
            return Ok(Self::Arrow(array.into_inner().0));
        }
        if object.hasattr(intern!(py, "__array__"))? {
            let numpy = py.import(intern!(py, "numpy"))?;
            let array =
                numpy.call_method1(intern!(py, "asarray"), (object,))?;
            return Self::numpy(array.cast::<PyUntypedArray>()?);
        }
        Ok(Self::Iterable(object.clone()))
    }

    fn numpy(array: &Bound<'py, PyUntypedArray>) -> Result<Self> {
        let py = array.py();
        if array.hasattr(intern!(py, "mask"))? {
            return Err(not_a_key(
                "masked arrays have rows without a key: pass \
                 array.compressed()",
            )
            .into());
        }
        // Python objects, and the variable-width strings of numpy 2.
        if matches!(array.dtype().kind(), b'O' | b'T') {
            let list = array.call_method0(intern!(py, "ravel"))?;
            let list = list.call_method0(intern!(py, "tolist"))?;
            return Ok(Self::Iterable(list));
        }
        Ok(Self::Numpy(NumpyKeys::new(array)?))
    }

    /// The number of keys; `None` for an iterable.
    pub(crate) fn present(&self) -> Option<u64> {
        match self {
            Self::Numpy(keys) => Some(keys.len() as u64),
            Self::Arrow(chunks) => {
                let present = chunks
                    .iter()
                    .map(|chunk| chunk.len() - chunk.logical_null_count());
                Some(present.sum::<usize>() as u64)
            }
            Self::Iterable(_) => None,
        }
    }

    /// The columns of keys; none of an iterable.
    pub(crate) fn columns(&self, hasher: &KeyHasher) -> Result<Vec<Keys<'_>>> {
        match self {
            Self::Numpy(keys) => Ok(vec![keys.keys(hasher)?]),
            Self::Arrow(chunks) => {
                let keys = chunks.iter();
                let keys = keys.map(|chunk| Keys::from_array(hasher, chunk));
                Ok(keys.collect::<std::result::Result<_, _>>()?)
            }
            Self::Iterable(_) => Ok(Vec::new()),
        }
    }
}

/// A numpy array of integers or of strings of fixed width.
pub(crate) enum NumpyKeys<'py> {
    I8(PyReadonlyArray1<'py, i8>),
    I16(PyReadonlyArray1<'py, i16>),
    I32(PyReadonlyArray1<'py, i32>),
    I64(PyReadonlyArray1<'py, i64>),
    U8(PyReadonlyArray1<'py, u8>),
    U16(PyReadonlyArray1<'py, u16>),
    U32(PyReadonlyArray1<'py, u32>),
    U64(PyReadonlyArray1<'py, u64>),
    /// Dtype `S`: memory and width in bytes.
    Bytes(PyReadonlyArray1<'py, u8>, usize),
    /// Dtype `U`: memory and width in code points.
    Text(PyReadonlyArray1<'py, u32>, usize),
}

impl<'py> NumpyKeys<'py> {
    fn new(array: &Bound<'py, PyUntypedArray>) -> Result<Self> {
        let py = array.py();
        let numpy = py.import(intern!(py, "numpy"))?;
        let dtype = array.dtype();
        let (kind, size) = (dtype.kind(), dtype.itemsize());
        // Contiguous, aligned, and in the byte order of the machine.
        let plain = |wanted: &str| -> PyResult<Bound<'py, PyAny>> {
            let array = numpy.call_method1(
                intern!(py, "require"),
                (array, wanted, ["C", "A"]),
            )?;
            array.call_method1(intern!(py, "reshape"), (-1,))
        };
        macro_rules! integers {
            ($($kind:literal $size:literal $variant:ident $type:ty),*) => {
                match (kind, size) {
                    $(($kind, $size) => {
                        let name = stringify!($type);
                        let name = match name.strip_prefix('i') {
                            Some(bits) => format!("int{bits}"),
                            None => format!("uint{}", &name[1..]),
                        };
                        let array = plain(&name)?;
                        let array = array.cast::<PyArray1<$type>>()?;
                        return Ok(Self::$variant(array.readonly()));
                    })*
                    _ => {}
                }
            };
        }
        integers!(
            b'i' 1 I8 i8, b'i' 2 I16 i16, b'i' 4 I32 i32, b'i' 8 I64 i64,
            b'u' 1 U8 u8, b'u' 2 U16 u16, b'u' 4 U32 u32, b'u' 8 U64 u64
        );
        let memory = |array: Bound<'py, PyAny>, element: &str| {
            array.call_method1(intern!(py, "view"), (element,))
        };
        match kind {
            b'S' => {
                // Strings without bytes take one byte each.
                let width = size.max(1);
                let bytes = memory(plain(&format!("S{width}"))?, "uint8")?;
                let bytes = bytes.cast::<PyArray1<u8>>()?;
                Ok(Self::Bytes(bytes.readonly(), width))
            }
            b'U' => {
                let width = (size / 4).max(1);
                let codes = memory(plain(&format!("U{width}"))?, "uint32")?;
                let codes = codes.cast::<PyArray1<u32>>()?;
                Ok(Self::Text(codes.readonly(), width))
            }
            _ => {
                let name = dtype.str()?.to_string();
                let data_type = match kind {
                    b'b' => DataType::Boolean,
                    b'f' => DataType::Float64,
                    b'M' | b'm' => {
                        DataType::Timestamp(TimeUnit::Nanosecond, None)
                    }
                    b'V' => DataType::Struct(
                        Vec::<arrow_schema::Field>::new().into(),
                    ),
                    _ => DataType::Decimal128(1, 0),
                };
                Err(renamed(&data_type, name))
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        macro_rules! len {
            ($($variant:ident),*) => {
                match self {
                    $(Self::$variant(array) => array.len(),)*
                    Self::Bytes(array, width) => array.len() / width,
                    Self::Text(array, width) => array.len() / width,
                }
            };
        }
        len!(I8, I16, I32, I64, U8, U16, U32, U64)
    }

    fn keys(&self, hasher: &KeyHasher) -> Result<Keys<'_>> {
        macro_rules! keys {
            ($($variant:ident),*) => {
                match self {
                    $(Self::$variant(array) => Ok(Keys::from_integers(
                        hasher,
                        array.as_slice().map_err(type_error)?,
                    )),)*
                    Self::Bytes(array, width) => Ok(Keys::from_padded_bytes(
                        hasher,
                        array.as_slice().map_err(type_error)?,
                        *width,
                    )),
                    Self::Text(array, width) => Ok(Keys::from_padded_text(
                        hasher,
                        array.as_slice().map_err(type_error)?,
                        *width,
                    )?),
                }
            };
        }
        keys!(I8, I16, I32, I64, U8, U16, U32, U64)
    }
}

/// Hashes of the keys of an iterable, in chunks.
pub(crate) struct Hashes<'py> {
    items: Bound<'py, pyo3::types::PyIterator>,
    hasher: KeyHasher,
    /// Record that all keys are checked against.
    pub(crate) record: KeyRecord,
    /// The first key determines the record.
    is_open: bool,
}

impl<'py> Hashes<'py> {
    pub(crate) fn new(
        iterable: &Bound<'py, PyAny>,
        hasher: KeyHasher,
        record: KeyRecord,
        is_open: bool,
    ) -> PyResult<Self> {
        Ok(Self { items: iterable.try_iter()?, hasher, record, is_open })
    }

    /// Appends the hashes of up to [`CHUNK`] keys to `hashes`, and passes the
    /// rows without a key to `absent`. Returns the number of rows; 0 at the
    /// end.
    pub(crate) fn next(
        &mut self,
        hashes: &mut Vec<u64>,
        mut absent: impl FnMut(usize),
    ) -> Result<usize> {
        let Self { items, hasher, record, is_open } = self;
        let mut rows = 0;
        while rows < CHUNK {
            let Some(item) = items.next() else { break };
            with_value(&item?, |value| {
                let Some(value) = value else {
                    absent(rows);
                    return Ok(());
                };
                if std::mem::take(is_open) {
                    *record = KeyRecord::for_type(value.key_type());
                }
                record.admit_value(value)?;
                hashes.push(value.hash(hasher));
                Ok(())
            })?;
            rows += 1;
        }
        self.items.py().check_signals()?;
        Ok(rows)
    }
}

/// Parts of a range of rows, between which signals are checked.
pub(crate) fn pieces(rows: usize) -> impl Iterator<Item = Range<usize>> {
    const PIECE: usize = 1 << 22;
    let starts = (0..rows).step_by(PIECE);
    starts.map(move |start| start..rows.min(start + PIECE))
}
