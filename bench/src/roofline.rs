//! What the hardware can do: load a random line of 64 bytes per operation,
//! from as much memory as the blocked filter has, and nothing else.
//!
//! And what it can do besides: the same with some arithmetic on each hash,
//! which waits for no line.

use std::hint::black_box;
use std::ops::Range;

use crate::clock::timed;
use crate::contender::{Asked, Contender, Lookup, Mode, Plan, Queries};
use crate::keys::{KeyType, mix};
use crate::subject::Result;

/// How far ahead lines are asked for in memory and in a cache, and what is
/// likely to be in one: as tamis does for its Bloom filters.
const AHEAD: usize = 64;
const AHEAD_CACHED: usize = 32;
const CACHE: usize = 16 << 20;

/// Bytes that are in no cache.
const LARGE: usize = 256 << 20;

#[derive(Clone)]
#[repr(align(64))]
struct Line([u64; 8]);

/// With that many instructions of arithmetic more for each line.
#[derive(Default)]
pub(crate) struct Roofline<const WORK: usize> {
    len: usize,
    lines: Vec<Line>,
}

impl<const WORK: usize> Contender for Roofline<WORK> {
    fn name(&self) -> &'static str {
        match WORK {
            0 => "roofline",
            25 => "roofline+25",
            _ => "roofline+50",
        }
    }

    fn offers(&self, lookup: Lookup, mode: Mode) -> bool {
        match WORK {
            0 => lookup != Lookup::Mixed,
            _ => lookup == Lookup::Miss && mode == Mode::Batch,
        }
    }

    fn inserts(&self) -> bool {
        false
    }

    fn prepare(&mut self, items: u64, fpr: f64) -> Result<bool> {
        self.clear();
        let design = tamis::Blocked::builder().fpr(fpr).resolve()?;
        // One line is 64 bytes whatever the number of keys.
        let sample = design.items(1 << 20).build()?.block_count();
        let lines = sample as f64 * items as f64 / (1 << 20) as f64;
        self.len = lines.ceil() as usize;
        // In a cache there is nothing to hide work behind.
        let large = size_of::<Line>() * self.len >= LARGE;
        Ok(WORK == 0 || large && cfg!(target_arch = "x86_64"))
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
        unreachable!("there is nothing to insert into")
    }

    fn bytes(&self) -> i64 {
        size_of_val(&self.lines[..]) as i64
    }

    /// The sum from the definition of the lines, not from the lines.
    fn expect(&self, queries: &Queries) -> Result<Asked> {
        let mut sum = 0u64;
        for &hash in queries.addresses() {
            let first = 8 * index(hash, self.lines.len()) as u64;
            for word in 0..8 {
                sum = sum.wrapping_add(mix(first + word, 0));
            }
            sum = sum.wrapping_add(work::<WORK>(hash));
        }
        let mut asked = self.ask(queries, Mode::Single, 1);
        asked.sum = sum;
        Ok(asked)
    }

    fn ask(&self, queries: &Queries, mode: Mode, passes: usize) -> Asked {
        let hashes = queries.addresses();
        let lines = &self.lines[..];
        let (ns, sum) = timed(|| {
            let mut sums = [0u64; 8];
            for _ in 0..passes {
                let hashes = black_box(hashes);
                load::<WORK>(lines, hashes, mode, &mut sums);
            }
            sums.iter().fold(0, |sum, &part| part.wrapping_add(sum))
        });
        Asked { ns, sum }
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

/// The line a hash leads to: the high half of a product, as everywhere.
#[inline(always)]
fn index(hash: u64, lines: usize) -> usize {
    ((u128::from(hash) * lines as u128) >> 64) as usize
}

#[inline(always)]
fn load_with<const WORK: usize>(
    lines: &[Line],
    hashes: &[u64],
    mode: Mode,
    sums: &mut [u64; 8],
) {
    match mode {
        Mode::Single => {
            for &hash in hashes {
                add(lines, hash, sums);
            }
        }
        Mode::Batch if size_of_val(lines) <= CACHE => {
            load_asked::<AHEAD_CACHED, true, WORK>(lines, hashes, sums);
        }
        Mode::Batch => load_asked::<AHEAD, false, WORK>(lines, hashes, sums),
    }
}

#[inline(always)]
fn load_asked<const AHEAD: usize, const CACHED: bool, const WORK: usize>(
    lines: &[Line],
    hashes: &[u64],
    sums: &mut [u64; 8],
) {
    for &hash in hashes.iter().take(AHEAD) {
        prefetch::<CACHED>(lines, hash);
    }
    let mut worked = 0u64;
    for (i, &hash) in hashes.iter().enumerate() {
        if let Some(&later) = hashes.get(i + AHEAD) {
            prefetch::<CACHED>(lines, later);
        }
        add(lines, hash, sums);
        worked = worked.wrapping_add(work::<WORK>(hash));
    }
    sums[0] = sums[0].wrapping_add(worked);
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
fn work<const WORK: usize>(_hash: u64) -> u64 {
    0
}

#[cfg(not(target_arch = "x86_64"))]
fn prefetch<const CACHED: bool>(_lines: &[Line], _hash: u64) {}

#[cfg(target_arch = "x86_64")]
use x86::{load, prefetch, work};

#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "target features, prefetch hints, exact instructions"
)]
mod x86 {
    use super::{Line, Mode, index, load_with};

    /// A line in two loads where the processor can.
    pub(super) fn load<const WORK: usize>(
        lines: &[Line],
        hashes: &[u64],
        mode: Mode,
        sums: &mut [u64; 8],
    ) {
        /// # Safety
        ///
        /// The processor must have AVX2.
        #[target_feature(enable = "avx2")]
        unsafe fn with_avx2<const WORK: usize>(
            lines: &[Line],
            hashes: &[u64],
            mode: Mode,
            sums: &mut [u64; 8],
        ) {
            load_with::<WORK>(lines, hashes, mode, sums);
        }
        match is_x86_feature_detected!("avx2") {
            // SAFETY: it has.
            true => unsafe { with_avx2::<WORK>(lines, hashes, mode, sums) },
            false => load_with::<WORK>(lines, hashes, mode, sums),
        }
    }

    /// That many instructions, in five chains that the processor works on
    /// at once. In assembly: a compiler would find a way to need fewer.
    #[inline(always)]
    pub(super) fn work<const WORK: usize>(hash: u64) -> u64 {
        if WORK == 0 {
            return 0;
        }
        let [mut a, mut b, mut c, mut d, mut e] = [hash; 5];
        // SAFETY: arithmetic in registers, which are all named.
        unsafe {
            core::arch::asm!(
                ".rept {times}",
                "rol {a}, 7",
                "add {b}, 77",
                "xor {c}, 99",
                "lea {d}, [{d} + 5]",
                "ror {e}, 3",
                ".endr",
                a = inout(reg) a,
                b = inout(reg) b,
                c = inout(reg) c,
                d = inout(reg) d,
                e = inout(reg) e,
                times = const WORK / 5,
                options(pure, nomem, nostack),
            );
        }
        a ^ b ^ c ^ d ^ e
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
