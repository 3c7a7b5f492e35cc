//! Default kind of `build` and starting point of `plan`.

use std::ops::RangeInclusive;

use tamis::{Kind, TinySet, TinySetBuilder};
use tamis_theory::{Prediction, Result, blocked};

use super::SizeArgs;

/// Objective of the choice of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Prefer {
    /// Least memory
    Space,
    /// Fastest lookups: testing bits takes a fraction of the time of
    /// searching fingerprints
    Speed,
}

/// Rates at which tinyset is the default. Above, the Bloom kinds are smaller.
/// Below, several kinds compete, and `plan` compares them.
const TINYSET_RATES: RangeInclusive<f64> = 0.0001..=0.03;

/// Best kind among those that read exactly one block per lookup.
pub(super) fn default_kind(
    size: &SizeArgs,
    block_bits: u32,
    prefer: Prefer,
) -> Result<Kind> {
    let blocked = blocked(size, block_bits)?;
    if prefer == Prefer::Speed {
        return Ok(Kind::Blocked);
    }
    // A rate that tinyset cannot reach is outside `TINYSET_RATES`.
    let Ok(tinyset) = tinyset(size, block_bits).predict() else {
        return Ok(Kind::Blocked);
    };
    let (rate, better) = match size.fpr {
        Some(fpr) => (fpr, tinyset.bits_per_key < blocked.bits_per_key),
        None => (tinyset.fpr, tinyset.fpr < blocked.fpr),
    };
    let tinyset = better && TINYSET_RATES.contains(&rate);
    Ok(if tinyset { Kind::TinySet } else { Kind::Blocked })
}

pub(super) fn blocked(size: &SizeArgs, block_bits: u32) -> Result<Prediction> {
    size.predict(
        |fpr| blocked::for_fpr(block_bits, fpr),
        |bits| blocked::best(block_bits, bits),
    )
}

/// Builder of a tinyset filter with one level and without removals.
pub(super) fn tinyset(size: &SizeArgs, block_bits: u32) -> TinySetBuilder {
    let builder = TinySet::builder().block_bits(block_bits);
    match (size.fpr, size.bits_per_key) {
        (Some(fpr), _) => builder.fpr(fpr),
        // clap requires one of the two.
        (None, bits) => builder.bits_per_key(bits.unwrap_or_default()),
    }
}
