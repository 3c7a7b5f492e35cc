//! Inherent methods shared by all filters, generated once per type so that
//! their documentation names the type.
//!
//! Lookups forward to [`Filter`](crate::Filter), changes to
//! [`FilterMut`](crate::FilterMut). `$name` is the type in an example,
//! `$new` a builder of it.

/// Generates the methods that read a filter.
///
/// `$type` has inherent `from_header` and implements `Filter` and `Persist`.
macro_rules! filter_methods {
    ($name:ident, $new:literal) => {
        impl<D: AsRef<[u8]>> $name<D> {
            /// Views a filter in bytes, without copying and in time
            /// independent of its size.
            ///
            /// The header is checked completely and the payload not at all;
            /// [`verify`](Self::verify) checks the payload. A damaged
            /// payload can give wrong answers, never a panic.
            ///
            /// Lookups are fastest in a buffer aligned to 64 bytes, as a
            /// memory map is; elsewhere a block may straddle two cache
            /// lines.
            ///
            /// # Errors
            ///
            /// One of the format's errors, with the expected and the found
            /// value.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let bytes = ", $new, ".build()?.to_bytes();")]
            #[doc = concat!("let view = ", stringify!($name), "::from_bytes(&bytes[..])?;")]
            /// assert!(view.is_empty());
            #[doc = concat!("assert!(", stringify!($name), "::from_bytes(&bytes[1..]).is_err());")]
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn from_bytes(data: D) -> $crate::Result<Self> {
                // By reference: `?` would copy the header, which costs a
                // third of the time.
                match $crate::format::ImageHeader::parse(data.as_ref()) {
                    Ok(ref header) => Self::from_header(header, data),
                    Err(error) => Err(error),
                }
            }

            /// The hash function of this filter's keys.
            ///
            /// Hash a key once with it to probe many filters built with the
            /// same hasher.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// let hash = filter.hasher().hash("apple");
            /// filter.insert("apple");
            /// assert!(filter.contains_hash(hash));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[inline]
            pub fn hasher(&self) -> &$crate::KeyHasher {
                $crate::Filter::hasher(self)
            }

            /// Whether `key` may be in the set: `false` is certain, `true`
            /// is wrong at the filter's false-positive rate.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// assert!(!filter.contains("apple"));
            /// filter.insert("apple");
            /// assert!(filter.contains("apple"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[inline]
            pub fn contains<K: $crate::Key + ?Sized>(&self, key: &K) -> bool {
                $crate::Filter::contains(self, key)
            }

            /// [`contains`](Self::contains) by hash.
            ///
            /// `hash` must be 64 well-mixed bits: the result of
            /// [`KeyHasher::hash`](crate::KeyHasher::hash), or of another
            /// hash function used for every insertion *and* every lookup.
            /// A raw counter is not a hash.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// filter.insert_hash(0x9e37_79b9_7f4a_7c15);
            /// assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[inline]
            pub fn contains_hash(&self, hash: u64) -> bool {
                $crate::Filter::contains_hash(self, hash)
            }

            /// [`contains`](Self::contains) for every key of a batch.
            ///
            /// In a filter larger than the cache a batch is several times
            /// faster than single lookups: the cache misses of many keys
            /// overlap.
            ///
            /// # Panics
            ///
            /// If `keys` and `found` differ in length.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// filter.insert("apple");
            /// let mut found = [false; 2];
            /// filter.contains_batch(&["apple", "pear"], &mut found);
            /// assert!(found[0]);
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn contains_batch<K: $crate::Key>(
                &self,
                keys: &[K],
                found: &mut [bool],
            ) {
                $crate::Filter::contains_batch(self, keys, found);
            }

            /// [`contains_batch`](Self::contains_batch) by hash.
            ///
            /// # Panics
            ///
            /// If `hashes` and `found` differ in length.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// filter.insert_hash(1 << 60);
            /// let mut found = [false; 2];
            /// filter.contains_hash_batch(&[1 << 60, 3 << 61], &mut found);
            /// assert!(found[0]);
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn contains_hash_batch(
                &self,
                hashes: &[u64],
                found: &mut [bool],
            ) {
                $crate::Filter::contains_hash_batch(self, hashes, found);
            }

            /// [`contains_hash_batch`](Self::contains_hash_batch) with one
            /// bit per answer: bit `i % 64` of `mask[i / 64]` belongs to
            /// `hashes[i]`; bits past the last hash are 0.
            ///
            /// # Panics
            ///
            /// If `mask` has not `hashes.len().div_ceil(64)` words.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// filter.insert_hash(1 << 60);
            /// let mut mask = [0];
            /// filter.contains_hash_mask(&[3 << 61, 1 << 60], &mut mask);
            /// assert_eq!(mask[0] & 0b10, 0b10);
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn contains_hash_mask(
                &self,
                hashes: &[u64],
                mask: &mut [u64],
            ) {
                $crate::Filter::contains_hash_mask(self, hashes, mask);
            }

            /// [`contains_batch`](Self::contains_batch) into a new vector.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// filter.insert("apple");
            /// assert_eq!(filter.contains_each(&["apple"]), [true]);
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[must_use]
            pub fn contains_each<K: $crate::Key>(
                &self,
                keys: &[K],
            ) -> alloc::vec::Vec<bool> {
                $crate::Filter::contains_each(self, keys)
            }

            /// Prefetches the block that a lookup of `hash` reads first.
            ///
            /// Prefetch in all filters of a key, then probe them: the cache
            /// misses overlap. Batches prefetch by themselves.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let builder = ", $new, ";")]
            /// let runs = [builder.build()?, builder.build()?];
            /// let hash = runs[0].hasher().hash("apple");
            /// for run in &runs {
            ///     run.prefetch(hash);
            /// }
            /// assert!(!runs.iter().any(|run| run.contains_hash(hash)));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[inline]
            pub fn prefetch(&self, hash: u64) {
                $crate::Filter::prefetch(self, hash);
            }

            /// Keys counted in the filter, in constant time; see
            /// [`Stats::items`](crate::Stats::items) for the treatment of
            /// repeats.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// filter.insert("apple");
            /// assert_eq!(filter.len(), 1);
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[must_use]
            pub fn len(&self) -> u64 {
                $crate::Filter::len(self)
            }

            /// Whether [`len`](Self::len) is 0.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("assert!(", $new, ".build()?.is_empty());")]
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[must_use]
            pub fn is_empty(&self) -> bool {
                $crate::Filter::is_empty(self)
            }

            /// Keys the filter was sized for. More fit, at a higher
            /// false-positive rate.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let filter = ", $new, ".items(50).build()?;")]
            /// assert_eq!(filter.capacity(), 50);
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[must_use]
            pub fn capacity(&self) -> u64 {
                $crate::Filter::capacity(self)
            }

            /// Predicted false-positive rate with
            /// [`capacity`](Self::capacity) keys.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let filter = ", $new, ".build()?;")]
            /// assert!(filter.design_fpr() < 0.011);
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[must_use]
            pub fn design_fpr(&self) -> f64 {
                $crate::Filter::design_fpr(self)
            }

            /// Length of [`to_bytes`](Self::to_bytes), in constant time.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let filter = ", $new, ".build()?;")]
            /// assert_eq!(filter.bytes(), filter.to_bytes().len() as u64);
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[must_use]
            pub fn bytes(&self) -> u64 {
                $crate::Filter::bytes(self)
            }

            /// Load, false-positive rate and reads per lookup, measured on
            /// the blocks. Reads the whole filter.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// assert_eq!(filter.stats().expected_fpr, 0.0);
            /// filter.insert("apple");
            /// assert!(filter.stats().expected_fpr > 0.0);
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[must_use]
            pub fn stats(&self) -> $crate::Stats {
                $crate::Filter::stats(self)
            }

            /// Reads the whole filter and checks it: the checksums of a
            /// filter that came from bytes, and the invariants of its
            /// blocks.
            ///
            /// # Errors
            ///
            /// [`Error::Checksum`](crate::Error::Checksum) or
            /// [`Error::Inconsistent`](crate::Error::Inconsistent).
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// filter.insert("apple");
            /// let mut bytes = filter.to_bytes();
            /// *bytes.last_mut().unwrap() ^= 1;
            #[doc = concat!("let damaged = ", stringify!($name), "::from_bytes(&bytes[..])?;")]
            /// assert!(damaged.verify().is_err());
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn verify(&self) -> $crate::Result<()> {
                $crate::Filter::verify(self)
            }

            /// Checks the checksums of a part of a filter that came from
            /// bytes: reads the chunks of 64 KiB that overlap `range`, in
            /// bytes of the file, and their list of checksums. The
            /// invariants of blocks are checked by
            /// [`verify`](Self::verify) alone.
            ///
            /// # Errors
            ///
            /// [`Error::Checksum`](crate::Error::Checksum) or
            /// [`Error::Inconsistent`](crate::Error::Inconsistent).
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let filter = ", $new, ".items(60_000).build()?;")]
            /// let mut bytes = filter.to_bytes();
            /// let middle = bytes.len() / 2;
            /// bytes[middle] ^= 1;
            #[doc = concat!("let damaged = ", stringify!($name), "::from_bytes(&bytes[..])?;")]
            /// damaged.verify_range(0..100)?;
            /// assert!(damaged.verify_range(60_000..damaged.bytes()).is_err());
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn verify_range(
                &self,
                range: core::ops::Range<u64>,
            ) -> $crate::Result<()> {
                self.envelope().verify_range(range)
            }

            /// The texts that the filter carries. In a view this reads the
            /// metadata section and compares its checksum; opening does not.
            ///
            /// # Errors
            ///
            /// [`Error::Checksum`](crate::Error::Checksum),
            /// [`Error::Inconsistent`](crate::Error::Inconsistent), or
            /// [`Error::UnsupportedVersion`](crate::Error::UnsupportedVersion)
            /// for metadata of a newer release. The keys do not depend on it.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let filter = ", $new, ".build()?;")]
            /// assert!(filter.metadata()?.is_empty());
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn metadata(&self) -> $crate::Result<$crate::Metadata<'_>> {
                self.envelope().metadata()
            }

            /// Sets an entry of the [metadata](crate::Metadata); an empty
            /// value removes it. Copies of the filter keep its metadata, also
            /// of another size or form; a merged filter keeps its own.
            ///
            /// # Errors
            ///
            /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for
            /// an invalid name or more than 64 KiB of metadata, or that of
            /// [`metadata`](Self::metadata).
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// filter.set_metadata("note", "known files, 2025")?;
            /// let bytes = filter.to_bytes();
            #[doc = concat!("let view = ", stringify!($name), "::from_bytes(&bytes[..])?;")]
            /// assert_eq!(view.metadata()?.get("note"), Some("known files, 2025"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn set_metadata(
                &mut self,
                name: &str,
                value: &str,
            ) -> $crate::Result<()> {
                self.envelope_mut().set_metadata(name, value)
            }

            /// The filter as the bytes of a file.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let filter = ", $new, ".build()?;")]
            /// assert_eq!(&filter.to_bytes()[1..6], b"TAMIS");
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[must_use]
            pub fn to_bytes(&self) -> alloc::vec::Vec<u8> {
                $crate::format::Persist::to_bytes(self)
            }

            /// [`to_bytes`](Self::to_bytes) in parts, without the copy: the
            /// header first, then the sections, which borrow the memory of
            /// the filter. For vectored writes and shared buffers. Reads the
            /// payload for its checksums.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let filter = ", $new, ".build()?;")]
            /// assert_eq!(filter.parts().concat(), filter.to_bytes());
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[must_use]
            pub fn parts(
                &self,
            ) -> alloc::vec::Vec<alloc::borrow::Cow<'_, [u8]>> {
                $crate::format::Persist::parts(self)
            }

            /// Writes [`to_bytes`](Self::to_bytes) without the copy: the
            /// payload goes out straight from the filter's memory.
            ///
            /// # Errors
            ///
            /// [`Error::Io`](crate::Error::Io) with the writer's error.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let filter = ", $new, ".build()?;")]
            /// let mut file = Vec::new();
            /// filter.write_to(&mut file)?;
            /// assert_eq!(file, filter.to_bytes());
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[cfg(feature = "std")]
            pub fn write_to(
                &self,
                out: impl std::io::Write,
            ) -> $crate::Result<()> {
                $crate::format::Persist::write_to(self, out)
            }

            /// Writes the filter to a file atomically, replacing one that
            /// exists: a reader of `path` sees the old content or the new,
            /// and after an error the old file is unchanged. A new file
            /// with a keyed hash is readable by its owner alone, because it
            /// contains the key.
            ///
            /// # Errors
            ///
            /// [`Error::Io`](crate::Error::Io) if the directory cannot be
            /// written or the disk is full.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            /// # let directory = tempfile::tempdir()?;
            /// # let path = directory.path().join("keys.tamis");
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// filter.insert("pear");
            /// filter.save(&path)?;
            #[doc = concat!("assert!(", stringify!($name), "::open(&path)?.contains(\"pear\"));")]
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[cfg(feature = "std")]
            pub fn save(
                &self,
                path: impl AsRef<std::path::Path>,
            ) -> $crate::Result<()> {
                $crate::format::Persist::save(self, path)
            }

            /// [`save`](Self::save) that refuses to replace a file.
            ///
            /// # Errors
            ///
            /// Those of [`save`](Self::save), and
            /// [`Error::Io`](crate::Error::Io) if `path` exists.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            /// # let directory = tempfile::tempdir()?;
            /// # let path = directory.path().join("keys.tamis");
            #[doc = concat!("let filter = ", $new, ".build()?;")]
            /// filter.save_new(&path)?;
            /// assert!(filter.save_new(&path).is_err());
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[cfg(feature = "std")]
            pub fn save_new(
                &self,
                path: impl AsRef<std::path::Path>,
            ) -> $crate::Result<()> {
                $crate::format::Persist::save_new(self, path)
            }
        }

        #[cfg(feature = "std")]
        impl $name<$crate::Mapped> {
            /// Opens a file as a memory map, without reading it; see
            /// [`Mapped`](crate::Mapped) for the conditions on the file.
            ///
            /// # Errors
            ///
            /// [`Error::Io`](crate::Error::Io), or that of
            /// [`from_bytes`](Self::from_bytes).
            ///
            /// ```
            #[doc = concat!("assert!(tamis::", stringify!($name), "::open(\"no such file\").is_err());")]
            /// ```
            pub fn open(
                path: impl AsRef<std::path::Path>,
            ) -> $crate::Result<Self> {
                Self::from_bytes($crate::Mapped::open(path)?)
            }

            /// Reads a file into memory and verifies it:
            /// [`open`](Self::open) for files that other programs may
            /// shorten or overwrite meanwhile, and for files of strangers.
            ///
            /// # Errors
            ///
            /// That of [`Mapped::read`](crate::Mapped::read), of
            /// [`from_bytes`](Self::from_bytes) or of
            /// [`verify`](Self::verify).
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            /// # let directory = tempfile::tempdir()?;
            /// # let path = directory.path().join("keys.tamis");
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// filter.insert("pear");
            /// filter.save(&path)?;
            #[doc = concat!("let copy = ", stringify!($name), "::read(&path)?;")]
            /// std::fs::write(&path, "shorter")?;
            /// assert!(copy.contains("pear"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn read(
                path: impl AsRef<std::path::Path>,
            ) -> $crate::Result<Self> {
                let filter = Self::from_bytes($crate::Mapped::read(path)?)?;
                filter.verify()?;
                Ok(filter)
            }
        }

        impl<'a> TryFrom<&'a [u8]> for $name<&'a [u8]> {
            type Error = $crate::Error;

            /// [`from_bytes`](Self::from_bytes), for generic code.
            fn try_from(bytes: &'a [u8]) -> $crate::Result<Self> {
                Self::from_bytes(bytes)
            }
        }

        /// Equal content: the same kind, hash function, geometry, counts,
        /// blocks and metadata, wherever the bytes are.
        impl<D: AsRef<[u8]>, E: AsRef<[u8]>> PartialEq<$name<E>> for $name<D> {
            fn eq(&self, other: &$name<E>) -> bool {
                use $crate::format::Persist as _;
                self.image() == other.image()
            }
        }

        impl<D: AsRef<[u8]>> core::fmt::Debug for $name<D> {
            fn fmt(
                &self,
                f: &mut core::fmt::Formatter<'_>,
            ) -> core::fmt::Result {
                $crate::filter::debug(stringify!($name), self, f)
            }
        }
    };
}
pub(super) use filter_methods;

