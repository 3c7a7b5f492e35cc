//! Valid files with changed fields and right checksums: every method gives an
//! error or an answer.
//!
//! `bytes` starts from arbitrary bytes. This target starts from a filter and
//! changes bytes of its header, sections or blocks, so that almost every input
//! gets past the checksums.
use std::cell::RefCell;
use std::collections::HashMap;
use std::num::NonZero;

use arbitrary::{Arbitrary, Unstructured};
use tamis::inspect::Inspector;
use tamis::{
    AnyFilter, Balanced, KeyHasher, Kind, Result, Scheme, Shared, TinySet,
    Window,
};
use xxhash_rust::xxh3::xxh3_64;

/// Settings of the filter that is changed.
#[derive(Debug, Arbitrary)]
struct Recipe {
    design: Design,
    keys: u8,
    note: bool,
    compact: bool,
}

/// Settings whose filter is built once: the best sizes take longer to find
/// than the other methods together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Arbitrary)]
struct Design {
    form: Form,
    items: Items,
    half_lines: bool,
    keyed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Arbitrary)]
enum Items {
    None,
    One,
    Few,
    Some,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Arbitrary)]
enum Form {
    Bloom,
    Blocked,
    Split,
    Single,
    Sequential,
    Multilevel,
    TinySet,
    Removable,
    Repeats,
    TwoLevel,
}

#[derive(Debug, Arbitrary)]
enum Edit {
    Header(u8, u8),
    /// A field of the geometry or of the section table, of 8 bytes.
    Word(u8, u64),
    Flip(u16, u8),
    Fill(u16, u8, u8),
    Cut(u8),
    Append(u8),
}

#[derive(Debug, Arbitrary)]
struct Case {
    recipe: Recipe,
    edits: Vec<Edit>,
    /// Whether the header's file length becomes that of the bytes.
    fit_length: bool,
    /// 255 for many items: sections with chunk lists, of which each method
    /// takes a millisecond.
    large: u8,
    hashes: [u64; 4],
}

pub fn run(input: &[u8]) {
    let Ok(case) = Case::arbitrary_take_rest(Unstructured::new(input)) else {
        return;
    };

    let Some(valid) = case.recipe.file(case.large == 255) else { return };
    let mut bytes = valid.clone();
    for edit in case.edits.iter().take(16) {
        edit.apply(&mut bytes);
    }
    match bytes.starts_with(b"\x89t\x01") {
        true => seal_compact(&mut bytes),
        false => seal(&mut bytes, case.fit_length),
    }
    let _ = every_method(&bytes, &valid, case.hashes);
    let _ = Window::from_bytes(&[&bytes[..], &bytes].concat());
    let _ = Window::from_bytes(&[&valid[..], &bytes].concat());
}

impl Recipe {
    fn file(&self, large: bool) -> Option<Vec<u8>> {
        let mut filter = self.design.empty(large)?;
        (0..self.keys).for_each(|key| {
            filter.insert(&key);
        });
        if self.note {
            filter.set_metadata("note", "kept").ok()?;
        }
        match self.compact {
            true => filter.to_compact_bytes().ok(),
            false => Some(filter.to_bytes()),
        }
    }
}

thread_local! {
    static EMPTY: RefCell<HashMap<(Design, bool), Option<AnyFilter>>> =
        RefCell::default();
}

impl Design {
    /// An empty filter; `None` if its settings are refused.
    fn empty(self, large: bool) -> Option<AnyFilter> {
        EMPTY.with_borrow_mut(|all| {
            let build = || self.build(large).ok();
            all.entry((self, large)).or_insert_with(build).clone()
        })
    }

