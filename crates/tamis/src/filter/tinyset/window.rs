//! The most recent keys, without removing any.

use alloc::vec;
use alloc::vec::Vec;

use super::TinySet;
use crate::error::{Error, Result};
use crate::filter::estimate::Estimate;
use crate::filter::{Builder, Filter, FilterMut, Stats, assert_same_length};
use crate::format::Kind;
#[cfg(feature = "std")]
use crate::format::{self, Mapped, Overwrite};
#[cfg(feature = "std")]
use crate::key::HashId;
use crate::key::{Key, KeyHasher};

/// Remembers the most recent keys: two generations of a fixed number of
/// keys, of which the older one is cleared whenever the younger one is full.
///
/// It answers "maybe" for each of the last `items` *new* keys, where `items`
/// is the builder's, and forgets a key at the latest after `2 * items`.
/// A key that gets the answer "maybe" from the younger generation is not
/// counted again: repeats do not push other keys out. Inserting a key of
/// the older generation moves it to the younger one.
///
/// Nothing is removed, so the false-positive rate does not decay: it is at
/// most twice that of one filter, however long the window runs. A key that
/// is not in the younger generation costs a second line.
///
/// If strangers choose the keys, build it with [`keyed`](Builder::keyed):
/// otherwise they can choose new keys that it answers "maybe" to, which a
/// deduplicating service would drop.
///
/// ```
/// use tamis::{TinySet, Window};
///
/// let builder = TinySet::builder().items(1000).fpr(0.001);
/// let mut recent = Window::new(builder)?;
/// for key in 0..100_000u32 {
///     recent.insert(&key);
/// }
/// assert!((99_000..100_000u32).all(|key| recent.contains(&key)));
/// assert!(recent.stats().expected_fpr < 0.002);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Window {
    young: TinySet,
    old: TinySet,
}

impl Window {
    /// An empty window over filters of this kind. Both generations are
    /// allocated here: insertions and rotations never fail.
    ///
    /// # Errors
    ///
    /// That of [`Builder::build`], and [`Error::InvalidArgument`] for a
    /// window of no keys.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    /// assert!(Window::new(TinySet::builder().items(9).fpr(0.1)).is_ok());
    /// assert!(Window::new(TinySet::builder().items(0).fpr(0.1)).is_err());
    /// ```
    pub fn new(builder: Builder<TinySet>) -> Result<Self> {
        let builder = builder.resolve()?;
        Self::from_generations([builder.build()?, builder.build()?])
    }

