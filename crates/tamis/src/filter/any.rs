//! A filter of a kind known only at run time.

use alloc::string::ToString as _;
use alloc::vec::Vec;

use super::{
    Balanced, Blocked, Bloom, Filter, Fold, Grow, Insert, LoadHistogram,
    Merge, Parameter, Remove, Split, Stats, TinySet,
};
use crate::error::{Error, Result};
use crate::format::{Header, Image, Kind, Persist};
use crate::key::KeyHasher;
use crate::storage::Owned;

/// Any filter, as it comes out of a file.
///
/// ```
/// use tamis::{AnyFilter, Filter, Insert, Kind, Persist, Split};
///
/// let mut filter = Split::builder().items(100).fpr(0.01).build()?;
/// filter.insert("apple");
/// let bytes = filter.to_bytes();
///
/// let any = AnyFilter::from_bytes(&bytes[..])?;
/// assert_eq!(any.kind(), Kind::Split);
/// assert!(any.contains("apple"));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AnyFilter<D = Owned> {
    /// A standard Bloom filter.
    Bloom(Bloom<D>),
    /// A blocked Bloom filter.
    Blocked(Blocked<D>),
    /// A split Bloom filter.
    Split(Split<D>),
    /// A balanced Bloom filter.
    Balanced(Balanced<D>),
    /// A filter of fingerprints.
    TinySet(TinySet<D>),
}

/// Evaluates an expression on whichever filter is inside.
macro_rules! each {
    ($any:expr, $filter:ident => $body:expr) => {
        match $any {
            AnyFilter::Bloom($filter) => $body,
            AnyFilter::Blocked($filter) => $body,
            AnyFilter::Split($filter) => $body,
            AnyFilter::Balanced($filter) => $body,
            AnyFilter::TinySet($filter) => $body,
        }
    };
}

#[cfg(feature = "std")]
impl AnyFilter<crate::Mapped> {
    /// Opens a file of any kind as a memory map, in constant time.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], or that of [`from_bytes`](Self::from_bytes).
    ///
    /// ```
    /// assert!(tamis::AnyFilter::open("no such file").is_err());
    /// ```
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::from_bytes(crate::Mapped::open(path)?)
    }
}

impl<D: AsRef<[u8]>> AnyFilter<D> {
    /// Views a filter of any kind in bytes; see
    /// [`BitFilter::from_bytes`](crate::BitFilter::from_bytes).
    ///
    /// # Errors
    ///
    /// One of the format's errors, saying what was expected and found.
    ///
    /// ```
    /// assert!(tamis::AnyFilter::from_bytes([0; 200]).is_err());
    /// ```
    pub fn from_bytes(data: D) -> Result<Self> {
        let header = Header::parse(data.as_ref())?;
        Ok(match header.kind {
            Kind::Bloom => Self::Bloom(Bloom::from_header(&header, data)?),
            Kind::Blocked => {
                Self::Blocked(Blocked::from_header(&header, data)?)
            }
            Kind::Split => Self::Split(Split::from_header(&header, data)?),
            Kind::Balanced => {
                Self::Balanced(Balanced::from_header(&header, data)?)
            }
            Kind::TinySet => {
                Self::TinySet(TinySet::from_header(&header, data)?)
            }
        })
    }

