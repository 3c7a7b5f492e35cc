//! The scalar function `tamis_contains`.

use std::num::NonZero;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use tamis::AnyFilter;
use tamis_arrow::{KeyRecord, KeyType, Keys};

use crate::external;
use crate::value::{constant, file, filter_type, is_filter};

/// `tamis_contains(filter, column)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TamisContains {
    signature: Signature,
}

impl Default for TamisContains {
    fn default() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for TamisContains {
    fn name(&self) -> &str {
        "tamis_contains"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [filter, key] = types else {
            return plan_err!(
                "tamis_contains takes a filter and a key, found {} arguments",
                types.len()
            );
        };
        let filter = match filter {
            DataType::Null => filter_type(),
            filter if is_filter(filter) => filter.clone(),
            filter => {
                return plan_err!(
                    "the first argument of tamis_contains is a filter of \
                     tamis_build or the bytes of its file, found {filter}"
                );
            }
        };
        Ok(vec![filter, key_column(key)?])
    }

    fn invoke_with_args(
        &self,
        arguments: ScalarFunctionArgs,
    ) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let [filter, keys] = &arguments.args[..] else {
            return exec_err!("tamis_contains takes two arguments");
        };
        match (filter, keys) {
            (ColumnarValue::Scalar(filter), ColumnarValue::Array(keys)) => {
                let found = look_up(constant(filter), keys)?;
                Ok(ColumnarValue::Array(Arc::new(found)))
            }
            (ColumnarValue::Scalar(filter), ColumnarValue::Scalar(key)) => {
                let found = look_up(constant(filter), &key.to_array()?)?;
                let found = ScalarValue::try_from_array(&found, 0)?;
                Ok(ColumnarValue::Scalar(found))
            }
            (ColumnarValue::Array(filters), keys) => {
                let found = look_up_each(filters, &keys.to_array(rows)?)?;
                Ok(ColumnarValue::Array(Arc::new(found)))
            }
        }
    }
}

/// The type to which a column of keys is cast: its own, except that the
/// literal `NULL` has none.
pub(crate) fn key_column(data_type: &DataType) -> Result<DataType> {
    if *data_type == DataType::Null {
        return Ok(DataType::Int64);
    }
    KeyType::of(data_type).map_err(external)?;
    Ok(data_type.clone())
}

/// The answers of one filter; null where the key is null, or the filter.
fn look_up(file: Option<&[u8]>, keys: &dyn Array) -> Result<BooleanArray> {
    const ONE: NonZero<usize> = NonZero::<usize>::MIN;
    let Some(file) = file else {
        return Ok(BooleanArray::new_null(keys.len()));
    };
    // Opening reads the header alone, in constant time.
    let filter = AnyFilter::from_bytes(file).map_err(external)?;
    let metadata = filter.metadata().map_err(external)?;
    let record = KeyRecord::of(&metadata).map_err(external)?;
    let keys = Keys::from_array(filter.hasher(), keys).map_err(external)?;
    if keys.present() > 0 {
        record.admit(&keys).map_err(external)?;
    }
    Ok(tamis_arrow::contains(&filter, &keys, ONE))
}

/// The answers of one filter per row.
fn look_up_each(filters: &dyn Array, keys: &ArrayRef) -> Result<BooleanArray> {
    let plain;
    let keys = match keys.data_type() {
        // Else every row would hash all values of the dictionary.
        DataType::Dictionary(_, values) => {
            plain = cast(keys, values)?;
            &plain
        }
        _ => keys,
    };
    let mut all = Vec::with_capacity(keys.len());
    for row in 0..keys.len() {
        let found = look_up(file(filters, row), &keys.slice(row, 1))?;
        all.push(found.iter().next().flatten());
    }
    Ok(all.into())
}
