//! Reports of long insertions.

use pyo3::intern;
use pyo3::prelude::*;

use crate::error::Result;

/// A callable, a progress bar, or nothing.
pub(crate) struct Progress<'py>(Option<Bound<'py, PyAny>>);

impl<'py> Progress<'py> {
    pub(crate) fn new(
        py: Python<'py>,
        wanted: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let Some(wanted) = wanted else { return Ok(Self(None)) };
        Ok(Self(match wanted.extract::<bool>() {
            Ok(false) => None,
            Ok(true) => {
                let module = py.import(intern!(py, "tamis._progress"))?;
                Some(module.call_method0(intern!(py, "Bar"))?)
            }
            Err(_) => Some(wanted),
        }))
    }

    pub(crate) fn report(&self, done: u64, total: Option<u64>) -> Result<()> {
        if let Some(callable) = &self.0 {
            callable.call1((done, total))?;
        }
        Ok(())
    }

    pub(crate) fn end(&self) -> Result<()> {
        if let Some(callable) = &self.0 {
            if callable.hasattr(intern!(callable.py(), "close"))? {
                callable.call_method0(intern!(callable.py(), "close"))?;
            }
        }
        Ok(())
    }
}