/// Generates the methods that change a filter.
///
/// `$name` implements `FilterMut` and has an inherent `insert_chunks`.
macro_rules! filter_mut_methods {
    ($name:ident, $new:literal) => {
        impl $name {
            /// Inserts `key`. `true` if it certainly was not in the set;
            /// `false` if it was, or if it is a false positive.
            ///
            /// Insertion never fails and never loses a key: past the
            /// [`capacity`](Self::capacity) the false-positive rate rises
            /// and [`Stats::over_design`](crate::Stats::over_design)
            /// reports it.
            ///
            /// The result follows `HashSet::insert`: `true` means new.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// assert!(filter.insert("apple"));
            /// assert!(!filter.insert("apple"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[inline]
            pub fn insert<K: $crate::Key + ?Sized>(
                &mut self,
                key: &K,
            ) -> bool {
                let hash = self.hasher().hash(key);
                $crate::FilterMut::insert_hash(self, hash)
            }

            /// [`insert`](Self::insert) by hash; see
            /// [`contains_hash`](Self::contains_hash) for the hashes
            /// allowed.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// assert!(filter.insert_hash(u64::MAX / 3));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[inline]
            pub fn insert_hash(&mut self, hash: u64) -> bool {
                $crate::FilterMut::insert_hash(self, hash)
            }

            /// [`insert`](Self::insert) for every key of a batch, with the
            /// result of inserting them one by one in this order.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// filter.insert_batch(&["apple", "pear"]);
            /// assert!(filter.contains("pear"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn insert_batch<K: $crate::Key>(&mut self, keys: &[K]) {
                $crate::FilterMut::insert_batch(self, keys);
            }

            /// [`insert_batch`](Self::insert_batch) by hash.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// filter.insert_hash_batch(&[1 << 40, 1 << 50]);
            /// assert!(filter.contains_hash(1 << 50));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn insert_hash_batch(&mut self, hashes: &[u64]) {
                $crate::FilterMut::insert_hash_batch(self, hashes);
            }

            /// Removes all keys; size and settings stay.
            ///
            /// ```
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// filter.insert("apple");
            /// filter.clear();
            /// assert!(filter.is_empty() && !filter.contains("apple"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            pub fn clear(&mut self) {
                $crate::FilterMut::clear(self);
            }

            /// Inserts the keys of a slice on several threads. The result
            /// is byte for byte that of
            /// [`insert_batch`](Self::insert_batch).
            ///
            /// ```
            /// use std::num::NonZero;
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let builder = ", $new, ";")]
            /// let keys: Vec<u64> = (0..100).collect();
            /// let (mut one, mut two) = (builder.build()?, builder.build()?);
            /// one.insert_batch(&keys);
            /// two.insert_parallel(&keys, NonZero::new(2).unwrap());
            /// assert!(one == two);
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[cfg(feature = "std")]
            pub fn insert_parallel<K: $crate::Key + Sync>(
                &mut self,
                keys: &[K],
                threads: core::num::NonZero<usize>,
            ) {
                let hasher = *self.hasher();
                let chunks = keys.chunks($crate::parallel::KEYS_PER_CHUNK);
                self.insert_chunks(chunks, threads, |chunk, hashes| {
                    hashes.extend(chunk.iter().map(|key| hasher.hash(key)));
                });
            }

            /// [`insert_parallel`](Self::insert_parallel) from an iterator.
            /// Keys are pulled in chunks, so memory does not grow with
            /// their number.
            ///
            /// ```
            /// use std::num::NonZero;
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// let keys = (0..100).map(|i| format!("key {i}"));
            /// filter.insert_parallel_iter(keys, NonZero::new(2).unwrap());
            /// assert!(filter.contains("key 99"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[cfg(feature = "std")]
            pub fn insert_parallel_iter<K: $crate::Key + Send>(
                &mut self,
                keys: impl Iterator<Item = K> + Send,
                threads: core::num::NonZero<usize>,
            ) {
                let hasher = *self.hasher();
                let chunks = $crate::parallel::chunks(keys);
                self.insert_chunks(chunks, threads, |chunk, hashes| {
                    hashes.extend(chunk.iter().map(|key| hasher.hash(key)));
                });
            }

            /// [`insert_parallel`](Self::insert_parallel) of chunks of
            /// input that `hash` turns into hashes, such as pages of a file
            /// that it cuts into lines. `hash` must use this filter's
            /// [`hasher`](Self::hasher).
            ///
            /// ```
            /// use std::num::NonZero;
            #[doc = concat!("use tamis::", stringify!($name), ";")]
            #[doc = concat!("let mut filter = ", $new, ".build()?;")]
            /// let hasher = *filter.hasher();
            /// let pages = ["apple\npear", "plum\nquince"].into_iter();
            /// filter.insert_parallel_with(
            ///     pages,
            ///     NonZero::new(2).unwrap(),
            ///     |page, hashes| {
            ///         let lines = page.lines();
            ///         hashes.extend(lines.map(|line| hasher.hash(line)));
            ///     },
            /// );
            /// assert!(filter.contains("quince"));
            /// # Ok::<(), tamis::Error>(())
            /// ```
            #[cfg(feature = "std")]
            pub fn insert_parallel_with<T: Send>(
                &mut self,
                chunks: impl Iterator<Item = T> + Send,
                threads: core::num::NonZero<usize>,
                hash: impl Fn(T, &mut alloc::vec::Vec<u64>) + Sync,
            ) {
                self.insert_chunks(chunks, threads, hash);
            }
        }

        impl<K: $crate::Key> Extend<K> for $name {
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                $crate::filter::extend(self, keys);
            }
        }
    };
}
pub(super) use filter_mut_methods;
