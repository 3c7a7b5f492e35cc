//! Batched loads with extra instructions between them: the size of the
//! reorder buffer in lookups.
//!
//! The roofline's loop (one random line per key, prefetched 64 keys ahead)
//! with 0 to 96 extra instructions per key, none of which waits for a line.
//! The number that is hidden depends on the registers they write (none,
//! integer, vector, both) and on the location of the lines:
//!
//! * *memory*: random lines of 512 MiB;
//! * *pages*: 8192 of those lines, each in its own page. They fit the L2
//!   cache; their address translations do not all fit the TLB;
//! * *cache*: 8192 adjacent lines;
//! * *written*: as *memory*, but each line is changed and none is prefetched:
//!   single insertions.
//!
//! ```text
//! cargo xtask bench window
//! ```
#![expect(unsafe_code, reason = "exact instructions and prefetch hints")]

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    eprintln!("this benchmark needs an x86-64 processor");
}

#[cfg(target_arch = "x86_64")]
#[path = "../allocator.rs"]
#[cfg_attr(not(test), expect(dead_code, reason = "no bytes are counted"))]
mod allocator;
#[cfg(target_arch = "x86_64")]
#[path = "../clock.rs"]
mod clock;
#[cfg(target_arch = "x86_64")]
#[path = "../output.rs"]
mod output;

#[cfg(target_arch = "x86_64")]
#[global_allocator]
static ALLOCATOR: allocator::HugePages = allocator::HugePages;

