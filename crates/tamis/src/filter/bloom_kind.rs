//! The public face of the Bloom kinds: one type per [`Layout`], each around
//! the same engine.
//!
//! [`Layout`]: super::bit_filter::Layout

/// Defines a Bloom kind: the type, its methods and its traits.
macro_rules! bloom_kind {
    ($(#[$doc:meta])* $name:ident, $layout:ident, $new:literal) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name<D = $crate::Owned>(
            pub(super) $crate::filter::bit_filter::BitFilter<$layout, D>,
        );

        $crate::filter::methods::filter_methods!($name, $new);
        $crate::filter::methods::filter_mut_methods!($name, $new);

        impl $name {
            /// Starts building a filter.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let filter = ", $new, ".build()?;")]
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[must_use]
            pub fn builder() -> $crate::Builder<Self> {
                $crate::Builder::new(None)
            }

            /// Adds all keys of `other`, without the keys: the result is
            /// that of inserting both key sets into one filter.
            ///
            /// # Errors
            ///
            /// [`Error::Mismatch`](crate::Error::Mismatch) names the field
            /// that differs; `self` is unchanged.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let builder = ", $new, ";")]
            /// let (mut left, mut right) = (builder.build()?, builder.build()?);
            /// left.insert("apple");
            /// right.insert("pear");
            /// left.merge_from(&right)?;
            /// assert!(left.contains("apple") && left.contains("pear"));
            ///
            /// let larger = builder.items(2000).build()?;
            /// let error = left.merge_from(&larger).unwrap_err().to_string();
            /// assert!(error.contains("blocks differs"), "{error}");
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn merge_from<D: AsRef<[u8]>>(
                &mut self,
                other: &$name<D>,
            ) -> $crate::Result<()> {
                self.0.merge_from(&other.0)
            }

            /// The filter of half the size, without the keys: the result is
            /// that of inserting them into a filter of half the size.
            ///
            /// # Errors
            ///
            /// [`Error::NotFoldable`](crate::Error::NotFoldable) if the
            /// number of blocks is odd; see
            /// [`Builder::foldable`](crate::Builder::foldable).
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".items(1000).build()?;")]
            /// filter.insert("apple");
            /// let half = filter.halved()?;
            /// assert!(half.contains("apple"));
            /// assert_eq!(2 * half.block_count(), filter.block_count());
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn halved(&self) -> $crate::Result<Self> {
                self.0.halved().map(Self)
            }

            /// The smallest filter that halving reaches with an
            /// [`expected_fpr`](crate::Stats::expected_fpr) of at most
            /// `fpr`; a copy if halving once exceeds it.
            ///
            /// Build large, insert, then fold: for sets whose number of
            /// keys shows only at the end.
            ///
            /// # Errors
            ///
            /// [`Error::InvalidArgument`](crate::Error::InvalidArgument)
            /// unless `0 < fpr < 1`.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let builder = ", $new, ".items(100_000).foldable(8);")]
            /// let mut filter = builder.build()?;
            /// filter.extend(0..1000u64);
            /// let folded = filter.folded_to(0.02)?;
            /// assert!(folded.bytes() < filter.bytes() / 30);
            /// assert!(folded.stats().expected_fpr < 0.02);
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn folded_to(&self, fpr: f64) -> $crate::Result<Self> {
                $crate::filter::folded_to(self, fpr, Self::halved)
            }

            #[cfg(feature = "std")]
            pub(super) fn insert_chunks<T: Send>(
                &mut self,
                chunks: impl Iterator<Item = T> + Send,
                threads: core::num::NonZero<usize>,
                hash: impl Fn(T, &mut alloc::vec::Vec<u64>) + Sync,
            ) {
                self.0.insert_chunks(chunks, threads, hash);
            }
        }

        impl<'a> $name<&'a [u8]> {
            #[inline(always)]
            pub(super) fn rebound(&self, data: &'a [u8]) -> Self {
                Self(self.0.rebound(data))
            }
        }

        impl<D: AsRef<[u8]>> $name<D> {
            pub(super) fn from_header(
                header: &$crate::format::ImageHeader,
                data: D,
            ) -> $crate::Result<Self> {
                use $crate::filter::bit_filter::BitFilter;
                BitFilter::from_header(header, data).map(Self)
            }

            pub(super) fn envelope(
                &self,
            ) -> &$crate::filter::envelope::Envelope<D> {
                &self.0.envelope
            }

            pub(super) fn envelope_mut(
                &mut self,
            ) -> &mut $crate::filter::envelope::Envelope<D> {
                &mut self.0.envelope
            }

            #[cfg(feature = "std")]
            pub(super) fn insert_into(
                &self,
                blocks: &mut [u8],
                hashes: &[u64],
            ) -> $crate::Result<$crate::filter::in_place::Changed> {
                Ok(self.0.insert_into(blocks, hashes))
            }

            /// Copies the filter into memory of its own, where it can be
            /// changed.
            ///
            /// # Errors
            ///
            /// [`Error::Allocation`](crate::Error::Allocation) if there is
            /// not enough memory.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let bytes = ", $new, ".build()?.to_bytes();")]
            #[doc = concat!("let view = ", stringify!($name), "::from_bytes(&bytes[..])?;")]
            /// let mut filter = view.into_owned()?;
            /// filter.insert("apple");
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn into_owned(self) -> $crate::Result<$name> {
                self.0.into_owned().map($name)
            }

            /// Number of blocks (m); of 512-bit lines in a standard filter.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let builder = ", stringify!($name), "::builder().items(1024);")]
            /// let filter = builder.bits_per_key(16.0).build()?;
            /// assert_eq!(filter.block_count(), 1024 * 16 / 512);
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[must_use]
            pub fn block_count(&self) -> u64 {
                self.0.geometry().blocks
            }

            /// Bits in a block (B).
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("assert_eq!(", $new, ".build()?.block_bits(), 512);")]
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[must_use]
            pub fn block_bits(&self) -> u32 {
                self.0.geometry().block_bits
            }

            /// Bits set per key (k), in all of its blocks together.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("assert!(", $new, ".build()?.probes() > 2);")]
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[must_use]
            pub fn probes(&self) -> u32 {
                self.0.geometry().probes
            }
        }

        impl<D: AsRef<[u8]>> $crate::Filter for $name<D> {
            $crate::filter::forward_filter!(inner);
        }

        impl $crate::FilterMut for $name {
            $crate::filter::forward_filter_mut!(inner_mut);
        }

        impl<D: AsRef<[u8]>> $crate::format::Persist for $name<D> {
            fn image(&self) -> $crate::format::Image<'_> {
                $crate::format::Persist::image(&self.0)
            }
        }

        impl $crate::filter::builder::Buildable for $name {
            type Settings = Option<u32>;
            type Design = tamis_theory::Prediction;

            fn design(
                sizing: &$crate::filter::builder::Sizing,
                probes: &Option<u32>,
            ) -> $crate::Result<tamis_theory::Prediction> {
                $crate::filter::builder::bloom_design::<$layout>(
                    sizing, *probes,
                )
            }

            fn prediction(
                design: &tamis_theory::Prediction,
            ) -> tamis_theory::Prediction {
                *design
            }

            fn build(
                sizing: &$crate::filter::builder::Sizing,
                _probes: &Option<u32>,
                design: &tamis_theory::Prediction,
                items: u64,
            ) -> $crate::Result<Self> {
                $crate::filter::builder::bloom_build(sizing, design, items)
                    .map(Self)
            }
        }

        impl $crate::Builder<$name> {
            /// Bits set per key (k), 1 to 32, instead of the best number
            /// for the bits per key. Needs
            /// [`bits_per_key`](Self::bits_per_key).
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let builder = ", stringify!($name), "::builder().items(9);")]
            /// let filter = builder.bits_per_key(8.0).probes(3).build()?;
            /// assert_eq!(filter.probes(), 3);
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[must_use]
            pub fn probes(self, probes: u32) -> Self {
                self.with(|settings| *settings = Some(probes))
            }
        }

        #[cfg(feature = "std")]
        impl $crate::filter::shared::Shareable for $name {
            type State = $crate::filter::shared::AtomicBits<$layout>;

            fn into_shared(self) -> Self::State {
                self.0.into()
            }

            fn from_shared(state: Self::State) -> Self {
                Self(state.into())
            }

            fn snapshot(state: &Self::State) -> $crate::Result<Self> {
                state.copy().map(Self)
            }

            fn save_to(&self, path: &std::path::Path) -> $crate::Result<()> {
                self.save(path)
            }
        }
    };
}
pub(super) use bloom_kind;

/// Evaluates an expression on the engine inside.
macro_rules! inner {
    ($kind:expr, $filter:ident => $body:expr) => {{
        let $filter = &$kind.0;
        $body
    }};
}
pub(super) use inner;

/// Evaluates an expression that changes the engine inside.
macro_rules! inner_mut {
    ($kind:expr, $filter:ident => $body:expr) => {{
        let $filter = &mut $kind.0;
        $body
    }};
}
pub(super) use inner_mut;
