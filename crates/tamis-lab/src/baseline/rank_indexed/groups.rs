//! Memory of all bundles, and the extensions that those of a group share.

use super::super::Error;
use super::super::bits::Bits;
use super::design::{Design, GROUP};

/// The slots of a bundle or of one of its extensions; no slots if it has no
/// such extension.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Segment {
    /// First of the bits that announce successors; the entries follow.
    pub(super) at: u64,
    pub(super) slots: u64,
}

/// Groups of bundles, each followed by its extensions.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    pub(super) design: Design,
    pub(super) bits: Bits,
}

impl Groups {
    pub(super) fn new(design: Design, groups: u64) -> Self {
        Self { design, bits: Bits::new(groups * design.group_bits()) }
    }

    pub(super) fn bundles(&self) -> u64 {
        self.bits.len() / self.design.group_bits() * GROUP
    }

    /// Bit offset of a bundle, which starts with its index.
    pub(super) fn bundle(&self, bundle: u64) -> u64 {
        self.group(bundle) + bundle % GROUP * self.design.bundle_bits()
    }

    /// The bundle's own slots and those of its extensions.
    pub(super) fn segments(&self, bundle: u64) -> [Segment; 3] {
        let [first, second] = self.design.tiers;
        let index = u64::from(self.design.chains);
        let after_pointer = |at: u64, tier: usize| {
            at + u64::from(self.design.tiers[tier].pointer_bits())
        };
        let own = after_pointer(self.bundle(bundle) + index, 0);
        let mut segments = [Segment::default(); 3];
        segments[0] = Segment { at: own, slots: self.design.slots };
        if let Some(at) = self.extension(bundle, 0) {
            let at = after_pointer(at + 1, 1);
            segments[1] = Segment { at, slots: first.slots };
        }
        if let Some(at) = self.extension(bundle, 1) {
            segments[2] = Segment { at: at + 1, slots: second.slots };
        }
        segments
    }

    /// Takes the extensions that `entries` entries need, and releases the
    /// others. [`Error::Full`] changes nothing if the bundle needs at most
    /// one extension more than before.
    pub(super) fn resize(
        &mut self,
        bundle: u64,
        entries: u64,
    ) -> Result<(), Error> {
        let [first, second] = self.design.tiers.map(|tier| tier.slots);
        let slots = self.design.slots;
        let limits = [slots, slots + first, slots + first + second];
        let needed = limits.iter().position(|limit| entries <= *limit);
        let needed = needed.ok_or(Error::Full)?;
        for tier in (needed..2).rev() {
            self.release(bundle, tier);
        }
        (0..needed).try_for_each(|tier| self.take(bundle, tier))
    }

    fn release(&mut self, bundle: u64, tier: usize) {
        let held = self.extension(bundle, tier);
        if let Some((at, pointer)) = held.zip(self.pointer(bundle, tier)) {
            let width = self.design.tiers[tier].pointer_bits();
            self.bits.set(pointer, width, 0);
            self.bits.set(at, 1, 0);
        }
    }

    /// Points to a free extension, unless the bundle has one. Its own
    /// pointer is empty, because the extension that it pointed to was
    /// released before it.
    fn take(&mut self, bundle: u64, tier: usize) -> Result<(), Error> {
        if self.extension(bundle, tier).is_some() {
            return Ok(());
        }
        let pointer = self.pointer(bundle, tier).ok_or(Error::Full)?;
        let place = |number| self.place(bundle, tier, number);
        let mut numbers = 0..self.design.tiers[tier].count;
        let free =
            numbers.find(|number| self.bits.get(place(*number), 1) == 0);
        let free = free.ok_or(Error::Full)?;
        self.bits.set(place(free), 1, 1);
        let width = self.design.tiers[tier].pointer_bits();
        self.bits.set(pointer, width, free + 1);
        Ok(())
    }

    /// Bit offset of the bundle's extension in `tier`, which starts with the
    /// bit that marks it as used.
    pub(super) fn extension(&self, bundle: u64, tier: usize) -> Option<u64> {
        let width = self.design.tiers[tier].pointer_bits();
        let pointer = self.bits.get(self.pointer(bundle, tier)?, width);
        Some(self.place(bundle, tier, pointer.checked_sub(1)?))
    }

    /// Bit offset of the pointer to the bundle's extension in `tier`, which
    /// is in the bundle or in its extension of the tier before.
    fn pointer(&self, bundle: u64, tier: usize) -> Option<u64> {
        match tier.checked_sub(1) {
            None => Some(self.bundle(bundle) + u64::from(self.design.chains)),
            Some(before) => Some(self.extension(bundle, before)? + 1),
        }
    }

    /// Bit offset of the extension `number` of the bundle's group.
    fn place(&self, bundle: u64, tier: usize, number: u64) -> u64 {
        let bundles = GROUP * self.design.bundle_bits();
        let earlier = (0..tier).map(|earlier| {
            self.design.tiers[earlier].count
                * self.design.extension_bits(earlier)
        });
        self.group(bundle)
            + bundles
            + earlier.sum::<u64>()
            + number * self.design.extension_bits(tier)
    }

    fn group(&self, bundle: u64) -> u64 {
        bundle / GROUP * self.design.group_bits()
    }
}
