//! Tracking bits: the classes of keys that a block has refused.
//!
//! The hash of a key assigns it to one of `bits` classes. A block that refuses
//! a key sets the bit of the key's class. A lookup continues to the next block
//! only if the bit of its own class is set, because only then was a key of
//! that class refused. With one bit all keys share one class.
//!
//! Used by [`Balanced`](crate::Balanced) filters, whose blocks hold the bits,
//! and by the tables `table::Chained`.

/// The class of a key, from the [ticket](crate::placement::ticket) of one of
/// its choices.
#[inline(always)]
pub(crate) fn class(ticket: u64, bits: u32) -> u32 {
    ((u64::from(ticket as u32) * u64::from(bits)) >> 32) as u32
}

/// The share of classes with a set bit; 1 if the block tracks none.
pub(crate) fn share(tracked: u64, bits: u32) -> f64 {
    if bits == 0 {
        1.0
    } else {
        f64::from(tracked.count_ones()) / f64::from(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_used() {
        for bits in [1, 2, 3, 8, 16, 32] {
            let mut seen = 0u64;
            for ticket in 0..1000u64 {
                let class = class(ticket.wrapping_mul(0x9e37_79b9), bits);
                assert!(class < bits);
                seen |= 1 << class;
            }
            assert_eq!(seen.count_ones(), bits);
            assert_eq!(share(seen, bits), 1.0);
        }
        assert_eq!(share(0b101, 8), 0.25);
    }
}
