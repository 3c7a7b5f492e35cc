//! The reference codec: decodes a block of any shape, changes it, encodes it.
//!
//! The fast path is tested against it. Operations that need not be fast
//! (removal, merging, folding, growing, spilling) use it alone.

use alloc::vec::Vec;

use super::layout::{Form, STUCK, Shape};
use super::load::{Fingerprint, Outline, share, union_of};
use crate::block::Verdict;
use crate::error::{Error, Result};

/// The stored part of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) chain: u32,
    /// The fingerprint, in the highest bits; the others are 0.
    pub(crate) prefix: u64,
    /// Bits of the fingerprint.
    pub(crate) known: u32,
}

impl Entry {
    /// The entry of a key, not yet cut to the room its block has.
    pub(crate) fn new(chain: u32, fraction: u64) -> Self {
        Self { chain, prefix: fraction, known: 64 }
    }

    pub(crate) fn matches(&self, fraction: u64) -> bool {
        cut(self.prefix ^ fraction, self.known) == 0
    }

    /// Whether this entry matches every key that `other` matches.
    fn covers(&self, other: &Self) -> bool {
        self.chain == other.chain
            && self.known <= other.known
            && self.matches(other.prefix)
    }

    /// Whether this covers [`STUCK`] of the entries.
    fn is_group_in(&self, entries: &[Self]) -> bool {
        let covered = entries.iter().filter(|entry| self.covers(entry));
        covered.count() >= STUCK as usize
    }

    pub(super) fn last_bit(&self) -> bool {
        self.prefix >> (64 - self.known) & 1 == 1
    }

    fn cut(self, known: u32) -> Self {
        let known = known.min(self.known);
        Self { prefix: cut(self.prefix, known), known, ..self }
    }
}

/// The result of a removal.
///
/// ```
/// use tamis::{Removal, TinySet};
///
/// let mut filter =
///     TinySet::builder().items(1000).fpr(0.01).removable().build()?;
/// filter.insert("apple");
/// filter.insert_batch(&["hot"; 100]);
/// assert_eq!(filter.remove("apple")?, Removal::Removed);
/// assert_eq!(filter.remove("apple")?, Removal::Absent);
/// assert_eq!(filter.remove("hot")?, Removal::Stuck);
/// assert!(filter.contains("hot"));
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Removal {
    /// One entry that matches the key left the filter.
    Removed,
    /// The key may have been present, and the filter continues to answer
    /// "maybe": it holds 16 or more copies of the fingerprint and no longer
    /// counts them, or the key's block is saturated. The removal is
    /// subtracted from [`len`](crate::Filter::len).
    Stuck,
    /// The key certainly was not present. Nothing changed.
    Absent,
}

/// The highest `bits` bits of `word`.
fn cut(word: u64, bits: u32) -> u64 {
    word & !u64::MAX.checked_shr(bits).unwrap_or(0)
}

/// A decoded block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DecodedBlock {
    Holding(Contents),
    /// More entries than a block can encode: every lookup answers "maybe".
    Saturated,
}

/// The entries of a block that is not saturated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Contents {
    /// By chain; newest first in a chain.
    pub(crate) entries: Vec<Entry>,
    /// Slots the block is cut for.
    pub(crate) capacity: u32,
    /// Whether chains have moved to the second level.
    pub(crate) spilled: bool,
    /// Whether an extra bit of 0 matches every key.
    pub(crate) worn: bool,
}

