//! Roofline of the hardware: load one random line of 64 bytes per operation,
//! from the same amount of memory as the blocked filter's.

use std::hint::black_box;
use std::ops::Range;

use crate::clock::timed;
use crate::contender::{Contender, Lookup, Mode, Plan, Queries, Timed};
use crate::keys::{KeyType, mix};
use crate::subject::Result;

/// Prefetch distance in keys, the same as tamis' for Bloom filters.
const AHEAD: usize = 64;
/// Bytes up to which lines are prefetched into the L1 cache, the same as
/// tamis' for Bloom filters.
const CACHED: usize = 1 << 20;

#[derive(Clone)]
#[repr(align(64))]
struct Line([u64; 8]);

#[derive(Default)]
pub(crate) struct Roofline {
    len: usize,
    lines: Vec<Line>,
}

impl Contender for Roofline {
    fn name(&self) -> &'static str {
        "roofline"
    }

    fn offers(&self, lookup: Lookup, _mode: Mode) -> bool {
        lookup != Lookup::Mixed
    }

    fn inserts(&self) -> bool {
        false
    }

    fn prepare(&mut self, items: u64, fpr: f64) -> Result<bool> {
        self.clear();
        let design = tamis::Blocked::builder().fpr(fpr).resolve()?;
        // Lines per key, from a small filter of the same design.
        let sample = design.items(1 << 20).build()?.block_count();
        let lines = sample as f64 * items as f64 / (1 << 20) as f64;
        self.len = lines.ceil() as usize;
        Ok(true)
    }

    fn fill(&mut self, _plan: &Plan) -> Result<Option<Vec<f64>>> {
        let words = |line: usize| {
            let first = 8 * line as u64;
            Line(std::array::from_fn(|i| mix(first + i as u64, 0)))
        };
        self.lines = (0..self.len).map(words).collect();
        Ok(None)
    }

    fn insert(&mut self, _plan: &Plan, _numbers: Range<u64>) -> Result<f64> {
        unreachable!("the roofline has no insertion")
    }

    fn bytes(&self) -> i64 {
        size_of_val(&self.lines[..]) as i64
    }

    /// Computes the sum from the definition of the lines, without loads.
    fn expect(&self, queries: &Queries) -> Result<Timed> {
        let mut sum = 0u64;
        for &hash in queries.addresses() {
            let first = 8 * index(hash, self.lines.len()) as u64;
            for word in 0..8 {
                sum = sum.wrapping_add(mix(first + word, 0));
            }
        }
        let mut timed = self.look_up(queries, Mode::Single, 1);
        timed.sum = sum;
        Ok(timed)
    }

    fn look_up(&self, queries: &Queries, mode: Mode, passes: usize) -> Timed {
        let hashes = queries.addresses();
        let lines = &self.lines[..];
        let (ns, sum) = timed(|| {
            let mut sums = [0u64; 8];
            for _ in 0..passes {
                let hashes = black_box(hashes);
                load(lines, hashes, mode, &mut sums);
            }
            sums.iter().fold(0, |sum, &part| part.wrapping_add(sum))
        });
        Timed { ns, sum }
    }

    fn rate(&self, _keys: KeyType, _queries: u64) -> Option<f64> {
        None
    }

    fn relocate(&mut self) {
        self.lines = self.lines.clone();
    }

    fn clear(&mut self) {
        self.lines = Vec::new();
    }
}

/// Line of a hash: the high half of the product, as in tamis.
#[inline(always)]
fn index(hash: u64, lines: usize) -> usize {
    ((u128::from(hash) * lines as u128) >> 64) as usize
}

#[inline(always)]
fn load_with(lines: &[Line], hashes: &[u64], mode: Mode, sums: &mut [u64; 8]) {
    match mode {
        Mode::Single => {
            for &hash in hashes {
                add(lines, hash, sums);
            }
        }
        Mode::Batch if size_of_val(lines) <= CACHED => {
            load_prefetched::<true>(lines, hashes, sums);
        }
        Mode::Batch => load_prefetched::<false>(lines, hashes, sums),
    }
}

#[inline(always)]
fn load_prefetched<const CACHED: bool>(
    lines: &[Line],
    hashes: &[u64],
    sums: &mut [u64; 8],
) {
    for &hash in hashes.iter().take(AHEAD) {
        prefetch::<CACHED>(lines, hash);
    }
    for (i, &hash) in hashes.iter().enumerate() {
        if let Some(&later) = hashes.get(i + AHEAD) {
            prefetch::<CACHED>(lines, later);
        }
        add(lines, hash, sums);
    }
}

#[inline(always)]
fn add(lines: &[Line], hash: u64, sums: &mut [u64; 8]) {
    let Line(words) = &lines[index(hash, lines.len())];
    for (sum, word) in sums.iter_mut().zip(words) {
        *sum = sum.wrapping_add(*word);
    }
}

#[cfg(not(target_arch = "x86_64"))]
use load_with as load;

#[cfg(not(target_arch = "x86_64"))]
fn prefetch<const CACHED: bool>(_lines: &[Line], _hash: u64) {}

#[cfg(target_arch = "x86_64")]
use x86::{load, prefetch};

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "target features, prefetch hints")]
mod x86 {
    use super::{Line, Mode, index, load_with};

    /// Loads with AVX2, two per line, if the processor has it.
    pub(super) fn load(
        lines: &[Line],
        hashes: &[u64],
        mode: Mode,
        sums: &mut [u64; 8],
    ) {
        /// # Safety
        ///
        /// The processor must have AVX2.
        #[target_feature(enable = "avx2")]
        unsafe fn with_avx2(
            lines: &[Line],
            hashes: &[u64],
            mode: Mode,
            sums: &mut [u64; 8],
        ) {
            load_with(lines, hashes, mode, sums);
        }
        match is_x86_feature_detected!("avx2") {
            // SAFETY: AVX2 was detected just now.
            true => unsafe { with_avx2(lines, hashes, mode, sums) },
            false => load_with(lines, hashes, mode, sums),
        }
    }

    #[inline(always)]
    pub(super) fn prefetch<const CACHED: bool>(lines: &[Line], hash: u64) {
        use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        let line = lines.as_ptr().wrapping_add(index(hash, lines.len()));
        // SAFETY: PREFETCHh is a hint: it reads no value and raises no
        // fault whatever the address; SSE is part of the x86-64 baseline.
        unsafe {
            match CACHED {
                true => _mm_prefetch::<_MM_HINT_T0>(line.cast::<i8>()),
                false => _mm_prefetch::<_MM_HINT_T1>(line.cast::<i8>()),
            }
        }
    }
}
