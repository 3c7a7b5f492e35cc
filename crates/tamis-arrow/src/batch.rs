//! Insertion and lookup of columns.

use std::num::NonZero;
use std::ops::Range;
use std::thread;

use arrow_array::BooleanArray;
use arrow_buffer::{BooleanBuffer, Buffer};
use tamis::{AnyFilter, Filter};

use crate::Keys;

/// Keys hashed at once: the hashes stay in the first-level cache.
const CHUNK: usize = 2048;

/// Keys per thread, at least: a thread costs as much as some 10,000 lookups.
const KEYS_PER_THREAD: usize = 1 << 15;

/// Inserts the keys of a range of rows; nulls are not inserted. The bytes of
/// the filter do not depend on the number of threads.
///
/// # Panics
///
/// Panics if the range exceeds the rows.
///
/// ```
/// use std::num::NonZero;
/// use tamis::{AnyFilter, Kind};
/// use tamis_arrow::{Keys, insert};
///
/// let builder = AnyFilter::builder(Kind::Blocked).items(9).fpr(0.01);
/// let mut filter = builder.build()?;
/// let keys = Keys::from_integers(filter.hasher(), &[1i32, 2, 3]);
/// insert(&mut filter, &keys, 0..3, NonZero::<usize>::MIN);
/// assert!(filter.contains(&3u64));
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn insert(
    filter: &mut AnyFilter,
    keys: &Keys<'_>,
    range: Range<usize>,
    threads: NonZero<usize>,
) {
    let threads = limit(threads, range.len());
    if threads.get() == 1 {
        let mut hashes = Vec::with_capacity(CHUNK);
        for chunk in chunks(range) {
            hashes.clear();
            keys.hash_present(chunk, &mut hashes);
            filter.insert_hash_batch(&hashes);
        }
        return;
    }
    filter.insert_parallel_with(chunks(range), threads, |chunk, hashes| {
        keys.hash_present(chunk, hashes);
    });
}

/// Looks every row up; a null where the key is null.
///
/// ```
/// use std::num::NonZero;
/// use tamis::{AnyFilter, Kind};
/// use tamis_arrow::{Keys, contains};
///
/// let builder = AnyFilter::builder(Kind::Blocked).fpr(0.001);
/// let filter = builder.build_from([7u64])?;
/// let keys = Keys::from_integers(filter.hasher(), &[7i8, 8]);
/// let found = contains(&filter, &keys, NonZero::<usize>::MIN);
/// assert!(found.value(0) && !found.value(1));
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn contains<F: Filter + Sync + ?Sized>(
    filter: &F,
    keys: &Keys<'_>,
    threads: NonZero<usize>,
) -> BooleanArray {
    let len = keys.len();
    let mut mask = vec![0u64; len.div_ceil(64)];
    divide(&mut mask, 64, len, threads, |range, mask| {
        let mut hashes = Vec::with_capacity(CHUNK);
        for (range, mask) in chunks(range).zip(mask.chunks_mut(CHUNK / 64)) {
            hashes.clear();
            keys.hash(range, &mut hashes);
            filter.contains_hash_mask(&hashes, mask);
        }
    });
    for word in &mut mask {
        *word = word.to_le();
    }
    let bits = BooleanBuffer::new(Buffer::from_vec(mask), 0, len);
    BooleanArray::new(bits, keys.nulls().cloned())
}

/// [`contains`] with one `bool` per row, for keys without nulls; a null is
/// `false`.
///
/// # Panics
///
/// Panics unless `found` has one element per row.
///
/// ```
/// use std::num::NonZero;
/// use tamis::{AnyFilter, Kind};
/// use tamis_arrow::{Keys, contains_bools};
///
/// let builder = AnyFilter::builder(Kind::Blocked).fpr(0.001);
/// let filter = builder.build_from([7u64])?;
/// let keys = Keys::from_integers(filter.hasher(), &[7i8, 8]);
/// let mut found = [false; 2];
/// contains_bools(&filter, &keys, &mut found, NonZero::<usize>::MIN);
/// assert_eq!(found, [true, false]);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn contains_bools<F: Filter + Sync + ?Sized>(
    filter: &F,
    keys: &Keys<'_>,
    found: &mut [bool],
    threads: NonZero<usize>,
) {
    let len = keys.len();
    assert_eq!(len, found.len(), "a batch has one answer per key");
    divide(found, 1, len, threads, |range, found| {
        let mut hashes = Vec::with_capacity(CHUNK);
        for (range, found) in chunks(range).zip(found.chunks_mut(CHUNK)) {
            hashes.clear();
            keys.hash(range.clone(), &mut hashes);
            filter.contains_hash_batch(&hashes, found);
            if let Some(nulls) = keys.nulls() {
                for (found, row) in found.iter_mut().zip(range) {
                    *found &= nulls.is_valid(row);
                }
            }
        }
    });
}

/// Ranges of at most [`CHUNK`] rows.
fn chunks(range: Range<usize>) -> impl Iterator<Item = Range<usize>> + Send {
    let end = range.end;
    range.step_by(CHUNK).map(move |at| at..end.min(at + CHUNK))
}

fn limit(threads: NonZero<usize>, rows: usize) -> NonZero<usize> {
    let most = NonZero::new(rows / KEYS_PER_THREAD);
    threads.min(most.unwrap_or(NonZero::<usize>::MIN))
}

/// Runs `work` on parts of `rows` rows and of `out`, which has one element per
/// `unit` rows.
fn divide<T: Send>(
    out: &mut [T],
    unit: usize,
    rows: usize,
    threads: NonZero<usize>,
    work: impl Fn(Range<usize>, &mut [T]) + Sync,
) {
    let threads = limit(threads, rows).get();
    if threads == 1 {
        return work(0..rows, out);
    }
    // A multiple of the chunk, so that only the last chunk is short.
    let part = rows.div_ceil(threads).next_multiple_of(CHUNK);
    thread::scope(|scope| {
        let parts = out.chunks_mut(part / unit);
        for (start, out) in (0..rows).step_by(part).zip(parts) {
            let range = start..rows.min(start + part);
            let work = &work;
            scope.spawn(move || work(range, out));
        }
    });
}