    /// A window from its younger and its older generation, as
    /// [`generations`](Self::generations) returned them.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if the two differ in size or settings,
    /// [`Error::InvalidArgument`] if they are for no keys.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    ///
    /// let mut seen = Window::new(TinySet::builder().items(9).fpr(0.1))?;
    /// seen.insert("apple");
    /// let files = seen.generations().map(|filter| filter.to_bytes());
    ///
    /// let [young, old] = files.each_ref().map(|bytes| &bytes[..]);
    /// let again = Window::from_generations([
    ///     TinySet::from_bytes(young)?.into_owned()?,
    ///     TinySet::from_bytes(old)?.into_owned()?,
    /// ])?;
    /// assert!(again.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn from_generations(generations: [TinySet; 2]) -> Result<Self> {
        let [young, old] = generations;
        young.must_match(&old)?;
        if young.capacity() == 0 || old.capacity() != young.capacity() {
            return Err(Error::InvalidArgument {
                what: "items",
                why: "a window has two generations of the same number of \
                      keys, at least one",
            });
        }
        Ok(Self { young, old })
    }

    /// Begins a new generation before this one is full, for windows by time
    /// instead of by number: call it once per period.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    ///
    /// let builder = TinySet::builder().items(1000).fpr(1e-6);
    /// let mut seen = Window::new(builder)?;
    /// seen.insert("monday");
    /// seen.rotate();
    /// assert!(seen.contains("monday"));
    /// seen.rotate();
    /// assert!(!seen.contains("monday"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn rotate(&mut self) {
        self.old.clear();
        core::mem::swap(&mut self.young, &mut self.old);
    }

    /// The younger and the older generation, to save or inspect them.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    /// let mut seen = Window::new(TinySet::builder().items(9).fpr(0.1))?;
    /// seen.insert("apple");
    /// assert_eq!(seen.generations()[0].len(), 1);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn generations(&self) -> [&TinySet; 2] {
        [&self.young, &self.old]
    }

    /// The window as bytes: both generations, the younger one first.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    /// let mut seen = Window::new(TinySet::builder().items(9).fpr(0.1))?;
    /// seen.insert("apple");
    /// let again = Window::from_bytes(&seen.to_bytes())?;
    /// assert!(again == seen);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.young.to_bytes();
        bytes.extend_from_slice(&self.old.to_bytes());
        bytes
    }

    /// Copies a window from the bytes of [`to_bytes`](Self::to_bytes). It
    /// holds two files of the format; both are verified.
    ///
    /// # Errors
    ///
    /// One of the format's errors, or that of
    /// [`from_generations`](Self::from_generations).
    ///
    /// ```
    /// use tamis::Window;
    /// assert!(Window::from_bytes(&[0; 400]).is_err());
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (young, old) = match crate::Header::image_len(bytes)? {
            // At most the length of a slice, so a usize.
            len if len <= bytes.len() as u64 => bytes.split_at(len as usize),
            _ => (bytes, &[][..]),
        };
        let generation = |bytes| {
            let view = TinySet::from_bytes(bytes)?;
            view.verify()?;
            view.into_owned()
        };
        Self::from_generations([generation(young)?, generation(old)?])
    }

    /// Writes the bytes of [`to_bytes`](Self::to_bytes) to a file atomically,
    /// as [`TinySet::save`] does.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the directory cannot be written or the disk is full.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("seen.tamis");
    /// let mut seen = Window::new(TinySet::builder().items(9).fpr(0.01))?;
    /// seen.insert("apple");
    /// seen.save(&path)?;
    /// assert!(Window::open(&path)? == seen);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        let path = format::resolve(path.as_ref())?;
        self.replace(&path, Overwrite::Within(format::WAIT))
    }

    /// [`save`](Self::save) that refuses to replace a file.
    ///
    /// # Errors
    ///
    /// Those of [`save`](Self::save), and [`Error::Io`] if `path` exists.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("seen.tamis");
    /// let seen = Window::new(TinySet::builder().items(9).fpr(0.01))?;
    /// seen.save_new(&path)?;
    /// assert!(seen.save_new(&path).is_err());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn save_new(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        let path = format::resolve(path.as_ref())?;
        self.replace(&path, Overwrite::Never)
    }

    /// Writes to `path`, the result of [`format::resolve`].
    #[cfg(feature = "std")]
    pub(in crate::filter) fn replace(
        &self,
        path: &std::path::Path,
        overwrite: Overwrite,
    ) -> Result<()> {
        let private = self.hasher().id() == HashId::SipHash13;
        format::replace(path, overwrite, private, &mut |file| {
            self.young.write_to(&mut *file)?;
            self.old.write_to(file)
        })
    }

    /// Reads and verifies a file that [`save`](Self::save) wrote.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], or that of [`from_bytes`](Self::from_bytes).
    ///
    /// ```
    /// assert!(tamis::Window::open("no such file").is_err());
    /// ```
    #[cfg(feature = "std")]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::from_bytes(&Mapped::open(path)?)
    }

    /// The hash function of this window's keys.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    /// let mut seen = Window::new(TinySet::builder().items(9).fpr(0.1))?;
    /// let hash = seen.hasher().hash("apple");
    /// assert!(seen.insert_hash(hash));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn hasher(&self) -> &KeyHasher {
        self.young.hasher()
    }

    /// Inserts `key` into the younger generation; `true` if it certainly
    /// was in neither.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    /// let mut seen = Window::new(TinySet::builder().items(9).fpr(0.01))?;
    /// assert!(seen.insert("apple"));
    /// assert!(!seen.insert("apple"), "a duplicate");
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        FilterMut::insert(self, key)
    }

    /// [`insert`](Self::insert) by hash.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    /// let mut seen = Window::new(TinySet::builder().items(9).fpr(0.01))?;
    /// assert!(seen.insert_hash(1 << 60));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        FilterMut::insert_hash(self, hash)
    }

    /// Whether `key` may be among the most recent keys: `false` is certain.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    /// let seen = Window::new(TinySet::builder().items(9).fpr(0.01))?;
    /// assert!(!seen.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        Filter::contains(self, key)
    }

    /// [`contains`](Self::contains) by hash.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    /// let seen = Window::new(TinySet::builder().items(9).fpr(0.01))?;
    /// assert!(!seen.contains_hash(1 << 60));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        Filter::contains_hash(self, hash)
    }

    /// Keys in both generations.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    /// let seen = Window::new(TinySet::builder().items(9).fpr(0.01))?;
    /// assert_eq!(seen.len(), 0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> u64 {
        Filter::len(self)
    }

    /// Whether [`len`](Self::len) is 0.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    /// let seen = Window::new(TinySet::builder().items(9).fpr(0.01))?;
    /// assert!(seen.is_empty());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all keys.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    /// let mut seen = Window::new(TinySet::builder().items(9).fpr(0.01))?;
    /// seen.insert("apple");
    /// seen.clear();
    /// assert!(!seen.contains("apple"));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn clear(&mut self) {
        FilterMut::clear(self);
    }

    /// Load and false-positive rate of both generations together.
    ///
    /// ```
    /// use tamis::{TinySet, Window};
    /// let seen = Window::new(TinySet::builder().items(9).fpr(0.01))?;
    /// assert_eq!(seen.stats().expected_fpr, 0.0);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        Filter::stats(self)
    }
}

