//! A filter of a kind known only at run time.

use alloc::string::ToString as _;
#[cfg(feature = "std")]
use alloc::vec::Vec;

use tamis_theory::Prediction;

use super::builder::Sizing;
use super::envelope::Envelope;
#[cfg(feature = "std")]
use super::in_place::Changed;
use super::methods::{filter_methods, filter_mut_methods};
use super::{
    Balanced, Blocked, Bloom, Buildable, Builder, Filter, FilterMut, Split,
    TinySet, forward_filter, forward_filter_mut, unsupported,
};
use crate::block::fingerprint::Removal;
use crate::error::{Error, Result};
use crate::format::{Image, ImageHeader, Kind, Persist};
use crate::key::Key;
use crate::memory::Owned;

/// A filter of any kind, for instance out of a file.
///
/// Operations that only some kinds have are methods that return
/// [`Error::Unsupported`] for the others.
///
/// ```
/// use tamis::{AnyFilter, Kind, Split};
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
#[derive(Clone)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "a view allocates nothing, and filters are mostly borrowed"
)]
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

/// Evaluates an expression on the filter inside.
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

/// Evaluates an expression on the filter inside and wraps the result in the
/// same kind.
macro_rules! rewrap {
    ($any:expr, $filter:ident => $body:expr) => {
        match $any {
            AnyFilter::Bloom($filter) => AnyFilter::Bloom($body),
            AnyFilter::Blocked($filter) => AnyFilter::Blocked($body),
            AnyFilter::Split($filter) => AnyFilter::Split($body),
            AnyFilter::Balanced($filter) => AnyFilter::Balanced($body),
            AnyFilter::TinySet($filter) => AnyFilter::TinySet($body),
        }
    };
}

filter_methods!(
    AnyFilter,
    "AnyFilter::builder(tamis::Kind::Blocked).items(100).fpr(0.01)"
);
filter_mut_methods!(
    AnyFilter,
    "AnyFilter::builder(tamis::Kind::Blocked).items(100).fpr(0.01)"
);

impl<'a> AnyFilter<&'a [u8]> {
    #[inline(always)]
    pub(super) fn rebound(&self, data: &'a [u8]) -> Self {
        rewrap!(self, filter => filter.rebound(data))
    }
}

impl<D: AsRef<[u8]>> AnyFilter<D> {
    pub(super) fn from_header(header: &ImageHeader, data: D) -> Result<Self> {
        Ok(match header.kind {
            Kind::Bloom => Self::Bloom(Bloom::from_header(header, data)?),
            Kind::Blocked => {
                Self::Blocked(Blocked::from_header(header, data)?)
            }
            Kind::Split => Self::Split(Split::from_header(header, data)?),
            Kind::Balanced => {
                Self::Balanced(Balanced::from_header(header, data)?)
            }
            Kind::TinySet => {
                Self::TinySet(TinySet::from_header(header, data)?)
            }
        })
    }

    pub(super) fn envelope(&self) -> &Envelope<D> {
        each!(self, filter => filter.envelope())
    }

    pub(super) fn envelope_mut(&mut self) -> &mut Envelope<D> {
        each!(self, filter => filter.envelope_mut())
    }

    /// Inserts keys into a copy of the blocks.
    #[cfg(feature = "std")]
    pub(super) fn insert_into(
        &self,
        blocks: &mut [u8],
        hashes: &[u64],
    ) -> Result<Changed> {
        each!(self, filter => filter.insert_into(blocks, hashes))
    }

    /// Removes one occurrence of each key from a copy of the blocks.
    #[cfg(feature = "std")]
    pub(super) fn remove_from(
        &self,
        blocks: &mut [u8],
        hashes: &[u64],
    ) -> Result<Changed<Vec<Removal>>> {
        match self {
            Self::TinySet(filter) => filter.remove_from(blocks, hashes),
            other => Err(only_fingerprints(other.kind(), "remove")),
        }
    }

    /// The kind of filter.
    ///
    /// ```
    /// use tamis::{AnyFilter, Bloom, Kind};
    /// let filter = Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(AnyFilter::from(filter).kind(), Kind::Bloom);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn kind(&self) -> Kind {
        Filter::kind(self)
    }

    /// Copies the filter into memory of its own, where it can be changed.
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`] if there is not enough memory.
    ///
    /// ```
    /// use tamis::{AnyFilter, Bloom};
    /// let bytes = Bloom::builder().items(9).fpr(0.1).build()?.to_bytes();
    /// let mut any = AnyFilter::from_bytes(&bytes[..])?.into_owned()?;
    /// any.insert("apple");
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn into_owned(self) -> Result<AnyFilter> {
        Ok(rewrap!(self, filter => filter.into_owned()?))
    }
}