impl DecodedBlock {
    /// Decodes a block.
    ///
    /// # Errors
    ///
    /// [`Error::Inconsistent`] if no sequence of operations leads to it.
    pub(crate) fn read(shape: &Shape, block: &[u8]) -> Result<Self> {
        let get = |bit| get(block, bit);
        let chains = shape.block.chains;
        let array = shape.block.array_bits();
        let flag = shape.form != Form::Plain && get(chains);
        let worn = shape.form == Form::Elastic && get(chains + 1);
        let used = (0..chains).filter(|&chain| get(chain)).count();
        if used == 0 {
            let spilled = matches!(shape.form, Form::Capped(_)) && flag;
            // The flag of a spilled block is no mark of saturation.
            let from = chains + u32::from(spilled);
            let ones =
                (from..shape.block.block_bits).filter(|&bit| get(bit)).count();
            return match ones as u32 {
                0 => Ok(Self::Holding(Contents {
                    spilled,
                    ..Contents::default()
                })),
                n if n == shape.block.block_bits - chains => {
                    Ok(Self::Saturated)
                }
                _ => Err(Error::Inconsistent(
                    "a block without chains has content",
                )),
            };
        }
        // Entries, chain by chain, as far as the *last* plane goes.
        let mut chain_of = Vec::new();
        let mut slot = 0;
        let mut walk = |chain: Option<u32>| loop {
            if slot == array {
                return Err(Error::Inconsistent("a chain has no end"));
            }
            chain_of.extend(chain);
            slot += 1;
            if get(shape.first() + slot - 1) {
                return Ok(slot);
            }
        };
        let mut slots = 0;
        for chain in (0..chains).filter(|&chain| get(chain)) {
            slots = walk(Some(chain))?;
        }
        let mut spilled = false;
        let capacity = match (shape.form, flag) {
            (Form::Elastic, true) => walk(None)?,
            (Form::Capped(cap), true) => {
                spilled = true;
                cap
            }
            _ => slots,
        };
        if let Form::Capped(cap) = shape.form {
            if slots > cap {
                return Err(Error::Inconsistent(
                    "a block holds more than its cap",
                ));
            }
        }
        let cut = shape.cut(capacity);
        let slots = (0..).zip(&chain_of);
        let mut entries: Vec<Entry> = slots
            .map(|(slot, &chain)| {
                let known = cut.width(slot);
                Entry { chain, prefix: 0, known }
            })
            .collect();
        for bit in 0..=cut.base {
            let (mut place, step) = cut.row(shape, bit);
            for entry in &mut entries {
                if bit < entry.known {
                    entry.prefix |= u64::from(get(place)) << (63 - bit);
                }
                place = place.wrapping_add_signed(step);
            }
        }
        for entry in &mut entries {
            if worn && entry.known > cut.base && !entry.last_bit() {
                entry.known = cut.base;
            }
        }
        Ok(Self::Holding(Contents { entries, capacity, spilled, worn }))
    }

    /// [`read`](Self::read), with an inconsistent block as a saturated one.
    pub(crate) fn read_or_saturated(shape: &Shape, block: &[u8]) -> Self {
        Self::read(shape, block).unwrap_or(Self::Saturated)
    }

    /// Encodes a block.
    pub(crate) fn write(&self, shape: &Shape, block: &mut [u8]) {
        block.fill(0);
        let contents = match self {
            Self::Holding(contents) => contents,
            Self::Saturated => {
                for bit in shape.block.chains..shape.block.block_bits {
                    set(block, bit);
                }
                return;
            }
        };
        let Contents { entries, capacity, spilled, worn } = contents;
        let slots = entries.len() as u32;
        let phantom = shape.form == Form::Elastic && slots < *capacity;
        if *spilled || phantom {
            set(block, shape.block.chains);
        }
        if *worn {
            set(block, shape.block.chains + 1);
        }
        let cut = shape.cut(*capacity);
        for (slot, entry) in (0..).zip(entries) {
            set(block, entry.chain);
            let next = entries.get(slot as usize + 1);
            if next.is_none_or(|next| next.chain != entry.chain) {
                set(block, shape.first() + slot);
            }
        }
        for bit in 0..=cut.base {
            let (mut place, step) = cut.row(shape, bit);
            for entry in entries {
                // Bits that the entry lacks are 0.
                if entry.prefix >> (63 - bit) & 1 == 1 {
                    set(block, place);
                }
                place = place.wrapping_add_signed(step);
            }
        }
        if phantom {
            set(block, shape.first() + capacity - 1);
        }
    }

