//! Keyword arguments of constructors.

use std::num::NonZero;
use std::thread::available_parallelism;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tamis::{
    AnyFilter, Balanced, Builder, HashId, KeyHasher, Kind, Plan, Prefer, Size,
    TinySet,
};

use crate::error::{Failure, Result, invalid};
use crate::filter::Filter;

/// Settings of a filter to be built, as they were passed.
pub(crate) struct Options<'a, 'py> {
    pub(crate) items: Option<&'a Bound<'py, PyAny>>,
    pub(crate) fpr: Option<f64>,
    pub(crate) bits_per_key: Option<f64>,
    /// Chosen for the size if `None`.
    pub(crate) kind: Option<Kind>,
    pub(crate) prefer: &'a str,
    pub(crate) block_bits: u32,
    pub(crate) hash: &'a str,
    pub(crate) seed: Option<u128>,
    pub(crate) foldable: u32,
    pub(crate) removable: bool,
    pub(crate) repeats: bool,
    pub(crate) levels: u32,
    pub(crate) max_reads_miss: Option<f64>,
}

impl Default for Options<'_, '_> {
    fn default() -> Self {
        Self {
            items: None,
            fpr: None,
            bits_per_key: None,
            kind: None,
            prefer: "space",
            block_bits: 512,
            hash: "xxh3",
            seed: None,
            foldable: 0,
            removable: false,
            repeats: false,
            levels: 1,
            max_reads_miss: None,
        }
    }
}

impl Options<'_, '_> {
    /// The number of keys, an integer or a whole float such as 1e9.
    pub(crate) fn items(&self) -> Result<Option<u64>> {
        self.items.map(count).transpose()
    }

    /// An empty filter of a class.
    pub(crate) fn empty(&self, py: Python<'_>) -> Result<Filter> {
        let builder = self.builder(py)?;
        let builder = builder.items(self.items()?.unwrap_or_default());
        Filter::owned(py.detach(|| builder.build())?)
    }

    /// The builder, without the number of keys.
    pub(crate) fn builder(
        &self,
        py: Python<'_>,
    ) -> Result<Builder<AnyFilter>> {
        let size = size(self.fpr, self.bits_per_key)?;
        let is_tinyset = self.removable || self.repeats || self.levels != 1;
        let kind = match self.kind {
            Some(kind) => kind,
            None if is_tinyset => Kind::TinySet,
            None if self.max_reads_miss.is_some() => Kind::Balanced,
            None => {
                Kind::recommended(size, self.block_bits, prefer(self.prefer)?)?
            }
        };
        if is_tinyset && kind != Kind::TinySet {
            return Err(invalid(format_args!(
                "removable, repeats and levels need kind \"tinyset\", not \
                 \"{kind}\""
            ))
            .into());
        }
        if self.max_reads_miss.is_some() && kind != Kind::Balanced {
            return Err(invalid(format_args!(
                "max_reads_miss needs kind \"balanced\", not \"{kind}\""
            ))
            .into());
        }
        let builder = match kind {
            Kind::TinySet => self.tinyset()?.into(),
            Kind::Balanced => match self.max_reads_miss {
                Some(reads) => {
                    Balanced::builder().max_reads_miss(reads).into()
                }
                None => Balanced::builder().into(),
            },
            kind => AnyFilter::builder(kind),
        };
        Ok(builder
            .size(size)
            .block_bits(self.block_bits)
            .foldable(self.foldable)
            .hasher(self.hasher(py)?)
            .resolve()?)
    }

    fn tinyset(&self) -> Result<Builder<TinySet>> {
        let mut builder = TinySet::builder();
        if self.removable {
            builder = builder.removable();
        }
        if self.repeats {
            builder = builder.repeats();
        }
        match self.levels {
            1 => Ok(builder),
            2 => Ok(builder.two_level()),
            _ => Err(invalid("invalid levels: expected 1 or 2").into()),
        }
    }

