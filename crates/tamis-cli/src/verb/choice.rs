//! Which kind a task gets that names none.

use std::ops::RangeInclusive;

use tamis::{Kind, TinySet, TinySetBuilder};
use tamis_theory::{Prediction, Result, blocked};

use super::Size;

/// What matters more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Prefer {
    /// The least memory
    Space,
    /// Bits to test, which takes a fraction of the time that fingerprints
    /// take to search
    Speed,
}

/// Where tinyset is taken unasked. Above, the Bloom kinds are smaller; below,
/// more than one kind is worth a look and `plan` should have it.
const RATES: RangeInclusive<f64> = 0.0001..=0.03;

/// The kind that reads one block and suits best, as `build` takes it and
/// `plan` starts from it.
pub(super) fn one_line(
    size: &Size,
    block_bits: u32,
    prefer: Prefer,
) -> Result<Kind> {
    let blocked = blocked(size, block_bits)?;
    if prefer == Prefer::Speed {
        return Ok(Kind::Blocked);
    }
    // A rate out of its reach is out of the range, too.
    let Ok(tinyset) = tinyset(size, block_bits).predict() else {
        return Ok(Kind::Blocked);
    };
    let (rate, better) = match size.fpr {
        Some(fpr) => (fpr, tinyset.bits_per_key < blocked.bits_per_key),
        None => (tinyset.fpr, tinyset.fpr < blocked.fpr),
    };
    let tinyset = better && RATES.contains(&rate);
    Ok(if tinyset { Kind::TinySet } else { Kind::Blocked })
}

pub(super) fn blocked(size: &Size, block_bits: u32) -> Result<Prediction> {
    size.predict(
        |fpr| blocked::for_fpr(block_bits, fpr),
        |bits| blocked::best(block_bits, bits),
    )
}

/// A tinyset of one level, add-only; change it to what else is wanted.
pub(super) fn tinyset(size: &Size, block_bits: u32) -> TinySetBuilder {
    let builder = TinySet::builder().block_bits(block_bits);
    match (size.fpr, size.bits_per_key) {
        (Some(fpr), _) => builder.fpr(fpr),
        // clap requires one of the two.
        (None, bits) => builder.bits_per_key(bits.unwrap_or_default()),
    }
}
