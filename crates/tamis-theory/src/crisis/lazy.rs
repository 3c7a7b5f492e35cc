//! Removed items that keep their slots until the table is rebuilt.

use alloc::vec::Vec;

use super::Occupancy;
use crate::{Result, check};

/// A table whose items are replaced, under lazy deletion: a removed item keeps
/// its slot, and the removal after `quota` others rebuilds the table from the
/// remaining items.
///
/// Between two rebuilds the table only grows, to n + `quota` items; hash
/// values do not depend on the items removed. The table is therefore a fresh
/// one with as many items, and no slot is reused.
///
/// ```
/// use tamis_theory::crisis::{churn, lazy};
///
/// let levels = [190_000, 65_000, 25_000, 15_000, 3000, 2000];
/// let lazy = lazy(100_000, &levels, 1, 25_000)?;
/// assert!((lazy.crisis_per_rebuild - 6.2e-6).abs() < 0.1e-6);
/// assert!(churn(100_000, &levels, 1)?.crises_per_turnover > 12.6);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Lazy {
    /// The chance that an item finds no room between one rebuild and the
    /// next, the rebuild included.
    pub crisis_per_rebuild: f64,
    /// Rebuilds with such an item during n replacements.
    pub crises_per_turnover: f64,
    /// Mean number of slots taken in each level just before a rebuild.
    pub level_slots: Vec<f64>,
}

/// Computes the rebuild cycle of a table of `items` items in which every
/// removal is followed by the insertion of a new item.
///
/// ```
/// use tamis_theory::crisis::{Occupancy, lazy};
///
/// let levels = [1900, 650, 250, 100];
/// let cycle = lazy(1000, &levels, 1, 250)?;
/// let filled = Occupancy::new(1250, &levels, 1)?;
/// assert_eq!(cycle.crisis_per_rebuild, filled.crisis());
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn lazy(
    items: u64,
    levels: &[u64],
    bucket: u32,
    quota: u64,
) -> Result<Lazy> {
    let most = super::MAX_ITEMS as f64;
    check::in_range("quota", quota as f64, 0.0, most)?;
    let filled = Occupancy::new(items.saturating_add(quota), levels, bucket)?;
    let crisis_per_rebuild = filled.crisis();
    let rebuilds = items as f64 / (quota as f64 + 1.0);
    Ok(Lazy {
        crisis_per_rebuild,
        crises_per_turnover: crisis_per_rebuild * rebuilds,
        level_slots: filled.level_items(),
    })
}