    fn hasher(&self, py: Python<'_>) -> Result<KeyHasher> {
        let id: HashId = self.hash.parse().map_err(invalid)?;
        let seed = match (self.seed, id) {
            (Some(seed), _) => seed,
            (None, HashId::SipHash13) => {
                let random = py.import("secrets")?;
                random.call_method1("randbits", (128,))?.extract()?
            }
            (None, _) => 0,
        };
        Ok(KeyHasher::new(id, seed)?)
    }
}

/// A rate or bits per key.
fn size(fpr: Option<f64>, bits_per_key: Option<f64>) -> Result<Size> {
    match (fpr, bits_per_key) {
        (Some(fpr), None) => Ok(Size::Fpr(fpr)),
        (None, Some(bits)) => Ok(Size::BitsPerKey(bits)),
        _ => Err(invalid("give either fpr or bits_per_key").into()),
    }
}

fn prefer(name: &str) -> Result<Prefer> {
    match name {
        "space" => Ok(Prefer::Space),
        "speed" => Ok(Prefer::Speed),
        _ => {
            Err(invalid("invalid prefer: expected \"space\" or \"speed\"")
                .into())
        }
    }
}

/// A number of keys.
fn count(items: &Bound<'_, PyAny>) -> Result<u64> {
    if let Ok(items) = items.extract::<u64>() {
        return Ok(items);
    }
    match items.extract::<f64>() {
        // Whole numbers below 2^64 convert exactly.
        Ok(items)
            if items.fract() == 0.0
                && (0.0..18_446_744_073_709_551_616.0).contains(&items) =>
        {
            Ok(items as u64)
        }
        Ok(_) => {
            Err(invalid("invalid items: expected a number of keys").into())
        }
        Err(error) => Err(Failure::Python(error)),
    }
}

/// The number of threads; `None` is all cores.
pub(crate) fn threads(threads: Option<usize>) -> PyResult<NonZero<usize>> {
    match threads {
        None => Ok(available_parallelism().unwrap_or(NonZero::<usize>::MIN)),
        Some(threads) => NonZero::new(threads)
            .ok_or_else(|| invalid("invalid threads: expected 1 or more")),
    }
}

/// The comparison of all kinds, for `tamis.plan`.
#[pyfunction]
pub(crate) fn _plan<'py>(
    py: Python<'py>,
    items: &Bound<'py, PyAny>,
    fpr: Option<f64>,
    bits_per_key: Option<f64>,
    miss_share: f64,
    prefer: &str,
    block_bits: u32,
) -> PyResult<Bound<'py, PyDict>> {
    let size = size(fpr, bits_per_key)?;
    let (items, prefer) = (count(items)?, self::prefer(prefer)?);
    let plan = py
        .detach(|| Plan::new(items, size, block_bits, miss_share, prefer))
        .map_err(Failure::from)?;
    let designs: Vec<Bound<'py, PyDict>> = plan
        .designs
        .iter()
        .map(|design| {
            let row = PyDict::new(py);
            row.set_item("name", design.name())?;
            row.set_item("kind", design.kind.name())?;
            row.set_item("levels", design.levels)?;
            row.set_item("bits_per_key", design.prediction.bits_per_key)?;
            row.set_item("bytes", design.bytes)?;
            row.set_item("fpr", design.prediction.fpr)?;
            row.set_item("probes", design.prediction.probes)?;
            row.set_item("reads_hit", design.prediction.reads_hit)?;
            row.set_item("reads_miss", design.prediction.reads_miss)?;
            row.set_item("reads", design.reads)?;
            row.set_item("removable", design.removable)?;
            row.set_item("mergeable", design.mergeable)?;
            Ok(row)
        })
        .collect::<PyResult<_>>()?;
    let recommended = plan.recommended();
    let recommended =
        plan.designs.iter().position(|design| design == recommended);
    let out = PyDict::new(py);
    out.set_item("items", items)?;
    out.set_item("designs", designs)?;
    out.set_item("recommended", recommended.unwrap_or_default())?;
    out.set_item("reason", &plan.reason)?;
    out.set_item("notes", &plan.notes)?;
    Ok(out)
}