    /// Adds an entry. Does not spill: the caller checks the cap.
    pub(crate) fn insert(self, shape: &Shape, entry: Entry) -> Self {
        let Self::Holding(mut contents) = self else { return self };
        let _ = contents.insert_below(entry, u32::MAX);
        contents.settle(shape)
    }

    /// Removes one matching entry, unless its group is stuck.
    pub(crate) fn remove(
        &mut self,
        shape: &Shape,
        chain: u32,
        fraction: u64,
    ) -> Removal {
        let contents = match self {
            Self::Holding(contents) => contents,
            // A saturated block has lost its entries.
            Self::Saturated => return Removal::Stuck,
        };
        // An entry whose extra bit is 1 matches only keys with a 1 there. One
        // without may be the only match of a key with a 0, so the longest
        // match is removed.
        let matching = contents
            .entries
            .iter()
            .enumerate()
            .filter(|(_, e)| e.chain == chain && e.matches(fraction))
            .max_by_key(|(_, e)| e.known);
        let Some((at, _)) = matching else { return Removal::Absent };
        if contents.is_stuck(shape, chain, fraction) {
            return Removal::Stuck;
        }
        contents.entries.remove(at);
        *self = match contents.entries.is_empty() {
            // No entry is left that was cut: the block starts afresh.
            true => Self::Holding(Contents::default()),
            false => core::mem::take(contents).settle(shape),
        };
        Removal::Removed
    }

    /// The entries of both blocks. With `once`, an entry is left out if
    /// another matches all of its keys; else if [`STUCK`] others do.
    pub(crate) fn merge(self, other: Self, shape: &Shape, once: bool) -> Self {
        let (Self::Holding(ours), Self::Holding(theirs)) = (self, other)
        else {
            return Self::Saturated;
        };
        let leave_out: &[_] = match once {
            true => &[LeaveOut::Either, LeaveOut::Theirs],
            false if ours.has_long_chain() => &[LeaveOut::TheirsIfStuck],
            false => &[],
        };
        for &leave_out in leave_out {
            let merged = ours.clone().chain(theirs.clone(), leave_out);
            // With entries left out, others may have moved to slots whose
            // extra bit they lack.
            if merged.fits(shape) {
                return merged.settle(shape);
            }
        }
        ours.chain(theirs, LeaveOut::None).settle(shape)
    }

    /// Two neighbouring blocks as the one they become when the number of
    /// blocks is halved: the address bit becomes the first fingerprint bit.
    pub(crate) fn fold(self, right: Self, shape: &Shape, once: bool) -> Self {
        let lengthen = |state: Self, bit: u64| match state {
            Self::Holding(mut contents) => {
                if !once {
                    contents.hold_groups(shape);
                }
                for entry in &mut contents.entries {
                    entry.prefix = entry.prefix >> 1 | bit << 63;
                    entry.known += 1;
                }
                // The old cut no longer applies.
                contents.capacity = 0;
                Self::Holding(contents)
            }
            Self::Saturated => Self::Saturated,
        };
        lengthen(self, 0).merge(lengthen(right, 1), shape, once)
    }

    /// The two blocks this one becomes when the number of blocks is
    /// doubled: the first fingerprint bit becomes an address bit. `once` as in
    /// [`merge`](Self::merge).
    pub(crate) fn split(self, elastic: &Shape, once: bool) -> [Self; 2] {
        let Self::Holding(mut contents) = self else {
            return [Self::Saturated, Self::Saturated];
        };
        if !once {
            contents.hold_groups(elastic);
        }
        let mut halves = [Contents::default(), Contents::default()];
        for entry in contents.entries {
            if entry.known == 0 {
                // It can belong to either half, so both get it.
                halves.iter_mut().for_each(|half| half.entries.push(entry));
                continue;
            }
            let half = &mut halves[(entry.prefix >> 63) as usize];
            let (prefix, known) = (entry.prefix << 1, entry.known - 1);
            half.entries.push(Entry { prefix, known, ..entry });
        }
        halves.map(|half| half.settle(elastic))
    }

