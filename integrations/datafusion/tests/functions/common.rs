//! Contexts, queries and local builds.

use std::num::NonZero;

use datafusion::arrow::array::{Array, ArrayRef, AsArray as _, RecordBatch};
use datafusion::error::Result;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::scalar::ScalarValue;
use tamis::{AnyFilter, Kind};
use tamis_arrow::{KeyRecord, Keys};

/// A context with both functions and several partitions per query.
pub(crate) fn context() -> SessionContext {
    let config =
        SessionConfig::new().with_target_partitions(4).with_batch_size(1000);
    let context = SessionContext::new_with_config(config);
    tamis_datafusion::register(&context);
    context
}

pub(crate) async fn rows(
    context: &SessionContext,
    sql: &str,
) -> Result<RecordBatch> {
    let frame = context.sql(sql).await?;
    let schema = frame.schema().inner().clone();
    let batches = frame.collect().await?;
    Ok(datafusion::arrow::compute::concat_batches(&schema, &batches)?)
}

/// The only value of a query.
pub(crate) async fn value(
    context: &SessionContext,
    sql: &str,
) -> Result<ScalarValue> {
    let rows = rows(context, sql).await?;
    assert_eq!((rows.num_rows(), rows.num_columns()), (1, 1), "{sql}");
    ScalarValue::try_from_array(rows.column(0), 0)
}

/// The file in a filter.
pub(crate) fn file(filter: &ScalarValue) -> Vec<u8> {
    let ScalarValue::Struct(array) = filter else { panic!("{filter:?}") };
    assert!(array.is_valid(0));
    array.column(0).as_binary::<i64>().value(0).to_vec()
}

/// The physical plan, as text.
pub(crate) async fn plan(context: &SessionContext, sql: &str) -> String {
    let frame = context.sql(sql).await.unwrap();
    let plan = frame.create_physical_plan().await.unwrap();
    displayable(&*plan).indent(false).to_string()
}

/// The filter that one thread builds of a column.
pub(crate) fn local(
    kind: Kind,
    fpr: f64,
    items: u64,
    column: &ArrayRef,
) -> AnyFilter {
    let builder = AnyFilter::builder(kind).fpr(fpr).items(items);
    let mut filter = builder.build().unwrap();
    let keys = Keys::from_array(filter.hasher(), column).unwrap();
    KeyRecord::for_type(keys.key_type()).store(&mut filter).unwrap();
    let one = NonZero::<usize>::MIN;
    tamis_arrow::insert(&mut filter, &keys, 0..keys.len(), one);
    filter
}