    /// Which kind it is.
    ///
    /// ```
    /// use tamis::{AnyFilter, Bloom, Kind};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(AnyFilter::Bloom(filter).kind(), Kind::Bloom);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn kind(&self) -> Kind {
        match self {
            Self::Bloom(_) => Kind::Bloom,
            Self::Blocked(_) => Kind::Blocked,
            Self::Split(_) => Kind::Split,
            Self::Balanced(_) => Kind::Balanced,
            Self::TinySet(_) => Kind::TinySet,
        }
    }

    /// How full its blocks are, if it is a kind that can tell.
    ///
    /// ```
    /// use tamis::{AnyFilter, Bloom, TinySet};
    /// let filter = TinySet::builder().items(9).fpr(0.1).build()?;
    /// assert!(AnyFilter::TinySet(filter).loads().is_some());
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert!(AnyFilter::Bloom(filter).loads().is_none());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn loads(&self) -> Option<LoadHistogram> {
        match self {
            Self::TinySet(filter) => Some(filter.loads()),
            _ => None,
        }
    }

    /// The false-positive rate that [`merge`](Merge::merge) will give, if
    /// it is a kind that can tell without doing it.
    ///
    /// # Errors
    ///
    /// That of [`merge`](Merge::merge), for a kind that can tell.
    ///
    /// ```
    /// use tamis::{AnyFilter, Bloom, TinySet};
    /// let filter = TinySet::builder().items(9).fpr(0.1).build()?;
    /// let any = AnyFilter::TinySet(filter);
    /// assert_eq!(any.merged_fpr(&any)?, Some(0.0));
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// let any = AnyFilter::Bloom(filter);
    /// assert_eq!(any.merged_fpr(&any)?, None);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn merged_fpr<E: AsRef<[u8]>>(
        &self,
        other: &AnyFilter<E>,
    ) -> Result<Option<f64>> {
        match (self, other) {
            (Self::TinySet(ours), AnyFilter::TinySet(theirs)) => {
                ours.merged_fpr(theirs).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The false-positive rate that [`fold`](Fold::fold) will give, if it
    /// is a kind that can tell without doing it.
    ///
    /// # Errors
    ///
    /// That of [`fold`](Fold::fold), for a kind that can tell.
    ///
    /// ```
    /// use tamis::{AnyFilter, TinySet};
    /// let filter = TinySet::builder().items(1000).fpr(0.1).build()?;
    /// assert_eq!(AnyFilter::TinySet(filter).folded_fpr()?, Some(0.0));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn folded_fpr(&self) -> Result<Option<f64>> {
        match self {
            Self::TinySet(filter) => filter.folded_fpr().map(Some),
            _ => Ok(None),
        }
    }

    /// The false-positive rate that [`grow`](Grow::grow) will give, if it
    /// is a kind that can tell without doing it.
    ///
    /// # Errors
    ///
    /// That of [`grow`](Grow::grow), for a kind that can tell.
    ///
    /// ```
    /// use tamis::{AnyFilter, TinySet};
    /// let filter = TinySet::builder().items(1000).fpr(0.1).build()?;
    /// assert_eq!(AnyFilter::TinySet(filter).grown_fpr()?, Some(0.0));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn grown_fpr(&self) -> Result<Option<f64>> {
        match self {
            Self::TinySet(filter) => filter.grown_fpr().map(Some),
            _ => Ok(None),
        }
    }

    /// Copies it into memory of its own, where it can be changed.
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`] if there is not enough memory.
    ///
    /// ```
    /// use tamis::{AnyFilter, Bloom, Insert, Persist};
    /// let bytes = Bloom::builder().items(9).fpr(0.1).build()?.to_bytes();
    /// let mut any = AnyFilter::from_bytes(&bytes[..])?.into_owned()?;
    /// any.insert("apple");
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn into_owned(self) -> Result<AnyFilter> {
        Ok(match self {
            Self::Bloom(filter) => AnyFilter::Bloom(filter.into_owned()?),
            Self::Blocked(filter) => AnyFilter::Blocked(filter.into_owned()?),
            Self::Split(filter) => AnyFilter::Split(filter.into_owned()?),
            Self::Balanced(filter) => {
                AnyFilter::Balanced(filter.into_owned()?)
            }
            Self::TinySet(filter) => AnyFilter::TinySet(filter.into_owned()?),
        })
    }
}

#[cfg(feature = "std")]
impl AnyFilter {
    /// See
    /// [`BitFilter::insert_parallel_with`](crate::BitFilter::insert_parallel_with).
    ///
    /// ```
    /// use std::num::NonZero;
    /// use tamis::{AnyFilter, Bloom, Filter};
    ///
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// let mut any = AnyFilter::Bloom(filter);
    /// let hasher = *any.hasher();
    /// let keys = ["apple", "pear"].into_iter();
    /// any.insert_parallel_with(keys, NonZero::<usize>::MIN, |key, out| {
    ///     out.push(hasher.hash(key));
    /// });
    /// assert!(any.contains("pear"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn insert_parallel_with<T: Send>(
        &mut self,
        chunks: impl Iterator<Item = T> + Send,
        threads: core::num::NonZero<usize>,
        hash: impl Fn(T, &mut Vec<u64>) + Sync,
    ) {
        each!(self, filter =>
            filter.insert_parallel_with(chunks, threads, hash));
    }
}