    /// The false-positive rate of the block: the share of all chains and
    /// fractions that match an entry.
    pub(crate) fn rate(&self, shape: &Shape) -> f64 {
        let Self::Holding(contents) = self else { return 1.0 };
        let base = shape.cut(contents.capacity).base;
        let half_intervals: u32 = contents
            .chains()
            .map(|chain| {
                let mut chain: Vec<_> = chain
                    .iter()
                    .map(|entry| Fingerprint::new(entry.prefix, entry.known))
                    .collect();
                union_of(&mut chain, base).half_intervals
            })
            .sum();
        share(base, half_intervals) / f64::from(shape.block.chains)
    }

    /// Whether the block does not store a key that it matches.
    pub(crate) fn refuses(
        &self,
        shape: &Shape,
        chain: u32,
        fraction: u64,
    ) -> bool {
        let Self::Holding(contents) = self else { return true };
        shape.refuses_copies(shape.cut(contents.capacity).base)
            && self.count(shape, chain, fraction).is_none()
    }

    /// Number of matching entries; `None` if they are not counted, because
    /// their group is stuck or the block saturated.
    pub(crate) fn count(
        &self,
        shape: &Shape,
        chain: u32,
        fraction: u64,
    ) -> Option<u64> {
        let Self::Holding(contents) = self else { return None };
        let matching = contents
            .entries
            .iter()
            .filter(|e| e.chain == chain && e.matches(fraction));
        match matching.count() {
            0 => Some(0),
            _ if contents.is_stuck(shape, chain, fraction) => None,
            matching => Some(matching as u64),
        }
    }
}

/// The entries that a merge leaves out if another matches all of their keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeaveOut {
    None,
    Theirs,
    Either,
    /// Theirs, if [`STUCK`] of ours match all of their keys.
    TheirsIfStuck,
}

impl Contents {
    /// Adds an entry. Returns the entries of the highest chains if the block
    /// then has more than `cap`. Cuts nothing: see [`settle`](Self::settle).
    pub(crate) fn insert_below(
        &mut self,
        entry: Entry,
        cap: u32,
    ) -> Vec<Entry> {
        let at = self.entries.partition_point(|e| e.chain < entry.chain);
        self.entries.insert(at, entry);
        let mut from = self.entries.len();
        while from > cap as usize {
            let highest = self.entries[from - 1].chain;
            from = self.entries.partition_point(|e| e.chain < highest);
            self.spilled = true;
        }
        self.entries.split_off(from)
    }

    /// Whether keys of this chain are in the second level.
    pub(crate) fn has_spilled(&self, chain: u32) -> bool {
        self.spilled
            && self.entries.last().is_none_or(|entry| entry.chain < chain)
    }

    /// The entries of both, chain by chain.
    fn chain(self, other: Self, leave_out: LeaveOut) -> Self {
        let (mut ours, mut theirs) = (self.entries, other.entries);
        if leave_out == LeaveOut::Either {
            // Of two equal entries, ours stays.
            ours.retain(|entry| {
                !theirs.iter().any(|other| {
                    other.covers(entry) && other.known < entry.known
                })
            });
        }
        let enough = match leave_out {
            LeaveOut::None => usize::MAX,
            LeaveOut::Theirs | LeaveOut::Either => 1,
            LeaveOut::TheirsIfStuck => STUCK as usize,
        };
        if leave_out != LeaveOut::None {
            theirs.retain(|entry| {
                let covering = ours.iter().filter(|our| our.covers(entry));
                covering.take(enough).count() < enough
            });
        }
        let mut entries = ours;
        entries.extend(theirs);
        entries.sort_by_key(|entry| entry.chain);
        Self {
            entries,
            capacity: self.capacity.max(other.capacity),
            spilled: self.spilled || other.spilled,
            worn: false,
        }
    }

    /// The entries, chain by chain.
    fn chains(&self) -> impl Iterator<Item = &[Entry]> {
        self.entries.chunk_by(|a, b| a.chain == b.chain)
    }

    /// Whether a group can be stuck.
    fn has_long_chain(&self) -> bool {
        self.chains().any(|chain| chain.len() >= STUCK as usize)
    }

