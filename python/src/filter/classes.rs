//! The subclasses of `Filter`, one per kind.

use pyo3::prelude::*;
use tamis::Kind;

use super::Filter;
use crate::options::Options;

/// Declares a class per kind; `$option` are its own keyword arguments.
macro_rules! classes {
    ($(
        #[doc = $doc:literal]
        $name:ident($($option:ident: $type:ty = $default:tt),*);
    )*) => {
        $(
            #[doc = $doc]
            ///
            /// Sized for `items` keys by the false-positive rate `fpr` or by
            /// `bits_per_key`; `tamis.plan` compares the kinds.
            #[doc = concat!(
                "\n>>> import tamis\n>>> f = tamis.", stringify!($name),
                "(items=1000, fpr=0.01)\n>>> f.add(\"apple\")\nTrue\n\
                 >>> \"apple\" in f\nTrue"
            )]
            #[pyclass(extends = Filter, frozen, module = "tamis")]
            pub(crate) struct $name;

            #[pymethods]
            impl $name {
                #[new]
                #[pyo3(signature = (
                    items, fpr = None, *, bits_per_key = None,
                    block_bits = 512, hash = "xxh3", seed = None,
                    $($option = $default),*
                ))]
                #[expect(clippy::too_many_arguments, reason = "keywords")]
                fn new(
                    py: Python<'_>,
                    items: &Bound<'_, PyAny>,
                    fpr: Option<f64>,
                    bits_per_key: Option<f64>,
                    block_bits: u32,
                    hash: &str,
                    seed: Option<u128>,
                    $($option: $type),*
                ) -> PyResult<PyClassInitializer<Self>> {
                    let options = Options {
                        items: Some(items),
                        fpr,
                        bits_per_key,
                        kind: Some(Kind::$name),
                        block_bits,
                        hash,
                        seed,
                        $($option,)*
                        ..Options::default()
                    };
                    let filter = PyClassInitializer::from(options.empty(py)?);
                    Ok(filter.add_subclass(Self))
                }
            }
        )*

        /// The Python object, of the class of its kind.
        pub(super) fn into_object(
            filter: Filter,
            py: Python<'_>,
        ) -> PyResult<Py<PyAny>> {
            let kind = filter.kind;
            let base = PyClassInitializer::from(filter);
            Ok(match kind {
                $(Kind::$name => {
                    Py::new(py, base.add_subclass($name))?.into_any()
                })*
                _ => Py::new(py, base)?.into_any(),
            })
        }

        /// Name of the class of a kind.
        pub(super) fn name(kind: Kind) -> &'static str {
            match kind {
                $(Kind::$name => stringify!($name),)*
                _ => "Filter",
            }
        }
    };
}
classes! {
    #[doc = "The standard Bloom filter: the smallest of the Bloom kinds, and the one that reads most cache lines."]
    Bloom(foldable: u32 = 0);
    #[doc = "A blocked Bloom filter: one cache line per lookup, the fastest."]
    Blocked(foldable: u32 = 0);
    #[doc = "A split Bloom filter: two cache lines for a member, about one for others."]
    Split(foldable: u32 = 0);
    #[doc = "A balanced Bloom filter: the lowest rates above 20 bits per key. It cannot be merged."]
    Balanced(max_reads_miss: Option<f64> = None);
    #[doc = "A filter of fingerprints: the least memory at rates from 3 % to 0.01 %, one cache line per lookup; can remove keys and grow."]
    TinySet(
        foldable: u32 = 0,
        removable: bool = false,
        repeats: bool = false,
        levels: u32 = 1
    );
}
