//! Tracking bits: a block remembers *which kinds* of keys it refused.
//!
//! Every key belongs to one of `bits` classes by its hash. A block that
//! refuses a key sets the bit of its class, and a lookup goes on to the next
//! block only if the bit of its own class is set: some key of that class
//! really was refused. One bit is a plain "something was refused here".

/// The class of a key at one of its choices.
#[inline(always)]
pub(crate) fn class(ticket: u64, bits: u32) -> u32 {
    ((u64::from(ticket as u32) * u64::from(bits)) >> 32) as u32
}

/// The share of classes a block has seen refused.
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
    fn classes_are_all_used() {
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
