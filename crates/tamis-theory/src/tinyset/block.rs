//! One fingerprint block.

use crate::Result;
use crate::check;

/// One fingerprint block: an index of one bit per chain, then an array that
/// is divided among the entries.
///
/// The hash of a key gives a chain and a remainder. Each of X entries has one
/// bit that marks the end of a chain and the first bits of its remainder, in
/// all `A / X` bits; the first `A mod X` entries have one bit more.
///
/// ```
/// use tamis_theory::tinyset::Block;
///
/// let line = Block::new(512, 64);
/// assert_eq!(line.array_bits(), 448);
/// // 40 entries: 10 bits each, the first 8 have 11.
/// assert_eq!(line.widths(40), (10, 8));
/// assert!((line.fpr(40) - 5.49169516e-4).abs() < 1e-12);
/// assert_eq!(line.removable().array_bits(), 447);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// B: bits of the block.
    pub block_bits: u32,
    /// L: chains, one index bit each.
    pub chains: u32,
    /// Bits beside index and array: none if keys are only added, one to mark
    /// freed slots or a block that spilled.
    pub flag_bits: u32,
    /// Whether an extra bit of 0 matches both values, as in a block with
    /// removals: a key that moved into a wider slot has no extra bit.
    pub wildcard: bool,
    /// R: length of the whole remainder.
    pub remainder_bits: u32,
}

impl Block {
    /// Remainder bits of a 64-bit hash that spends 32 on the block and 6 on
    /// the chain.
    ///
    /// ```
    /// use tamis_theory::tinyset::Block;
    ///
    /// // A nearly empty block leaves bits unused: 7 entries of 64 bits.
    /// assert_eq!(Block::new(512, 64).widths(7), (Block::REMAINDER_BITS, 0));
    /// ```
    pub const REMAINDER_BITS: u32 = 26;

    /// A block without removals.
    ///
    /// ```
    /// use tamis_theory::tinyset::Block;
    ///
    /// let block = Block::new(256, 32);
    /// assert_eq!((block.flag_bits, block.wildcard), (0, false));
    /// assert_eq!(block.array_bits(), 224);
    /// ```
    #[must_use]
    pub const fn new(block_bits: u32, chains: u32) -> Self {
        Block {
            block_bits,
            chains,
            flag_bits: 0,
            wildcard: false,
            remainder_bits: Self::REMAINDER_BITS,
        }
    }

    /// The same block with removals: one flag bit marks freed slots, and an
    /// extra bit is compared only if it is 1.
    ///
    /// ```
    /// use tamis_theory::tinyset::Block;
    ///
    /// let (add, remove) =
    ///     (Block::new(512, 64), Block::new(512, 64).removable());
    /// assert_eq!(remove.array_bits() + 1, add.array_bits());
    /// assert!(remove.fpr(40) > add.fpr(40));
    /// ```
    #[must_use]
    pub const fn removable(self) -> Self {
        Block { flag_bits: 1, wildcard: true, ..self }
    }

    /// A: bits of the array, B - L - `flag_bits`, or 0.
    ///
    /// ```
    /// use tamis_theory::tinyset::Block;
    ///
    /// assert_eq!(Block::new(512, 80).array_bits(), 432);
    /// assert_eq!(Block::new(64, 80).array_bits(), 0);
    /// ```
    #[must_use]
    pub const fn array_bits(&self) -> u32 {
        self.block_bits
            .saturating_sub(self.chains)
            .saturating_sub(self.flag_bits)
    }

