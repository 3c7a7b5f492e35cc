//! Tables: where is the key, and what belongs to it?
//!
//! ```
//! use tamis::table::Chained;
//!
//! let mut table = Chained::builder().items(1000).build()?;
//! table.insert("apple".to_string(), 3);
//! assert_eq!(table.get("apple"), Some(&3));
//! # Ok::<(), tamis::Error>(())
//! ```

mod chained;

pub use chained::{Chained, ChainedBuilder, ChainedDesign, ChainedStats};