impl<D: AsRef<[u8]>> Filter for AnyFilter<D> {
    fn hasher(&self) -> &KeyHasher {
        each!(self, filter => filter.hasher())
    }

    fn contains_hash(&self, hash: u64) -> bool {
        each!(self, filter => filter.contains_hash(hash))
    }

    fn contains_hash_batch(&self, hashes: &[u64], found: &mut Vec<bool>) {
        each!(self, filter => filter.contains_hash_batch(hashes, found));
    }

    fn stats(&self) -> Stats {
        each!(self, filter => filter.stats())
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        each!(self, filter => filter.parameters())
    }

    fn verify(&self) -> Result<()> {
        each!(self, filter => filter.verify())
    }
}

impl Insert for AnyFilter {
    fn insert_hash(&mut self, hash: u64) -> bool {
        each!(self, filter => filter.insert_hash(hash))
    }

    fn insert_hash_batch(&mut self, hashes: &[u64]) {
        each!(self, filter => filter.insert_hash_batch(hashes));
    }
}

impl<D: AsRef<[u8]>> Merge<AnyFilter<D>> for AnyFilter {
    fn merge(&mut self, other: &AnyFilter<D>) -> Result<()> {
        match (self, other) {
            (Self::Bloom(ours), AnyFilter::Bloom(theirs)) => {
                ours.merge(theirs)
            }
            (Self::Blocked(ours), AnyFilter::Blocked(theirs)) => {
                ours.merge(theirs)
            }
            (Self::Split(ours), AnyFilter::Split(theirs)) => {
                ours.merge(theirs)
            }
            (Self::TinySet(ours), AnyFilter::TinySet(theirs)) => {
                ours.merge(theirs)
            }
            (Self::Balanced(_), AnyFilter::Balanced(_)) => {
                Err(order_matters("merge"))
            }
            (ours, theirs) => Err(Error::Mismatch {
                field: "kind",
                ours: ours.kind().to_string(),
                theirs: theirs.kind().to_string(),
            }),
        }
    }
}

/// Where a balanced filter put a key depends on the keys before it: no
/// operation on two blocks gives the block of both key sets.
fn order_matters(operation: &'static str) -> Error {
    Error::Unsupported {
        kind: Kind::Balanced.name(),
        operation,
        why: "where a key is depends on the order of insertion; \
              build it again from the keys",
    }
}

impl Fold for AnyFilter {
    fn fold(&self) -> Result<Self> {
        Ok(match self {
            Self::Bloom(filter) => Self::Bloom(filter.fold()?),
            Self::Blocked(filter) => Self::Blocked(filter.fold()?),
            Self::Split(filter) => Self::Split(filter.fold()?),
            Self::Balanced(_) => return Err(order_matters("fold")),
            Self::TinySet(filter) => Self::TinySet(filter.fold()?),
        })
    }
}

/// Bits that keys share can neither be taken back nor told apart.
fn only_fingerprints(kind: Kind, operation: &'static str) -> Error {
    Error::Unsupported {
        kind: kind.name(),
        operation,
        why: "its bits do not tell whose they are; a tinyset filter can",
    }
}

impl Remove for AnyFilter {
    fn remove_hash(&mut self, hash: u64) -> Result<bool> {
        match self {
            Self::TinySet(filter) => filter.remove_hash(hash),
            other => Err(only_fingerprints(other.kind(), "remove")),
        }
    }
}

impl Grow for AnyFilter {
    fn grow(&self) -> Result<Self> {
        match self {
            Self::TinySet(filter) => Ok(Self::TinySet(filter.grow()?)),
            other => Err(only_fingerprints(other.kind(), "grow")),
        }
    }
}

impl<D: AsRef<[u8]>> Persist for AnyFilter<D> {
    fn image(&self) -> Image<'_> {
        each!(self, filter => filter.image())
    }
}