    fn build(self, large: bool) -> Result<AnyFilter> {
        let items = match self.items {
            Items::None => 0,
            Items::One => 1,
            Items::Few => 40,
            Items::Some => 255,
        };
        let items = if large { 60_000 } else { items };
        let bits = if self.half_lines { 256 } else { 512 };
        let hasher = match self.keyed {
            true => KeyHasher::siphash(1 << 100 | 7),
            false => KeyHasher::default(),
        };
        let any = |kind| {
            let builder = AnyFilter::builder(kind).items(items).fpr(0.01);
            builder.block_bits(bits).hasher(hasher).build()
        };
        let set = TinySet::builder().items(items).fpr(0.01);
        let set = set.block_bits(bits).hasher(hasher);
        let balanced = |scheme| {
            let builder = Balanced::builder().items(items).bits_per_key(20.0);
            let builder = builder.scheme(scheme).block_bits(bits);
            Ok(builder.hasher(hasher).build()?.into())
        };
        match self.form {
            Form::Bloom => any(Kind::Bloom),
            Form::Blocked => any(Kind::Blocked),
            Form::Split => any(Kind::Split),
            Form::Single => balanced(Scheme::Single),
            Form::Sequential => balanced(Scheme::Sequential),
            Form::Multilevel => balanced(Scheme::Multilevel),
            Form::TinySet => any(Kind::TinySet),
            Form::Removable => Ok(set.removable().build()?.into()),
            Form::Repeats => Ok(set.repeats().build()?.into()),
            // 0.05 %, where two levels pay.
            Form::TwoLevel => Ok(set.fpr(0.0005).two_level().build()?.into()),
        }
    }
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let len = bytes.len();
        match *self {
            Self::Header(at, value) => {
                if let Some(byte) = bytes.get_mut(usize::from(at)) {
                    *byte = value;
                }
            }
            Self::Word(at, value) => {
                let at = 8 * usize::from(at % 32);
                if let Some(word) = bytes.get_mut(at..at + 8) {
                    word.copy_from_slice(&value.to_le_bytes());
                }
            }
            Self::Flip(at, bit) => {
                bytes[usize::from(at) % len] ^= 1 << (bit % 8);
            }
            Self::Fill(at, count, value) => {
                let start = usize::from(at) % len;
                let end = (start + usize::from(count)).min(len);
                bytes[start..end].fill(value);
            }
            Self::Cut(count) => {
                bytes.truncate(len.saturating_sub(count.into()).max(64));
            }
            Self::Append(count) => bytes.resize(len + usize::from(count), 0),
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    let field = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_le_bytes(field).into())
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    if let Some(field) = bytes.get_mut(at..at + 8) {
        field.copy_from_slice(&value.to_le_bytes());
    }
}

/// Corrects the checksums of sections, chunks and header where the fields
/// that say where they are make sense.
fn seal(bytes: &mut [u8], fit_length: bool) {
    const CHUNK: usize = 1 << 16;
    let fields = |at| u16_at(bytes, at).unwrap_or(0);
    let (header, geometry, count) = (fields(64), fields(66), fields(68));
    for section in 0..count.min(16) {
        let entry = 72 + geometry + 32 * section;
        let place = [8, 16].map(|at| u64_at(bytes, entry + at));
        let [Some(start), Some(len)] = place else { break };
        let end = start.saturating_add(len);
        if end > bytes.len() as u64 {
            continue;
        }
        let (start, end) = (start as usize, end as usize);
        let content = match end - start > CHUNK {
            false => xxh3_64(&bytes[start..end]),
            true => {
                let sums: Vec<u8> = bytes[start..end]
                    .chunks(CHUNK)
                    .flat_map(|chunk| xxh3_64(chunk).to_le_bytes())
                    .collect();
                let list = end.next_multiple_of(64);
                let Some(place) = bytes.get_mut(list..list + sums.len())
                else {
                    continue;
                };
                place.copy_from_slice(&sums);
                xxh3_64(&sums)
            }
        };
        put(bytes, entry + 24, content);
    }
    if fit_length {
        put(bytes, 32, bytes.len() as u64);
    }
    if (80..=bytes.len()).contains(&header) {
        let sum = xxh3_64(&bytes[..header - 8]);
        put(bytes, header - 8, sum);
    }
}

fn seal_compact(bytes: &mut [u8]) {
    let (header, blocks) = bytes.split_at_mut(32);
    let sum = xxh3_64(blocks) as u32;
    header[24..28].copy_from_slice(&sum.to_le_bytes());
    let sum = xxh3_64(&header[..28]) as u32;
    header[28..].copy_from_slice(&sum.to_le_bytes());
}

