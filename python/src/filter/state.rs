//! A filter with the record of its keys, and its bytes.

use std::sync::Arc;

use bytes::Bytes;
use pyo3::PyResult;
use tamis::{AnyFilter, Filter as _, KeyHasher};
use tamis_arrow::{KeyRecord, Value};

use crate::error::{Result, exception, poisoned};

#[derive(Clone)]
pub(super) enum Data {
    /// Changed only without a second owner; `Arc::make_mut` copies else.
    Owned(Arc<AnyFilter>),
    View(Arc<View>),
}

/// A filter in an image.
pub(super) struct View {
    pub(super) filter: AnyFilter<Bytes>,
    pub(super) image: Bytes,
}

impl View {
    pub(super) fn new(image: Bytes) -> Result<Arc<Self>> {
        let filter = AnyFilter::from_bytes(image.clone())?;
        Ok(Arc::new(Self { filter, image }))
    }
}

/// Evaluates an expression on the filter inside.
macro_rules! each {
    ($data:expr, $filter:ident => $body:expr) => {
        match $data {
            $crate::filter::state::Data::Owned($filter) => {
                let $filter: &tamis::AnyFilter = $filter;
                $body
            }
            $crate::filter::state::Data::View(view) => {
                let $filter = &view.filter;
                $body
            }
        }
    };
}
pub(super) use each;

impl Data {
    pub(super) fn get(&self) -> &(dyn tamis::Filter + Send + Sync) {
        match self {
            Self::Owned(filter) => &**filter,
            Self::View(view) => &view.filter,
        }
    }

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        match self {
            Self::Owned(filter) => filter.contains_hash(hash),
            Self::View(view) => view.filter.contains_hash(hash),
        }
    }

    /// The filter, to be changed: copies it if it is a view or has a second
    /// owner.
    pub(super) fn change(&mut self) -> Result<&mut AnyFilter> {
        if let Self::View(view) = self {
            *self = Self::Owned(Arc::new(view.filter.clone().into_owned()?));
        }
        match self {
            Self::Owned(filter) => Ok(Arc::make_mut(filter)),
            Self::View(_) => Err(poisoned().into()),
        }
    }

    pub(super) fn record(&self) -> Result<KeyRecord> {
        let metadata = each!(self, filter => filter.metadata()?);
        Ok(KeyRecord::of(&metadata)?)
    }
}

pub(super) struct State {
    pub(super) data: Data,
    /// The record in the metadata of `data`.
    pub(super) record: KeyRecord,
    /// A memory map of a file is not changed.
    pub(super) is_read_only: bool,
}

impl State {
    #[inline]
    pub(super) fn contains(
        &self,
        hasher: &KeyHasher,
        value: Value<'_>,
    ) -> Result<bool> {
        self.record.admit_value(value)?;
        Ok(self.data.contains(value.hash(hasher)))
    }

    /// [`contains`](Self::contains), with `None` for an error.
    #[inline]
    pub(super) fn peek(
        &self,
        hasher: &KeyHasher,
        value: Value<'_>,
    ) -> Option<bool> {
        let is_key = self.record.admit_value(value).is_ok();
        is_key.then(|| self.data.contains(value.hash(hasher)))
    }

    /// The record that a first key may replace: that of an empty filter
    /// without one.
    pub(super) fn is_open(&self) -> bool {
        self.record.is_empty() && self.data.get().is_empty()
    }

    /// The filter, to be changed by keys with this record. An error if it
    /// has received keys of another type since they were checked.
    pub(super) fn change(
        &mut self,
        record: KeyRecord,
    ) -> Result<&mut AnyFilter> {
        self.check_writable()?;
        let record = self.record.common(record)?;
        let has_record = self.record == record;
        let filter = self.data.change()?;
        if !has_record {
            record.store(filter)?;
            self.record = record;
        }
        Ok(filter)
    }

    pub(super) fn check_writable(&self) -> PyResult<()> {
        match self.is_read_only {
            false => Ok(()),
            true => Err(exception(
                "ReadOnlyError",
                "the filter is a memory map of a file: change filter.copy() \
                 and save that",
            )),
        }
    }
}
