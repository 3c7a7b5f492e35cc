//! Filters of tamis.

use tamis::{Filter as _, FilterMut};

use super::peers::sbbf_bits_per_key;
use crate::keys::Item;
use crate::subject::{Result, Subject};

/// Builds empty filters of one design.
type Make<F> = Box<dyn Fn() -> tamis::Result<F> + Send>;

/// A kind of filter: its name and design.
pub(crate) trait Kind {
    const NAME: &'static str;

    type Filter: FilterMut + Clone + Send;

    /// Whether it is measured at this rate.
    fn takes_part(_fpr: f64) -> bool {
        true
    }

    fn design(items: u64, fpr: f64) -> Result<Make<Self::Filter>>;
}

pub(crate) struct Bloom;

impl Kind for Bloom {
    const NAME: &'static str = "bloom";

    type Filter = tamis::Bloom;

    fn design(items: u64, fpr: f64) -> Result<Make<tamis::Bloom>> {
        let builder = tamis::Bloom::builder().items(items).fpr(fpr);
        let builder = builder.resolve()?;
        Ok(Box::new(move || builder.build()))
    }
}

pub(crate) struct Blocked;

impl Kind for Blocked {
    const NAME: &'static str = "blocked";

    type Filter = tamis::Blocked;

    fn design(items: u64, fpr: f64) -> Result<Make<tamis::Blocked>> {
        let builder = tamis::Blocked::builder().items(items).fpr(fpr);
        let builder = builder.resolve()?;
        Ok(Box::new(move || builder.build()))
    }
}

/// A blocked filter with the bits per key that sbbf-rs needs for the rate.
pub(crate) struct BlockedAsSbbf;

impl Kind for BlockedAsSbbf {
    const NAME: &'static str = "blocked-as-sbbf";

    type Filter = tamis::Blocked;

    fn design(items: u64, fpr: f64) -> Result<Make<tamis::Blocked>> {
        let builder = tamis::Blocked::builder().items(items);
        let builder =
            builder.bits_per_key(sbbf_bits_per_key(fpr)).resolve()?;
        Ok(Box::new(move || builder.build()))
    }
}

pub(crate) struct Split;

impl Kind for Split {
    const NAME: &'static str = "split";

    type Filter = tamis::Split;

    fn design(items: u64, fpr: f64) -> Result<Make<tamis::Split>> {
        let builder = tamis::Split::builder().items(items).fpr(fpr);
        let builder = builder.resolve()?;
        Ok(Box::new(move || builder.build()))
    }
}

/// With tracking bits, the builder's default.
pub(crate) struct Balanced;

impl Kind for Balanced {
    const NAME: &'static str = "balanced";

    type Filter = tamis::Balanced;

    fn design(items: u64, fpr: f64) -> Result<Make<tamis::Balanced>> {
        let builder = tamis::Balanced::builder().items(items).fpr(fpr);
        let builder = builder.resolve()?;
        Ok(Box::new(move || builder.build()))
    }
}

/// TinySet with default settings.
pub(crate) struct TinySet;

impl Kind for TinySet {
    const NAME: &'static str = "tinyset";

    type Filter = tamis::TinySet;

    fn design(items: u64, fpr: f64) -> Result<Make<tamis::TinySet>> {
        tinyset(tamis::TinySet::builder().items(items).fpr(fpr))
    }
}

/// TinySet with the bits per key that sbbf-rs needs for the rate.
pub(crate) struct TinySetAsSbbf;

impl Kind for TinySetAsSbbf {
    const NAME: &'static str = "tinyset-as-sbbf";

    type Filter = tamis::TinySet;

    /// At lower rates sbbf-rs needs so much memory that a TinySet of that
    /// size would have a far lower rate.
    fn takes_part(fpr: f64) -> bool {
        fpr >= 0.01
    }

    fn design(items: u64, fpr: f64) -> Result<Make<tamis::TinySet>> {
        let builder = tamis::TinySet::builder().items(items);
        tinyset(builder.bits_per_key(sbbf_bits_per_key(fpr)))
    }
}

/// TinySet with blocks of 32 bytes: a little more memory, and blocks that
/// rarely have more than 64 entries.
pub(crate) struct HalfTinySet;

impl Kind for HalfTinySet {
    const NAME: &'static str = "tinyset-half";

    type Filter = tamis::TinySet;

    /// At lower rates 64-byte blocks rarely have more than 64 entries.
    fn takes_part(fpr: f64) -> bool {
        fpr >= 0.01
    }

    fn design(items: u64, fpr: f64) -> Result<Make<tamis::TinySet>> {
        let builder = tamis::TinySet::builder().items(items).fpr(fpr);
        tinyset(builder.block_bits(256))
    }
}

/// TinySet with removals.
pub(crate) struct RemovableTinySet;

impl Kind for RemovableTinySet {
    const NAME: &'static str = "tinyset-removable";

    type Filter = tamis::TinySet;

    fn design(items: u64, fpr: f64) -> Result<Make<tamis::TinySet>> {
        let builder = tamis::TinySet::builder().items(items).fpr(fpr);
        tinyset(builder.removable())
    }
}

fn tinyset(
    builder: tamis::Builder<tamis::TinySet>,
) -> Result<Make<tamis::TinySet>> {
    let builder = builder.resolve()?;
    Ok(Box::new(move || builder.build()))
}

/// A filter of tamis as a subject.
pub(crate) struct Ours<K: Kind>(K::Filter);

impl<K: Kind> Subject for Ours<K> {
    const NAME: &'static str = K::NAME;
    const BATCH: bool = true;

    type Design = Make<K::Filter>;

    fn design(items: u64, fpr: f64) -> Result<Option<Self::Design>> {
        K::takes_part(fpr).then(|| K::design(items, fpr)).transpose()
    }

    fn empty(design: &Self::Design) -> Result<Self> {
        Ok(Self(design()?))
    }

    #[inline(always)]
    fn insert_hash(&mut self, hash: u64) {
        self.0.insert_hash(hash);
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    #[inline(always)]
    fn insert<I: Item>(&mut self, key: &I) {
        self.0.insert(key);
    }

    #[inline(always)]
    fn contains<I: Item>(&self, key: &I) -> bool {
        self.0.contains(key)
    }

    fn insert_hash_batch(&mut self, hashes: &[u64]) {
        self.0.insert_hash_batch(hashes);
    }

    fn insert_batch<I: Item>(&mut self, keys: &[I]) {
        self.0.insert_batch(keys);
    }

    #[inline(always)]
    fn contains_hash_batch(&self, hashes: &[u64], found: &mut Vec<bool>) {
        found.resize(hashes.len(), false);
        self.0.contains_hash_batch(hashes, found);
    }

    #[inline(always)]
    fn contains_batch<I: Item>(&self, keys: &[I], found: &mut Vec<bool>) {
        found.resize(keys.len(), false);
        self.0.contains_batch(keys, found);
    }

    fn relocated(&self) -> Option<Self> {
        Some(Self(self.0.clone()))
    }
}
