//! Predictions of any family of filters, with range checks.

use crate::search::{self, Family};
use crate::{Prediction, Result, check};

/// Predicts a filter of the family.
pub(crate) fn predict<F: Family>(
    family: &F,
    bits_per_key: f64,
    probes: u32,
) -> Result<Prediction> {
    let bits_per_key = check::bits_per_key(bits_per_key)?;
    let probes = check::probes(probes, F::MIN_PROBES)?;
    let table = family.table(probes, bits_per_key);
    Ok(family.predict(&table, probes, bits_per_key))
}

/// Predicts the filter of the family with the best number of probes.
pub(crate) fn best<F: Family>(
    family: &F,
    bits_per_key: f64,
) -> Result<Prediction> {
    Ok(search::best(family, check::bits_per_key(bits_per_key)?))
}

/// Finds the filter of the family with the least memory for a
/// false-positive rate.
pub(crate) fn for_fpr<F: Family>(
    family: &F,
    target: f64,
) -> Result<Prediction> {
    search::for_fpr(family, check::target(target)?)
}
