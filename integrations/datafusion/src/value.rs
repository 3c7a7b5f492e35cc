//! Filters as SQL values.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, AsArray as _, LargeBinaryArray, StructArray,
};
use datafusion::arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;
use tamis::AnyFilter;

use crate::external;

/// The only field of a filter's type.
const FILE: &str = "file";

/// The SQL type of filters: `STRUCT<file LARGEBINARY>`.
///
/// A structure, because DataFusion clones a constant argument for every batch:
/// a structure shares its memory, a binary value copies its bytes.
///
/// ```
/// let filter = tamis_datafusion::filter_type();
/// assert!(filter.is_nested());
/// ```
#[must_use]
pub fn filter_type() -> DataType {
    DataType::Struct(fields())
}

fn fields() -> Fields {
    Fields::from(vec![Field::new(FILE, DataType::LargeBinary, false)])
}

/// A filter as a literal of SQL, without a copy of its bytes: of a
/// `Vec<u8>`, of `bytes::Bytes`, or of a memory map in `bytes::Bytes`.
///
/// # Errors
///
/// The bytes are not those of a filter.
///
/// ```
/// use datafusion::prelude::{SessionContext, col, lit};
/// use tamis_datafusion::{filter_value, tamis_contains};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let builder = tamis::TinySet::builder().fpr(1e-6);
/// let filter = builder.build_from([1u64, 4, 9, 16])?;
/// let filter = lit(filter_value(filter.to_bytes())?);
///
/// let rows = SessionContext::new().sql("values (3), (4), (5)").await?;
/// let squares = tamis_contains().call(vec![filter, col("column1")]);
/// assert_eq!(rows.filter(squares)?.count().await?, 1);
/// # Ok(())
/// # }
/// ```
pub fn filter_value(file: impl Into<Buffer>) -> Result<ScalarValue> {
    let file = file.into();
    AnyFilter::from_bytes(file.as_slice()).map_err(external)?;
    let end = i64::try_from(file.len()).unwrap_or(i64::MAX);
    let offsets = OffsetBuffer::new(ScalarBuffer::from(vec![0, end]));
    let column = LargeBinaryArray::try_new(offsets, file, None)?;
    let array = StructArray::try_new(fields(), vec![Arc::new(column)], None)?;
    Ok(ScalarValue::Struct(Arc::new(array)))
}

/// Whether a column of this type can hold filters: [`filter_type`], or the
/// bytes of files.
pub(crate) fn is_filter(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => match &fields[..] {
            [field] => is_file(field.data_type()),
            _ => false,
        },
        data_type => is_file(data_type),
    }
}

fn is_file(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView
    )
}

/// The file in a row of a column; `None` for null.
pub(crate) fn file(column: &dyn Array, row: usize) -> Option<&[u8]> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Struct(_) => {
            let [column] = column.as_struct().columns() else { return None };
            file(column, row)
        }
        DataType::Binary => Some(column.as_binary::<i32>().value(row)),
        DataType::LargeBinary => Some(column.as_binary::<i64>().value(row)),
        DataType::BinaryView => Some(column.as_binary_view().value(row)),
        _ => None,
    }
}

/// The file in a constant; `None` for null.
pub(crate) fn constant(value: &ScalarValue) -> Option<&[u8]> {
    match value {
        ScalarValue::Struct(array) => file(array.as_ref(), 0),
        ScalarValue::Binary(file)
        | ScalarValue::LargeBinary(file)
        | ScalarValue::BinaryView(file) => file.as_deref(),
        _ => None,
    }
}
