//! Comparison of two layouts of the fingerprint block.
//!
//! `fields` is an alternative: index, *last* plane, plane of extra bits,
//! then the fingerprints as fields of equal width, right-aligned in the
//! line. A lookup extracts the fields of one chain with one unaligned load
//! and compares them all in one word. `planes` is the layout of
//! `tamis::TinySet`: heads of a byte or a nibble, compared all at once with
//! a vector instruction, and one plane per further bit.
//!
//! Both hold the same entries (the blocks of `fields` are written from
//! `TinySet::stored`) and look up the same keys in the same batches; answers
//! are compared key by key.
//!
//! ```text
//! cargo xtask bench layouts
//! ```
#![expect(unsafe_code, reason = "bit deposits and unaligned loads")]

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    eprintln!("both layouts need BMI2, an instruction set of x86-64");
}

#[cfg(target_arch = "x86_64")]
#[path = "../output.rs"]
mod output;

#[cfg(target_arch = "x86_64")]
fn main() -> std::process::ExitCode {
    output::exit_code("layouts", x86::main())
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch, _pdep_u64};

    use rustix::time::{ClockId, clock_gettime};
    use tamis::{TinySet, inspect::Inspector};

    use crate::output::print;

    type Result = std::result::Result<(), crate::output::Failure>;

    const ROUNDS: usize = 31;
    const AHEAD: usize = 32;

    pub(super) fn main() -> Result {
        if !(std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("popcnt")
            && std::is_x86_feature_detected!("lzcnt"))
        {
            return Err(
                "this processor lacks BMI1, BMI2, POPCNT or LZCNT".into()
            );
        }
        print(&format!(
            "batched lookups in 64-byte blocks, ns per key (best)\n\
             {:>9} {:>7} {:>6}  fields  planes\n",
            "keys", "rate", "lookup"
        ))?;
        for keys in [160_000u64, 2_500_000] {
            for rate in [0.01, 0.001, 0.0001] {
                compare(keys, rate)?;
            }
        }
        Ok(())
    }

    fn compare(keys: u64, rate: f64) -> Result {
        let mut filter = TinySet::builder().items(keys).fpr(rate).build()?;
        let members: Vec<u64> = (0..keys).map(mix).collect();
        filter.insert_hash_batch(&members);
        let fields = Fields::of(&filter);
        let hits: Vec<u64> = (0..1 << 19)
            .map(|i| members[(mix(i + keys) % keys) as usize])
            .collect();
        let misses: Vec<u64> =
            (0..1 << 19).map(|i| mix(i + (1 << 40))).collect();
        for (lookup, hashes) in [("hit", &hits), ("miss", &misses)] {
            let mut left = Vec::new();
            let mut right = vec![false; hashes.len()];
            let mut best = [f64::INFINITY; 2];
            for _ in 0..ROUNDS {
                let start = now();
                fields.contains_batch(hashes, &mut left);
                best[0] = best[0].min(now() - start);
                let start = now();
                filter.contains_hash_batch(hashes, &mut right);
                best[1] = best[1].min(now() - start);
            }
            if left != right {
                return Err("the layouts disagree".into());
            }
            if lookup == "hit" && left.contains(&false) {
                return Err("a key was lost".into());
            }
            let [fields, planes] = best.map(|best| best / hashes.len() as f64);
            print(&format!(
                "{keys:>9} {rate:>7} {lookup:>6} {fields:>7.1} \
                 {planes:>7.1}\n"
            ))?;
        }
        Ok(())
    }

    /// Nanoseconds of processor time of this thread.
    fn now() -> f64 {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    }

    /// SplitMix64's finaliser.
    fn mix(number: u64) -> u64 {
        let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    #[derive(Clone, Copy)]
    #[repr(align(64))]
    struct Block([u64; 8]);

    /// Field widths of a block, by its number of entries.
    #[derive(Clone, Copy, Default)]
    struct Widths {
        base: u32,
        wide: u32,
        /// The lowest bit of every field that fits a word, with fields
        /// aligned to the word's upper end.
        lowest: u64,
    }

    struct Fields {
        blocks: Vec<Block>,
        widths: Vec<Widths>,
    }

    impl Fields {
        fn of(filter: &TinySet) -> Self {
            let widths: Vec<Widths> = (0..=448).map(widths).collect();
            let mut blocks =
                vec![Block([0; 8]); filter.block_count() as usize];
            let stored: Vec<_> = Inspector::new(filter).stored().collect();
            for entries in stored.chunk_by(|a, b| a.block == b.block) {
                let count = entries.len() as u32;
                let Widths { base, wide, .. } = widths[count as usize];
                let block = &mut blocks[entries[0].block as usize];
                for (slot, entry) in (0..).zip(entries) {
                    set(block, entry.chain);
                    let next = entries.get(slot as usize + 1);
                    if next.is_none_or(|next| next.chain != entry.chain) {
                        set(block, 64 + slot);
                    }
                    let extra = u32::from(slot < wide);
                    if extra == 1 && entry.fingerprint & 1 == 1 {
                        set(block, 64 + count + slot);
                    }
                    let field = entry.fingerprint >> extra;
                    for bit in 0..base {
                        if field >> bit & 1 == 1 {
                            set(block, 512 - (count - slot) * base + bit);
                        }
                    }
                }
            }
            Self { blocks, widths }
        }

        fn contains_batch(&self, hashes: &[u64], found: &mut Vec<bool>) {
            found.clear();
            found.resize(hashes.len(), false);
            // SAFETY: `main` detected BMI1, BMI2, POPCNT and LZCNT.
            unsafe { self.contains_all(hashes, found) };
        }

        /// # Safety
        ///
        /// The processor must have the features named.
        #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
        unsafe fn contains_all(&self, hashes: &[u64], found: &mut [bool]) {
            let count = self.blocks.len() as u64;
            let address = |hash: u64| u128::from(hash) * u128::from(count);
            for (i, (&hash, found)) in
                hashes.iter().zip(&mut *found).enumerate()
            {
                if let Some(&later) = hashes.get(i + AHEAD) {
                    let at = (address(later) >> 64) as usize;
                    let line = self.blocks.as_ptr().wrapping_add(at);
                    // SAFETY: a prefetch is a hint that raises no fault,
                    // whatever the address.
                    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
                }
                let product = address(hash);
                let block = &self.blocks[(product >> 64) as usize];
                let chain = (hash as u16 >> 10).into();
                // SAFETY: BMI2 is a target feature of this function.
                *found = unsafe { self.look(block, chain, product as u64) };
            }
        }

        /// # Safety
        ///
        /// The processor must have BMI2.
        #[inline(always)]
        unsafe fn look(
            &self,
            block: &Block,
            chain: u32,
            fraction: u64,
        ) -> bool {
            let index = block.0[0];
            let chains = index.count_ones();
            let rank = (index & ((1 << chain) - 1)).count_ones();
            let starts = block.0[1] << 1 | 1;
            // One PDEP finds start, end and number of entries.
            let ranks = 3u64 << rank | 1u64.checked_shl(chains).unwrap_or(0);
            // SAFETY: the caller guarantees BMI2.
            let marks = unsafe { _pdep_u64(ranks, starts) };
            let present = index >> chain & 1;
            let count = 63 - marks.leading_zeros();
            let total = starts.count_ones();
            if chains >= 64 || total <= chains || chains == 0 {
                return present == 1 && self.look_far(block, chain, fraction);
            }
            let start = marks.trailing_zeros();
            let end = (marks & (marks - 1)).trailing_zeros();
            let Widths { base, wide, lowest } = self.widths[count as usize];
            let length = end.wrapping_sub(start) & 63;
            if length * base > 57 || base == 0 {
                return present == 1 && self.look_far(block, chain, fraction);
            }
            // Aligns the chain's last field to the upper end of a word.
            let behind = (count.wrapping_sub(end) & 63) * base;
            let at = 56 - behind as usize / 8;
            let bytes = block.0.as_ptr().cast::<u8>().wrapping_add(at);
            // SAFETY: `at <= 56`, and the block has 64 bytes. `at` does not
            // wrap: the fields of `count` entries have at most 448 bits, so
            // `behind / 8 <= 56`.
            let word = unsafe { bytes.cast::<u64>().read_unaligned() };
            let word = word << (behind % 8);
            let wanted = (fraction >> (64 - base)).wrapping_mul(lowest);
            // Makes fields of other chains differ.
            let others = u64::MAX.checked_shr(length * base).unwrap_or(0);
            let differs = (word ^ wanted) | others;
            let highest = lowest << (base - 1);
            let equal = differs.wrapping_sub(lowest) & !differs & highest;
            if equal == 0 || present == 0 {
                return false;
            }
            if wide == 0 {
                return true;
            }
            // Rarely more than one match: checks extra bits one by one.
            (start..end).any(|slot| {
                let from = 64 - (end - slot) * base;
                let field = differs >> from & ((1 << base) - 1);
                let extra = fraction >> (63 - base) & 1;
                let place = 64 + count + slot;
                let stored = block.0[place as usize / 64] >> (place % 64) & 1;
                field == 0 && (slot >= wide || stored == extra)
            })
        }

        /// Lookup for any number of entries, bit by bit.
        #[cold]
        fn look_far(&self, block: &Block, chain: u32, fraction: u64) -> bool {
            let get =
                |place: u32| block.0[place as usize / 64] >> (place % 64) & 1;
            let index = block.0[0];
            let (mut slot, mut span) = (0, 0..0);
            for number in (0..64).filter(|&number| index >> number & 1 == 1) {
                let start = slot;
                while get(64 + slot) == 0 {
                    slot += 1;
                }
                slot += 1;
                if number == chain {
                    span = start..slot;
                }
            }
            let count = slot;
            let Widths { base, wide, .. } = self.widths[count as usize];
            span.into_iter().any(|slot| {
                let from = 512 - (count - slot) * base;
                let same = (0..base).all(|bit| {
                    let wanted = fraction >> (64 - base + bit) & 1;
                    get(from + bit) == wanted
                });
                let extra = fraction >> (63 - base) & 1;
                same && (slot >= wide || get(64 + count + slot) == extra)
            })
        }
    }

    fn widths(entries: u32) -> Widths {
        if entries == 0 {
            return Widths::default();
        }
        let (mut base, mut wide) = (448 / entries - 1, 448 % entries);
        if base >= 26 {
            (base, wide) = (26, 0);
        }
        let mut lowest = 0;
        for field in 1..=64u32.checked_div(base).unwrap_or(0) {
            lowest |= 1 << (64 - field * base);
        }
        Widths { base, wide, lowest }
    }

    fn set(block: &mut Block, place: u32) {
        block.0[place as usize / 64] |= 1 << (place % 64);
    }
}