    /// Keys per block at `bits_per_key`, for [`predict`](super::predict).
    ///
    /// Fails with [`Error::OutOfRange`](crate::Error::OutOfRange) outside
    /// 0.5 to 1000 bits per key.
    ///
    /// ```
    /// use tamis_theory::tinyset::Block;
    ///
    /// let line = Block::new(512, 64);
    /// assert_eq!(line.load(12.8)?, 40.0);
    /// let message = "bits per key must be between 0.5 and 1000, found 0";
    /// assert_eq!(line.load(0.0).unwrap_err().to_string(), message);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn load(&self, bits_per_key: f64) -> Result<f64> {
        let bits_per_key = check::bits_per_key(bits_per_key)?;
        Ok(f64::from(self.block_bits) / bits_per_key)
    }

    /// Base width of the remainders, and number of entries with one more
    /// bit.
    ///
    /// ```
    /// use tamis_theory::tinyset::Block;
    ///
    /// let block = Block::new(512, 64);
    /// assert_eq!(block.widths(56), (7, 0));
    /// assert_eq!(block.widths(57), (6, 49));
    /// assert_eq!(block.widths(448), (0, 0));
    /// // Every entry needs the bit that marks the end of a chain.
    /// assert_eq!(block.widths(449), (0, 0));
    /// assert_eq!(block.widths(0), (26, 0));
    /// ```
    #[must_use]
    pub const fn widths(&self, entries: u32) -> (u32, u32) {
        let array = self.array_bits();
        if entries > array {
            return (0, 0);
        }
        if entries == 0 {
            return (self.remainder_bits, 0);
        }
        let base = array / entries - 1;
        if base >= self.remainder_bits {
            // Bits beyond the whole remainders stay unused.
            return (self.remainder_bits, 0);
        }
        (base, array % entries)
    }

    /// False-positive rate of a block with `entries` entries, exact: one
    /// minus the chance that no entry matches.
    ///
    /// 1 for more entries than array bits: such a block cannot store them and
    /// answers "maybe" to every key.
    ///
    /// ```
    /// use tamis_theory::tinyset::Block;
    ///
    /// let block = Block::new(512, 64);
    /// assert_eq!(block.fpr(0), 0.0);
    /// assert!((block.fpr(64) - 0.0155054411).abs() < 1e-10);
    /// assert!(block.fpr(448) < 1.0);
    /// assert_eq!(block.fpr(449), 1.0);
    /// ```
    #[must_use]
    pub fn fpr(&self, entries: u32) -> f64 {
        if entries > self.array_bits() {
            return 1.0;
        }
        let (base, extended) = self.widths(entries);
        let plain = entries - extended;
        some_match(self.matches(base), extended, plain)
    }

    /// Chances that an entry with the extra bit, and one without, matches.
    pub(super) fn matches(&self, base: u32) -> [f64; 2] {
        let plain = one_match(self.chains, base);
        [plain * if self.wildcard { 0.75 } else { 0.5 }, plain]
    }

    /// The sum of all chances of a match, the paper's r p.
    pub(super) fn union_bound(&self, entries: u32) -> f64 {
        if entries > self.array_bits() {
            return 1.0;
        }
        let (base, extended) = self.widths(entries);
        let [long, short] = self.matches(base);
        long * f64::from(extended) + short * f64::from(entries - extended)
    }

    /// The rate without the extra bits.
    pub(super) fn one_size(&self, entries: u32) -> f64 {
        if entries > self.array_bits() {
            return 1.0;
        }
        let (base, _) = self.widths(entries);
        rate(self.chains, base, 0, entries)
    }

    /// Checks that the block has a chain and room for an entry.
    pub(super) fn check(self) -> Result<Self> {
        let all = check::in_range(
            "block_bits",
            f64::from(self.block_bits),
            MIN_BLOCK_BITS,
            MAX_BLOCK_BITS,
        )?;
        check::in_range("flag_bits", f64::from(self.flag_bits), 0.0, 16.0)?;
        let most = all - f64::from(self.flag_bits) - 1.0;
        check::in_range("chains", f64::from(self.chains), 1.0, most)?;
        let remainder = f64::from(self.remainder_bits);
        check::in_range("remainder_bits", remainder, 1.0, 64.0)?;
        Ok(self)
    }
}

/// The smallest block with room beside its index.
const MIN_BLOCK_BITS: f64 = 32.0;
/// The largest block of any filter here. Sizes need not be powers of two: the
/// paper also fixes the array and derives the block.
const MAX_BLOCK_BITS: f64 = 4096.0;

/// False-positive rate of a block in which `extended` entries keep `base` + 1
/// bits of their remainder and `plain` entries keep `base`.
///
/// For blocks whose widths do not follow from the number of entries: a block
/// that lost entries keeps the widths of its fullest time.
///
/// ```
/// use tamis_theory::tinyset::{Block, rate};
///
/// let block = Block::new(512, 64);
/// assert_eq!(rate(64, 10, 8, 32), block.fpr(40));
/// // Ten keys of forty, at the widths of forty.
/// assert!(rate(64, 10, 8, 2) > 1e4 * block.fpr(10));
/// assert_eq!(rate(64, 10, 0, 0), 0.0);
/// ```
#[must_use]
pub fn rate(chains: u32, base: u32, extended: u32, plain: u32) -> f64 {
    let one = one_match(chains, base);
    some_match([0.5 * one, one], extended, plain)
}

/// Chance that an entry of `base` bits matches a key that is not in the block.
pub(super) fn one_match(chains: u32, base: u32) -> f64 {
    // Without an index the block is one chain.
    libm::exp2(-f64::from(base)) / f64::from(chains.max(1))
}

/// Chance that at least one entry matches.
pub(super) fn some_match(
    [long, short]: [f64; 2],
    extended: u32,
    plain: u32,
) -> f64 {
    let mut log = 0.0;
    for (chance, entries) in [(long, extended), (short, plain)] {
        // 0 * ln(0) would be NaN.
        if entries > 0 {
            log += f64::from(entries) * libm::log1p(-chance);
        }
    }
    -libm::expm1(log)
}