#[cfg(target_arch = "x86_64")]
fn main() -> std::process::ExitCode {
    output::exit_code("window", x86::main())
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::asm;
    use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
    use core::hint::black_box;

    use crate::clock::timed;
    use crate::output::{Failure, print};

    const LINES: usize = 1 << 23;
    const FEW: u64 = 1 << 13;
    const KEYS: u64 = 1 << 20;
    const AHEAD: usize = 64;
    const ROUNDS: usize = 8;
    const COUNTS: [usize; 6] = [0, 16, 32, 48, 64, 96];
    const KINDS: [&str; 4] = ["no", "integer", "vector", "both"];
    /// Words read to evict the caches.
    const FLUSH: usize = 8 << 20;

    type Loop = fn(&mut [[u64; 8]], &[u64]) -> u64;

    /// Loops of each kind, for each count.
    const fn loops<const WRITTEN: bool>() -> [[Loop; 6]; 4] {
        [
            of::<0, WRITTEN>(),
            of::<1, WRITTEN>(),
            of::<2, WRITTEN>(),
            of::<3, WRITTEN>(),
        ]
    }

    const fn of<const KIND: u8, const WRITTEN: bool>() -> [Loop; 6] {
        [
            visit::<KIND, { COUNTS[0] }, WRITTEN>,
            visit::<KIND, { COUNTS[1] }, WRITTEN>,
            visit::<KIND, { COUNTS[2] }, WRITTEN>,
            visit::<KIND, { COUNTS[3] }, WRITTEN>,
            visit::<KIND, { COUNTS[4] }, WRITTEN>,
            visit::<KIND, { COUNTS[5] }, WRITTEN>,
        ]
    }

    pub(super) fn main() -> Result<(), Failure> {
        let mut lines: Vec<[u64; 8]> =
            (0..LINES as u64).map(|i| [mix(i); 8]).collect();
        let flush = vec![1u64; FLUSH];
        let anywhere = |i: u64| mix(i + (1 << 40));
        // A hash whose `index` is `mix(i) % FEW`.
        let near = |i: u64| (mix(i) % FEW) * (u64::MAX / LINES as u64 + 1);
        let read = loops::<false>();
        let places: [(&str, [[Loop; 6]; 4], Vec<u64>); 4] = [
            ("memory", read, (0..KEYS).map(anywhere).collect()),
            ("pages", read, (0..KEYS).map(|i| anywhere(i % FEW)).collect()),
            ("cache", read, (0..KEYS).map(near).collect()),
            ("written", loops::<true>(), (0..KEYS).map(anywhere).collect()),
        ];
        let counts = COUNTS.map(|count| format!(" {count} |")).concat();
        print(&format!(
            "ns per line (best), by the number of extra instructions\n\
             | lines in | registers written |{counts}\n|---|---|{}\n",
            "---|".repeat(COUNTS.len())
        ))?;
        for (place, loops, hashes) in &places {
            let expected = hashes
                .iter()
                .fold(0, |sum, &hash| sum ^ mix(index(hash) as u64));
            let mut best = [[f64::INFINITY; COUNTS.len()]; KINDS.len()];
            for _ in 0..ROUNDS {
                for (best, loops) in best.iter_mut().zip(loops) {
                    for (best, act) in best.iter_mut().zip(loops) {
                        if matches!(*place, "memory" | "written") {
                            black_box(flush.iter().sum::<u64>());
                        }
                        let (ns, sum) = timed(|| act(&mut lines, hashes));
                        if sum != expected {
                            return Err("a line was not read".into());
                        }
                        *best = best.min(ns / KEYS as f64);
                    }
                }
            }
            for (kind, best) in KINDS.iter().zip(best) {
                let best = best.map(|ns| format!(" {ns:.1} |")).concat();
                print(&format!("| {place} | {kind} |{best}\n"))?;
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn visit<const KIND: u8, const COUNT: usize, const WRITTEN: bool>(
        lines: &mut [[u64; 8]],
        hashes: &[u64],
    ) -> u64 {
        let start = lines.as_ptr();
        let prefetch = |hash: u64| {
            let line = start.wrapping_add(index(hash));
            // SAFETY: PREFETCHh is a hint: it reads no value and raises no
            // fault whatever the address; SSE is part of the baseline.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(line.cast()) };
        };
        if !WRITTEN {
            hashes.iter().take(AHEAD).for_each(|&hash| prefetch(hash));
        }
        let mut sum = 0;
        for (i, &hash) in hashes.iter().enumerate() {
            if let (false, Some(&later)) = (WRITTEN, hashes.get(i + AHEAD)) {
                prefetch(later);
            }
            work::<KIND, COUNT>();
            let line = &mut lines[index(hash)];
            sum ^= line[0];
            if WRITTEN {
                line[1] ^= hash;
            }
        }
        sum
    }

    /// `COUNT` instructions with no dependency on other instructions.
    #[inline(always)]
    fn work<const KIND: u8, const COUNT: usize>() {
        // SAFETY: arithmetic in registers that are all declared as operands;
        // `pshufd` is in SSE2, part of the x86-64 baseline.
        unsafe {
            match KIND {
                0 => asm!(
                    ".rept {count}",
                    "nop",
                    ".endr",
                    count = const COUNT,
                    options(nomem, nostack, preserves_flags),
                ),
                1 => asm!(
                    ".rept {count}",
                    "lea {to}, [{from} + 1]",
                    ".endr",
                    count = const COUNT,
                    from = in(reg) 0u64,
                    to = out(reg) _,
                    options(nomem, nostack, preserves_flags),
                ),
                2 => asm!(
                    ".rept {count}",
                    "pshufd {to}, {from}, 27",
                    ".endr",
                    count = const COUNT,
                    from = in(xmm_reg) 0f64,
                    to = out(xmm_reg) _,
                    options(nomem, nostack, preserves_flags),
                ),
                _ => asm!(
                    ".rept {count}",
                    "lea {to}, [{from} + 1]",
                    "pshufd {wide_to}, {wide_from}, 27",
                    ".endr",
                    count = const COUNT / 2,
                    from = in(reg) 0u64,
                    to = out(reg) _,
                    wide_from = in(xmm_reg) 0f64,
                    wide_to = out(xmm_reg) _,
                    options(nomem, nostack, preserves_flags),
                ),
            }
        }
    }

    #[inline(always)]
    fn index(hash: u64) -> usize {
        ((u128::from(hash) * LINES as u128) >> 64) as usize
    }

    fn mix(number: u64) -> u64 {
        let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
