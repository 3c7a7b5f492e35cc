//! The extension module of the Python package tamis.

mod error;
mod filter;
mod guarded;
mod keys;
mod memory;
mod options;
mod progress;
mod store;

use pyo3::prelude::*;

/// Filters of the Rust library; the package `tamis` exports them.
#[pymodule(gil_used = false)]
mod _tamis {
    #[pymodule_export]
    use super::filter::{
        _from_parts, Balanced, Blocked, Bloom, Filter, Split, TinySet, build,
        from_bytes, open,
    };
    #[pymodule_export]
    use super::memory::Buffer;
    #[pymodule_export]
    use super::options::_plan;
    #[pymodule_export]
    use super::store::{Records, Store};
    #[pymodule_export]
    use pyo3_arrow::PyArray;
}
