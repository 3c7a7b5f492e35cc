//! The blocks that one choice is from.
#![expect(unsafe_code, reason = "a check that cannot fail, at each key")]

use super::address;

/// Blocks, at least one, of which a hash chooses one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range<'a, T> {
    /// Not empty.
    blocks: &'a [T],
}

impl<'a, T> Range<'a, T> {
    /// Nothing if there are no blocks.
    #[inline(always)]
    pub(crate) fn new(blocks: &'a [T]) -> Option<Self> {
        (!blocks.is_empty()).then_some(Self { blocks })
    }

    /// The blocks.
    #[inline(always)]
    pub(crate) fn all(self) -> &'a [T] {
        self.blocks
    }

    /// The block that a hash chooses: [`address`], without another check.
    /// That would be only two instructions, but in memory a batch of lookups
    /// is as fast as the keys are many that fit into the processor's window
    /// (see `docs/dev/performance-log.md`).
    #[inline(always)]
    pub(crate) fn choose(self, hash: u64) -> &'a T {
        self.choose_and_rest(hash).0
    }

    /// The same, and what of the hash has not chosen it.
    #[inline(always)]
    pub(crate) fn choose_and_rest(self, hash: u64) -> (&'a T, u64) {
        let (at, rest) = address(hash, self.blocks.len() as u64);
        // SAFETY: with n blocks, at = floor(hash * n / 2^64), and hash is
        // below 2^64, so that hash * n / 2^64 is below n (n > 0, since a
        // range is not empty): `at` is an index of `blocks`. It is at most
        // a usize, since n is one.
        (unsafe { self.blocks.get_unchecked(at as usize) }, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn chooses_what_the_address_says(
            hash in prop_oneof![Just(0), Just(u64::MAX), any::<u64>()],
            len in 0usize..100,
        ) {
            let blocks: Vec<usize> = (0..len).collect();
            let chosen = Range::new(&blocks).map(|range| *range.choose(hash));
            let (at, _) = address(hash, len as u64);
            prop_assert_eq!(chosen, (len > 0).then_some(at as usize));
        }
    }
}
