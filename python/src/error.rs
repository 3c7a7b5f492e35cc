//! Errors as Python exceptions. The classes are in `_errors.py`: an
//! exception of two bases cannot be created here.

use std::fmt::Display;

use pyo3::exceptions::{
    PyMemoryError, PyOverflowError, PyRuntimeError, PyTypeError,
};
use pyo3::prelude::*;
use tamis::Error;

/// An error of the library, on its path to Python.
pub(crate) enum Failure {
    Filter(tamis::Error),
    Keys(tamis_arrow::Error),
    Python(PyErr),
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl From<tamis::Error> for Failure {
    fn from(error: tamis::Error) -> Self {
        Self::Filter(error)
    }
}

impl From<tamis_arrow::Error> for Failure {
    fn from(error: tamis_arrow::Error) -> Self {
        match error {
            tamis_arrow::Error::Filter(error) => Self::Filter(error),
            error => Self::Keys(error),
        }
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<pyo3::CastError<'_, '_>> for Failure {
    fn from(error: pyo3::CastError<'_, '_>) -> Self {
        Self::Python(error.into())
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Filter(error) => filter_error(error),
            Failure::Keys(error) => keys_error(&error),
            Failure::Python(error) => error,
        }
    }
}

/// An exception of a class in `tamis._errors`.
pub(crate) fn exception(class: &str, message: impl Display) -> PyErr {
    Python::attach(|py| {
        let class = py
            .import("tamis._errors")
            .and_then(|module| module.getattr(class))
            .and_then(|class| class.call1((message.to_string(),)));
        match class {
            Ok(value) => PyErr::from_value(value),
            Err(error) => error,
        }
    })
}

/// The exception for an argument outside its range.
pub(crate) fn invalid(message: impl Display) -> PyErr {
    exception("ArgumentError", message)
}

fn filter_error(error: Error) -> PyErr {
    let class = match error {
        // The class depends on the error number, as for `open()`.
        Error::Io(error) => return error.into(),
        Error::Allocation { .. } => {
            return PyMemoryError::new_err(error.to_string());
        }
        Error::InvalidArgument { .. } | Error::Infeasible(_) => {
            "ArgumentError"
        }
        Error::Mismatch { .. } => "MismatchError",
        Error::Unsupported { .. } | Error::NotFoldable { .. } => {
            "UnsupportedError"
        }
        Error::Busy { .. } | Error::Replaced => "BusyError",
        Error::TooShort { .. }
        | Error::NotTamis { .. }
        | Error::UnsupportedVersion { .. }
        | Error::UnknownKind { .. }
        | Error::WrongKind { .. }
        | Error::UnknownHash { .. }
        | Error::Length { .. }
        | Error::Corrupt { .. }
        | Error::Unfinished
        | Error::Checksum { .. }
        | Error::Inconsistent(_) => "FormatError",
        _ => "TamisError",
    };
    exception(class, error)
}

fn keys_error(error: &tamis_arrow::Error) -> PyErr {
    use tamis_arrow::Error;
    let class = match error {
        Error::DifferentKeys { .. } => "MismatchError",
        Error::UnknownRecord { .. } => "FormatError",
        _ => "KeyTypeError",
    };
    exception(class, error)
}

/// The exception for a number beyond 64 bits.
pub(crate) fn too_large() -> PyErr {
    PyOverflowError::new_err("integer keys have at most 64 bits")
}

/// The exception for a value that is no key.
pub(crate) fn not_a_key(message: impl Display) -> PyErr {
    exception("KeyTypeError", message)
}

pub(crate) fn type_error(message: impl Display) -> PyErr {
    PyTypeError::new_err(message.to_string())
}

/// The exception for a lock that a panic left behind.
pub(crate) fn poisoned() -> PyErr {
    PyRuntimeError::new_err("an earlier operation on this filter failed")
}