impl core::fmt::Debug for Window {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        crate::filter::debug("Window", self, f)
    }
}

/// The chance that one of two independent events happens.
fn either(a: f64, b: f64) -> f64 {
    a + b - a * b
}

impl Filter for Window {
    fn kind(&self) -> Kind {
        self.young.kind()
    }

    #[inline]
    fn hasher(&self) -> &KeyHasher {
        self.young.hasher()
    }

    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.young.contains_hash(hash) || self.old.contains_hash(hash)
    }

    fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_same_length(hashes.len(), found.len());
        let mut older = vec![false; hashes.len()];
        self.young.contains_hash_batch(hashes, found);
        self.old.contains_hash_batch(hashes, &mut older);
        for (found, older) in found.iter_mut().zip(older) {
            *found |= older;
        }
    }

    fn prefetch(&self, hash: u64) {
        self.young.prefetch(hash);
        self.old.prefetch(hash);
    }

    fn len(&self) -> u64 {
        self.young.len().saturating_add(self.old.len())
    }

    fn capacity(&self) -> u64 {
        self.young.capacity().saturating_add(self.old.capacity())
    }

    fn design_fpr(&self) -> f64 {
        either(self.young.design_fpr(), self.old.design_fpr())
    }

    fn bytes(&self) -> u64 {
        self.young.bytes() + self.old.bytes()
    }

    fn stats(&self) -> Stats {
        let (young, old) = (self.young.stats(), self.old.stats());
        let items = self.len();
        let expected_fpr = either(young.expected_fpr, old.expected_fpr);
        let bits =
            self.young.core.geometry.bits() + self.old.core.geometry.bits();
        Stats {
            items,
            // A key may be in both.
            least_items: young.least_items.max(old.least_items),
            estimated_items: young.estimated_items + old.estimated_items,
            // A key that looked present was not counted.
            most_items: Estimate::of_counted(items, expected_fpr)
                .finite_most(),
            design_items: self.capacity(),
            bytes: self.bytes(),
            bits_per_key: (items > 0).then(|| bits / items as f64),
            expected_fpr,
            design_fpr: self.design_fpr(),
            // Members of the older generation read both.
            reads_hit: young.reads_hit
                + old.items as f64 / items.max(1) as f64,
            reads_miss: young.reads_miss + old.reads_miss,
            saturated_blocks: young.saturated_blocks + old.saturated_blocks,
            stuck_keys: young.stuck_keys + old.stuck_keys,
            over_design: young.over_design || old.over_design,
            kind: young.kind,
        }
    }

    fn verify(&self) -> Result<()> {
        self.young.verify()?;
        self.old.verify()
    }
}

impl FilterMut for Window {
    fn insert_hash(&mut self, hash: u64) -> bool {
        // Not inserted again: the younger generation already answers
        // "maybe", and a repeat would count towards the next rotation.
        if self.young.contains_hash(hash) {
            return false;
        }
        let new = !self.old.contains_hash(hash);
        if self.young.len() >= self.young.capacity() {
            self.rotate();
        }
        self.young.insert_hash(hash);
        new
    }

    fn insert_hash_batch(&mut self, hashes: &[u64]) {
        for &hash in hashes {
            self.insert_hash(hash);
        }
    }

    fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

impl<K: Key> Extend<K> for Window {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        crate::filter::extend(self, keys);
    }
}