impl AnyFilter {
    /// Starts building a filter of this kind, with the settings that all
    /// kinds share. For the settings of one kind, convert its builder:
    /// `TinySet::builder().removable().into()`.
    ///
    /// ```
    /// use tamis::{AnyFilter, Builder, Kind, Removal, TinySet};
    ///
    /// for kind in [Kind::Bloom, Kind::TinySet] {
    ///     let builder = AnyFilter::builder(kind).fpr(0.01);
    ///     let filter = builder.build_from(["apple", "pear"])?;
    ///     assert_eq!(filter.kind(), kind);
    /// }
    /// let builder: Builder<AnyFilter> =
    ///     TinySet::builder().removable().fpr(0.01).into();
    /// let mut filter = builder.build_from(["apple"])?;
    /// assert_eq!(filter.remove("apple")?, Removal::Removed);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn builder(kind: Kind) -> Builder<Self> {
        match kind {
            Kind::Bloom => Bloom::builder().into(),
            Kind::Blocked => Blocked::builder().into(),
            Kind::Split => Split::builder().into(),
            Kind::Balanced => Balanced::builder().into(),
            Kind::TinySet => TinySet::builder().into(),
        }
    }

    #[cfg(feature = "std")]
    fn insert_chunks<T: Send>(
        &mut self,
        chunks: impl Iterator<Item = T> + Send,
        threads: core::num::NonZero<usize>,
        hash: impl Fn(T, &mut Vec<u64>) + Sync,
    ) {
        each!(self, filter => filter.insert_chunks(chunks, threads, hash));
    }

    /// Adds all keys of `other`, without the keys.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] names the field that differs (the kind, for
    /// instance), [`Error::Unsupported`] for a balanced filter; `self` is
    /// unchanged.
    ///
    /// ```
    /// use tamis::{AnyFilter, Kind};
    /// let builder = AnyFilter::builder(Kind::Blocked).items(9).fpr(0.1);
    /// let mut left = builder.build_from(["apple"])?;
    /// left.merge_from(&builder.build_from(["pear"])?)?;
    /// assert!(left.contains("pear"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn merge_from<D: AsRef<[u8]>>(
        &mut self,
        other: &AnyFilter<D>,
    ) -> Result<()> {
        match (self, other) {
            (Self::Bloom(ours), AnyFilter::Bloom(theirs)) => {
                ours.merge_from(theirs)
            }
            (Self::Blocked(ours), AnyFilter::Blocked(theirs)) => {
                ours.merge_from(theirs)
            }
            (Self::Split(ours), AnyFilter::Split(theirs)) => {
                ours.merge_from(theirs)
            }
            (Self::TinySet(ours), AnyFilter::TinySet(theirs)) => {
                ours.merge_from(theirs)
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

    /// The filter of half the size, without the keys.
    ///
    /// # Errors
    ///
    /// [`Error::NotFoldable`] if the number of blocks is odd,
    /// [`Error::Unsupported`] for a balanced filter or a TinySet of two
    /// levels.
    ///
    /// ```
    /// use tamis::{AnyFilter, Kind};
    /// let builder = AnyFilter::builder(Kind::Split).items(1000).fpr(0.01);
    /// let filter = builder.build_from(["apple"])?;
    /// assert!(filter.halved()?.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn halved(&self) -> Result<Self> {
        Ok(match self {
            Self::Bloom(filter) => Self::Bloom(filter.halved()?),
            Self::Blocked(filter) => Self::Blocked(filter.halved()?),
            Self::Split(filter) => Self::Split(filter.halved()?),
            Self::Balanced(_) => return Err(order_matters("fold")),
            Self::TinySet(filter) => Self::TinySet(filter.halved()?),
        })
    }

    /// The smallest filter that halving reaches with an
    /// [`expected_fpr`](crate::Stats::expected_fpr) of at most `fpr`; a copy if
    /// halving once exceeds it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] unless `0 < fpr < 1`,
    /// [`Error::Unsupported`] as in [`halved`](Self::halved).
    ///
    /// ```
    /// use tamis::{AnyFilter, Kind};
    /// let builder = AnyFilter::builder(Kind::Blocked).fpr(0.01).foldable(8);
    /// let filter = builder.items(100_000).build_from(["apple"])?;
    /// assert!(filter.folded_to(0.01)?.bytes() < 1000);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn folded_to(&self, fpr: f64) -> Result<Self> {
        super::folded_to(self, fpr, Self::halved)
    }

    /// The filter of twice the size, without the keys; see
    /// [`TinySet::doubled`].
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] unless it is a TinySet of one level,
    /// [`Error::Allocation`] if there is not enough memory.
    ///
    /// ```
    /// use tamis::{AnyFilter, Kind};
    /// let builder = AnyFilter::builder(Kind::TinySet).fpr(0.01);
    /// let filter = builder.build_from(["apple"])?;
    /// assert!(filter.doubled()?.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn doubled(&self) -> Result<Self> {
        match self {
            Self::TinySet(filter) => Ok(Self::TinySet(filter.doubled()?)),
            other => Err(only_fingerprints(other.kind(), "grow")),
        }
    }

    /// Removes one occurrence of `key`; see [`TinySet::remove`].
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] unless it is a TinySet built as removable.
    ///
    /// ```
    /// use tamis::{AnyFilter, Kind};
    /// let builder = AnyFilter::builder(Kind::Blocked).fpr(0.01);
    /// let mut filter = builder.build_from(["apple"])?;
    /// assert!(filter.remove("apple").is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<Removal> {
        let hash = self.hasher().hash(key);
        self.remove_hash(hash)
    }

    /// [`remove`](Self::remove) by hash.
    ///
    /// # Errors
    ///
    /// That of [`remove`](Self::remove).
    ///
    /// ```
    /// use tamis::{AnyFilter, Removal, TinySet};
    /// let builder = TinySet::builder().items(9).fpr(0.01).removable();
    /// let mut filter = AnyFilter::from(builder.build()?);
    /// assert_eq!(filter.remove_hash(1 << 60)?, Removal::Absent);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn remove_hash(&mut self, hash: u64) -> Result<Removal> {
        match self {
            Self::TinySet(filter) => filter.remove_hash(hash),
            other => Err(only_fingerprints(other.kind(), "remove")),
        }
    }
}

