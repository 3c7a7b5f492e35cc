//! Filters of the product, in the experiments of the baselines.

use tamis::FilterMut;

use super::{Baseline, Error, Lines};

/// A filter of the product.
///
/// It records no lines; [`tamis::Stats::reads_miss`] is their mean. It does
/// not remove keys, because [`FilterMut`] does not.
///
/// ```
/// use tamis_lab::baseline::{Baseline, Product};
///
/// let filter = tamis::Bloom::builder().items(1000).fpr(0.01).build()?;
/// let mut filter = Product(filter);
/// filter.insert(17)?;
/// assert!(filter.contains(17) && filter.bits() > 9000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Product<F>(pub F);

impl<F: FilterMut> Baseline for Product<F> {
    fn name(&self) -> &'static str {
        self.0.kind().name()
    }

    fn insert(&mut self, key: u64) -> Result<(), Error> {
        let hash = self.0.hasher().hash(&key);
        self.0.insert_hash(hash);
        Ok(())
    }

    fn look_up(&self, key: u64, _lines: &mut Lines) -> bool {
        self.0.contains_hash(self.0.hasher().hash(&key))
    }

    fn bits(&self) -> u64 {
        8 * self.0.bytes()
    }
}