    /// Whether a group is stuck.
    pub(crate) fn has_stuck_groups(&self, shape: &Shape) -> bool {
        let base = shape.cut(self.capacity).base;
        self.chains().any(|chain| {
            chain.len() >= STUCK as usize
                && chain.iter().any(|e| e.cut(base).is_group_in(chain))
        })
    }

    /// Whether the group of a key is stuck.
    fn is_stuck(&self, shape: &Shape, chain: u32, fraction: u64) -> bool {
        let known = shape.cut(self.capacity).base;
        let group = Entry { chain, prefix: fraction, known };
        group.is_group_in(&self.entries)
    }

    /// Cuts the entries of stuck groups to the bits in which they agree: other
    /// widths cannot divide the groups then. Keeps [`STUCK`] of each group in
    /// elastic blocks. Other blocks keep all, because they are cut for the
    /// number of their entries: fewer entries would lack bits of wider slots.
    fn hold_groups(&mut self, shape: &Shape) {
        if !self.has_long_chain() {
            return;
        }
        let drops = shape.form == Form::Elastic;
        let base = shape.cut(self.capacity).base;
        let mut held = Vec::new();
        for chain in self.chains() {
            let first = held.len();
            for &entry in chain {
                let group = entry.cut(base);
                match group.is_group_in(chain) {
                    false => held.push(entry),
                    true if drops && group.is_group_in(&held[first..]) => {}
                    true => held.push(group),
                }
            }
        }
        self.entries = held;
    }

    /// Whether every entry has the bits of its slot.
    fn fits(&self, shape: &Shape) -> bool {
        let slots = self.entries.len() as u32;
        shape.form == Form::Elastic || slots > shape.block.array_bits() || {
            let cut = shape.cut(slots);
            (0..)
                .zip(&self.entries)
                .all(|(slot, e)| e.known >= cut.width(slot))
        }
    }

    /// Cuts all entries for the capacity they need.
    pub(crate) fn settle(mut self, shape: &Shape) -> DecodedBlock {
        let slots = self.entries.len() as u32;
        let least = self.entries.iter().map(|entry| entry.known).min();
        self.capacity = match shape.form {
            Form::Capped(cap) if self.spilled => cap,
            Form::Plain | Form::Capped(_) => slots,
            Form::Elastic => {
                let needed =
                    least.map_or(0, |known| shape.capacity_for(known));
                self.capacity.max(slots).max(needed)
            }
        };
        if self.capacity > shape.block.array_bits() {
            return DecodedBlock::Saturated;
        }
        let cut = shape.cut(self.capacity);
        let mut worn = false;
        for (slot, entry) in (0..).zip(&mut self.entries) {
            *entry = entry.cut(cut.width(slot));
            debug_assert!(entry.known >= cut.base, "an entry lacks bits");
            worn |= entry.known < cut.width(slot);
        }
        debug_assert!(!worn || shape.form == Form::Elastic);
        for entry in &mut self.entries {
            if worn && entry.known > cut.base && !entry.last_bit() {
                // A 0 in the extra plane matches every key.
                entry.known = cut.base;
            }
        }
        self.worn = worn;
        DecodedBlock::Holding(self)
    }
}

/// Looks a key up in a block of any shape without decoding it.
///
/// Agrees with [`DecodedBlock::count`], also on damaged blocks.
pub(crate) fn lookup(
    shape: &Shape,
    block: &[u8],
    chain: u32,
    fraction: u64,
) -> Verdict {
    let Some(outline) = Outline::of(shape, block) else {
        return Verdict::Maybe;
    };
    if outline.has_spilled(chain) {
        return Verdict::Continue;
    }
    let mut slots = outline.span(chain);
    match slots.any(|slot| outline.fingerprint(slot).matches(fraction)) {
        true => Verdict::Maybe,
        false => Verdict::Absent,
    }
}

fn get(block: &[u8], bit: u32) -> bool {
    block[bit as usize / 8] >> (bit % 8) & 1 == 1
}

fn set(block: &mut [u8], bit: u32) {
    block[bit as usize / 8] |= 1 << (bit % 8);
}