fn every_method(bytes: &[u8], valid: &[u8], hashes: [u64; 4]) -> Result<()> {
    let view = AnyFilter::from_bytes(bytes)?;
    let other = AnyFilter::from_bytes(valid)?.into_owned()?;
    let mut mask = [0];
    let mut found = [false; 4];
    view.contains_hash_mask(&hashes, &mut mask);
    view.contains_hash_batch(&hashes, &mut found);
    for (i, (&hash, &found)) in hashes.iter().zip(&found).enumerate() {
        view.prefetch(hash);
        assert_eq!(view.contains_hash(hash), found);
        assert_eq!(mask[0] >> i & 1 == 1, found);
    }
    assert_eq!(view.contains_each(&[1u8, 2]).len(), 2);
    let _ = (view.is_empty(), view.capacity(), view.design_fpr());
    let _ = (view.stats(), format!("{view:?}"));
    let _ = (view.verify(), view.verify_range(1..bytes.len() as u64 / 2));
    let _ = view.verify_range(u64::MAX - 1..u64::MAX);
    let _ = view.metadata().map(|all| all.iter().count());
    let _ = Inspector::new(&view).parameters();
    assert_eq!(view.parts().concat(), view.to_bytes());
    match &view {
        AnyFilter::TinySet(set) => {
            let inspect = Inspector::new(set);
            let _ = (inspect.loads(), inspect.stored().count());
            let _ = (inspect.folded_fpr(), inspect.grown_fpr());
            let _ = inspect.merged_fpr(set);
            let _ = set.count_hash(hashes[0]);
            let set = set.clone().into_owned()?;
            let _ = set.rebuilt(0..9u8);
            share(set, hashes)?;
        }
        AnyFilter::Balanced(filter) => {
            let _ = Inspector::new(filter).block_states().count();
            let _ = (filter.accesses(), filter.overflow_fraction());
            let mut filter = filter.clone().into_owned()?;
            for hash in hashes {
                let _ = filter.try_insert_hash(hash);
                filter.insert_distinct_hash(hash);
                assert!(filter.contains_hash(hash));
            }
        }
        AnyFilter::Bloom(filter) => {
            share(filter.clone().into_owned()?, hashes)?;
        }
        AnyFilter::Blocked(filter) => {
            share(filter.clone().into_owned()?, hashes)?;
        }
        AnyFilter::Split(filter) => {
            share(filter.clone().into_owned()?, hashes)?;
        }
        _ => {}
    }
    let owned = view.into_owned()?;
    let _ = owned.to_compact_bytes();
    for made in [owned.halved(), owned.doubled(), owned.folded_to(0.5)] {
        let Ok(mut made) = made else { continue };
        for hash in hashes {
            assert!(made.contains_hash(hash) || !owned.contains_hash(hash));
        }
        insert(&mut made, hashes);
    }
    let mut merged = owned.clone();
    if merged.merge_from(&other).is_ok() {
        let kept = |hash| merged.contains_hash(hash);
        let was =
            |hash| other.contains_hash(hash) || owned.contains_hash(hash);
        assert!(hashes.iter().all(|&hash| kept(hash) || !was(hash)));
    }
    let mut removed = owned.clone();
    for hash in hashes {
        let _ = removed.remove_hash(hash);
    }
    let mut owned = owned;
    insert(&mut owned, hashes);
    owned.insert_parallel(&[1u8, 2, 3], NonZero::<usize>::MIN);
    assert!(owned.contains(&2u8));
    let again = owned.to_bytes();
    assert!(AnyFilter::from_bytes(&again[..])?.contains(&2u8));
    owned.clear();
    owned.verify()
}

fn insert(filter: &mut AnyFilter, hashes: [u64; 4]) {
    filter.insert_hash(hashes[0]);
    filter.insert_hash_batch(&hashes);
    for hash in hashes {
        assert!(filter.contains_hash(hash), "lost {hash:#x}");
    }
}

fn share<F: tamis::Shareable>(filter: F, hashes: [u64; 4]) -> Result<()> {
    let shared = Shared::from(filter);
    shared.insert_hash_batch(&hashes);
    assert!(hashes.iter().all(|&hash| shared.contains_hash(hash)));
    let filter = shared.snapshot()?;
    assert!(hashes.iter().all(|&hash| filter.contains_hash(hash)));
    let _ = shared.stats();
    Ok(())
}
