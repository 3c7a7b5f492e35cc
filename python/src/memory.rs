//! Bytes shared with Python without a copy: buffers of Python objects as the
//! memory of filters, and the memory of filters as Python buffers.

use std::ffi::c_int;
use std::sync::Arc;

use arrow_buffer::MutableBuffer;
use bytes::Bytes;
use pyo3::buffer::PyBuffer;
use pyo3::ffi;
use pyo3::prelude::*;
use tamis::AnyFilter;

use crate::error::type_error;

/// The memory of a Python object, which stays alive meanwhile.
struct PythonMemory(PyBuffer<u8>);

impl AsRef<[u8]> for PythonMemory {
    #[expect(unsafe_code, reason = "memory of another language")]
    fn as_ref(&self) -> &[u8] {
        let len = self.0.len_bytes();
        if len == 0 {
            return &[];
        }
        // SAFETY: a contiguous buffer (checked by `from_python`) has
        // `len_bytes` bytes from `buf_ptr` on, and they stay in place until
        // the buffer is released, by the buffer protocol. The caller ensures
        // that they do not change, as the documentation of `from_bytes`
        // requires and as for memory maps of files.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), len) }
    }
}

/// Bytes of an object with the buffer protocol, without a copy.
pub(crate) fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    let buffer = PyBuffer::<u8>::get(object)?;
    if !buffer.is_c_contiguous() {
        return Err(type_error("expected contiguous bytes"));
    }
    Ok(Bytes::from_owner(PythonMemory(buffer)))
}

/// One contiguous image. Several parts are copied into memory aligned to a
/// cache line, one is not.
pub(crate) fn join(mut parts: Vec<Bytes>) -> Bytes {
    if parts.len() == 1 {
        return parts.swap_remove(0);
    }
    struct Aligned(arrow_buffer::Buffer);
    impl AsRef<[u8]> for Aligned {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let bytes = parts.iter().map(Bytes::len).sum();
    let mut joined = MutableBuffer::with_capacity(bytes);
    for part in &parts {
        joined.extend_from_slice(part);
    }
    Bytes::from_owner(Aligned(joined.into()))
}

/// A part of an image in the memory of a filter.
struct Part {
    /// Keeps the memory. Filters behind an `Arc` with a second owner are not
    /// changed: `Arc::make_mut` copies them.
    _filter: Arc<AnyFilter>,
    start: *const u8,
    len: usize,
}

#[expect(unsafe_code, reason = "the pointer is into immutable memory")]
// SAFETY: the memory behind `start` belongs to `_filter`, which is `Send` and
// `Sync` and does not change while this value exists.
unsafe impl Send for Part {}

impl AsRef<[u8]> for Part {
    #[expect(unsafe_code, reason = "a slice beside its owner")]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `parts` took `start` and `len` from a slice borrowed from
        // `*_filter`. The filter is not moved, changed or dropped while
        // `_filter` exists, so the slice is still there.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

/// The image of a filter in parts; the blocks are not copied.
pub(crate) fn parts(filter: &Arc<AnyFilter>) -> Vec<Bytes> {
    let parts = filter.parts().into_iter().map(|part| match part {
        std::borrow::Cow::Owned(bytes) => Bytes::from(bytes),
        std::borrow::Cow::Borrowed(bytes) => Bytes::from_owner(Part {
            _filter: Arc::clone(filter),
            start: bytes.as_ptr(),
            len: bytes.len(),
        }),
    });
    parts.collect()
}

/// Read-only bytes with the buffer protocol: ``memoryview(buffer)``.
#[pyclass(frozen, module = "tamis._tamis")]
pub(crate) struct Buffer(pub(crate) Bytes);

#[pymethods]
impl Buffer {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    #[expect(unsafe_code, reason = "the buffer protocol of C")]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes = &slf.get().0;
        // SAFETY: `view` is valid, by the protocol. The bytes are immutable
        // and stay in place while `slf` exists, of which the view holds a
        // reference. `PyBuffer_FillInfo` refuses writable views, because
        // `readonly` is 1.
        let status = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                bytes.as_ptr().cast_mut().cast(),
                bytes.len() as ffi::Py_ssize_t,
                1,
                flags,
            )
        };
        match status {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}
