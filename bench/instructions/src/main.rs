//! Hot paths of tamis, each between two calls of [`mark`], where callgrind
//! starts a new count.
//!
//! Run by `cargo xtask instructions`.

use std::hint::black_box;

use tamis::{
    Balanced, Blocked, Bloom, Filter, FilterMut, Header, Split, TinySet,
};

/// Operations on each path: enough that instructions outside the loop are
/// negligible, few enough for the L1 cache and for callgrind.
const OPERATIONS: u64 = 1 << 14;

/// Absent keys that are counted separately.
const KEYS_ALONE: usize = 16;

/// Bits per key of a Bloom filter with a rate of about 1 %.
const BITS: f64 = 10.0;
/// Smallest bits per key at which a balanced filter pays.
const BALANCED_BITS: f64 = 20.0;

/// Openings of a filter in bytes, each with a lookup: with the header parsed
/// anew, and parsed once.
macro_rules! opening {
    ($name:literal, $type:ident, $filter:expr) => {{
        let bytes = $filter.to_bytes();
        let hashes = hashes(0);
        let header = Header::parse(&bytes)?;
        count(concat!($name, " open"), || {
            for &hash in black_box(&hashes) {
                let filter = $type::from_bytes(black_box(&bytes[..]));
                black_box(filter.is_ok_and(|f| f.contains_hash(hash)));
            }
        });
        count(concat!($name, " open again"), || {
            for &hash in black_box(&hashes) {
                let bytes = black_box(&bytes[..]);
                let filter = $type::from_bytes_with(&header, bytes);
                black_box(filter.is_ok_and(|f| f.contains_hash(hash)));
            }
        });
    }};
}

fn main() -> tamis::Result<()> {
    println!("backend {}", backend());
    println!("operations {OPERATIONS}");
    let items = OPERATIONS;
    let bits = BITS;
    paths("bloom", || {
        Bloom::builder().items(items).bits_per_key(bits).build()
    })?;
    paths("blocked", || {
        Blocked::builder().items(items).bits_per_key(bits).build()
    })?;
    // Two groups of positions.
    paths("blocked 0.1%", || {
        Blocked::builder().items(items).fpr(0.001).build()
    })?;
    paths("split", || {
        Split::builder().items(items).bits_per_key(bits).build()
    })?;
    for (name, block_bits, fpr) in [
        ("tinyset 1%", 512, 0.01),
        ("tinyset-half 1%", 256, 0.01),
        ("tinyset 0.1%", 512, 0.001),
    ] {
        let tinyset = TinySet::builder().items(items).fpr(fpr);
        let tinyset = tinyset.block_bits(block_bits).resolve()?;
        paths(name, || tinyset.build())?;
    }
    // The other specialisations of the block, and the reference.
    let tinyset = |fpr| TinySet::builder().items(items).fpr(fpr);
    paths("tinyset removable", || tinyset(0.01).removable().build())?;
    paths("tinyset two levels", || tinyset(0.001).two_level().build())?;
    paths("tinyset reference", || tinyset(0.01).chains(60).build())?;
    let filter = Blocked::builder().items(items).bits_per_key(bits).build()?;
    opening!("blocked", Blocked, filter);
    let filter = tinyset(0.01).build()?;
    opening!("tinyset 1%", TinySet, filter);
    let bits = BALANCED_BITS;
    let balanced = Balanced::builder().bits_per_key(bits).resolve()?;
    paths("balanced", || balanced.items(items).build())
}

/// All paths of one kind. The first path fills the filter, so the others
/// run at the load the filter was designed for.
fn paths<F: FilterMut>(
    name: &str,
    build: impl Fn() -> tamis::Result<F>,
) -> tamis::Result<()> {
    let members = hashes(0);
    let others = hashes(OPERATIONS);
    let mut filter = build()?;
    count(&format!("{name} insert"), || insert(&mut filter, &members));
    for (what, hashes) in [("hit", &members), ("miss", &others)] {
        count(&format!("{name} {what}"), || single(&filter, hashes));
    }
    let mut found = vec![false; members.len()];
    for (what, hashes) in [("hit", &members), ("miss", &others)] {
        count(&format!("{name} {what} batch"), || {
            filter.contains_hash_batch(black_box(hashes), &mut found);
        });
    }
    // Each key repeated for a whole batch: the minimum over the keys is the
    // fast path, without any rare branch.
    for &hash in &others[..KEYS_ALONE] {
        let same = vec![hash; others.len()];
        count(&format!("{name} miss batch least"), || {
            filter.contains_hash_batch(black_box(&same), &mut found);
        });
    }
    let mut filter = build()?;
    count(&format!("{name} insert batch"), || {
        filter.insert_hash_batch(black_box(&members));
    });
    black_box(filter.contains_hash(members[0]));
    Ok(())
}

#[inline(never)]
fn insert<F: FilterMut>(filter: &mut F, hashes: &[u64]) {
    for &hash in black_box(hashes) {
        filter.insert_hash(hash);
    }
}

#[inline(never)]
fn single<F: Filter>(filter: &F, hashes: &[u64]) {
    let mut found = 0;
    for &hash in black_box(hashes) {
        found += u32::from(filter.contains_hash(hash));
    }
    black_box(found);
}

fn count(path: &str, run: impl FnOnce()) {
    println!("path {path}");
    mark();
    run();
    mark();
}

/// Function at whose calls callgrind starts a new count, by its name.
#[inline(never)]
fn mark() {
    black_box(());
}

/// Instruction set that tamis uses on this machine. Counts of different
/// sets are not comparable.
fn backend() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        let all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("lzcnt");
        // Under a valgrind that supports AVX-512.
        let wide = is_x86_feature_detected!("avx512vbmi2");
        if all {
            return if wide { "avx512" } else { "avx2" };
        }
    }
    // `tamis_scalar` leaves these operations out.
    if cfg!(all(target_arch = "aarch64", not(tamis_scalar))) {
        return "neon";
    }
    "scalar"
}

/// [`OPERATIONS`] hashes by SplitMix64, the same in every run.
fn hashes(start: u64) -> Vec<u64> {
    let hash = |number: u64| {
        let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (start..start + OPERATIONS).map(hash).collect()
}
