#![doc = include_str!("../README.md")]

mod build;
mod contains;
mod value;

use datafusion::error::DataFusionError;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::prelude::SessionContext;

pub use value::{filter_type, filter_value};

/// Registers `tamis_build` and `tamis_contains`.
///
/// ```
/// use datafusion::prelude::SessionContext;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let context = SessionContext::new();
/// tamis_datafusion::register(&context);
/// let sql = "select tamis_contains(tamis_build(column1, 0.001, 2), 7) \
///            from (values (7), (8))";
/// assert_eq!(context.sql(sql).await?.count().await?, 1);
/// # Ok(())
/// # }
/// ```
pub fn register(context: &SessionContext) {
    context.register_udaf(tamis_build());
    context.register_udf(tamis_contains());
}

/// The aggregate function `tamis_build(column, fpr, items [, kind])`, for
/// registries other than a [`SessionContext`].
#[must_use]
pub fn tamis_build() -> AggregateUDF {
    build::TamisBuild::default().into()
}

/// The scalar function `tamis_contains(filter, column)`, for registries other
/// than a [`SessionContext`].
#[must_use]
pub fn tamis_contains() -> ScalarUDF {
    contains::TamisContains::default().into()
}

/// An error of the library as one of DataFusion.
fn external(error: impl Into<tamis_arrow::Error>) -> DataFusionError {
    DataFusionError::External(Box::new(error.into()))
}