/// The place of a key in a balanced filter depends on the keys before it:
/// no operation on two blocks gives the block of both key sets.
fn order_matters(operation: &'static str) -> Error {
    unsupported(
        Kind::Balanced.name(),
        operation,
        "where a key is depends on the order of insertion; \
         build it again from the keys",
    )
}

/// Keys share the bits of a Bloom kind: clearing those of one key would
/// remove others.
fn only_fingerprints(kind: Kind, operation: &'static str) -> Error {
    unsupported(
        kind.name(),
        operation,
        "keys share its bits; a tinyset filter has an entry per key",
    )
}

impl<D: AsRef<[u8]>> Filter for AnyFilter<D> {
    forward_filter!(each);
}

impl FilterMut for AnyFilter {
    forward_filter_mut!(each);
}

impl<D: AsRef<[u8]>> Persist for AnyFilter<D> {
    fn image(&self) -> Image<'_> {
        each!(self, filter => filter.image())
    }
}

/// A value of every kind of `$trait`-like associated type.
macro_rules! of_every_kind {
    ($(#[$doc:meta])* $name:ident, $assoc:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub enum $name {
            Bloom(<Bloom as Buildable>::$assoc),
            Blocked(<Blocked as Buildable>::$assoc),
            Split(<Split as Buildable>::$assoc),
            Balanced(<Balanced as Buildable>::$assoc),
            TinySet(<TinySet as Buildable>::$assoc),
        }
    };
}
of_every_kind!(
    /// The settings of a kind.
    AnySettings, Settings
);
of_every_kind!(
    /// The design of a kind.
    AnyDesign, Design
);

/// Designs and builds each kind with its own settings.
macro_rules! build_any {
    ($($kind:ident),*) => {
        impl Buildable for AnyFilter {
            type Settings = AnySettings;
            type Design = AnyDesign;

            fn design(
                sizing: &Sizing,
                settings: &AnySettings,
            ) -> Result<AnyDesign> {
                Ok(match settings {
                    $(AnySettings::$kind(settings) => {
                        AnyDesign::$kind($kind::design(sizing, settings)?)
                    })*
                })
            }

            fn prediction(design: &AnyDesign) -> Prediction {
                match design {
                    $(AnyDesign::$kind(design) => $kind::prediction(design),)*
                }
            }

            fn build(
                sizing: &Sizing,
                settings: &AnySettings,
                design: &AnyDesign,
                items: u64,
            ) -> Result<Self> {
                match (settings, design) {
                    $((
                        AnySettings::$kind(settings),
                        AnyDesign::$kind(design),
                    ) => $kind::build(sizing, settings, design, items)
                        .map(Self::$kind),)*
                    // `design` returns the kind of its settings.
                    _ => unreachable!("settings and design of one kind"),
                }
            }
        }

        $(
            impl From<Builder<$kind>> for Builder<AnyFilter> {
                fn from(builder: Builder<$kind>) -> Self {
                    builder.map(AnySettings::$kind, AnyDesign::$kind)
                }
            }

            impl<D> From<$kind<D>> for AnyFilter<D> {
                fn from(filter: $kind<D>) -> Self {
                    Self::$kind(filter)
                }
            }
        )*
    };
}
build_any!(Bloom, Blocked, Split, Balanced, TinySet);
