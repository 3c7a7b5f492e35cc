//! The aggregate function `tamis_build`.

use std::num::NonZero;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray as _};
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Float64Type, Int64Type,
};
use datafusion::common::{exec_datafusion_err, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use tamis::{AnyFilter, Kind, Prefer, Size};
use tamis_arrow::{KeyRecord, Keys};

use crate::contains::key_column;
use crate::external;
use crate::value::{file, filter_type, filter_value};

/// Bits of a block: a cache line.
const BLOCK_BITS: u32 = 512;

/// `tamis_build(column, fpr, items [, kind])`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TamisBuild {
    signature: Signature,
}

impl Default for TamisBuild {
    fn default() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for TamisBuild {
    fn name(&self) -> &str {
        "tamis_build"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(filter_type())
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [key, settings @ ..] = types else {
            return plan_err!("tamis_build takes a column");
        };
        let settings: &[DataType] = match settings.len() {
            2 => &[DataType::Float64, DataType::Int64],
            3 => &[DataType::Float64, DataType::Int64, DataType::Utf8],
            _ => {
                return plan_err!(
                    "tamis_build takes a column, a false-positive rate, the \
                     number of keys and perhaps a kind"
                );
            }
        };
        let mut all = vec![key_column(key)?];
        all.extend_from_slice(settings);
        Ok(all)
    }

    fn accumulator(
        &self,
        call: AccumulatorArgs,
    ) -> Result<Box<dyn Accumulator>> {
        if call.is_distinct {
            return plan_err!(
                "tamis_build keeps one entry per key: leave DISTINCT out"
            );
        }
        Ok(Box::<Part>::default())
    }

    fn state_fields(&self, call: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let name = format_state_name(call.name, "file");
        Ok(vec![Arc::new(Field::new(name, DataType::LargeBinary, true))])
    }
}

/// The filter of a part of the rows; its state is the file.
#[derive(Debug, Default)]
struct Part {
    /// `None` before the first row.
    filter: Option<AnyFilter>,
    /// Arguments of the first row.
    settings: Option<Settings>,
    /// The record in the metadata of the filter.
    record: KeyRecord,
}

impl Accumulator for Part {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let [keys, settings @ ..] = columns else {
            return exec_err!("tamis_build takes a column");
        };
        if keys.is_empty() {
            return Ok(());
        }
        let settings = Settings::of(settings)?;
        if *self.settings.get_or_insert(settings) != settings {
            return Err(varying());
        }
        let filter = match &mut self.filter {
            Some(filter) => filter,
            none => none.insert(settings.build()?),
        };
        let keys =
            Keys::from_array(filter.hasher(), keys).map_err(external)?;
        if keys.present() == 0 {
            return Ok(());
        }
        if self.record.is_empty() {
            self.record = KeyRecord::for_type(keys.key_type());
            self.record.store(filter).map_err(external)?;
        }
        self.record.admit(&keys).map_err(external)?;
        let one = NonZero::<usize>::MIN;
        tamis_arrow::insert(filter, &keys, 0..keys.len(), one);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [files] = states else {
            return exec_err!("a state of tamis_build has one field");
        };
        for row in 0..files.len() {
            let Some(file) = file(files, row) else { continue };
            self.merge(file).map_err(external)?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let file = self.filter.as_ref().map(AnyFilter::to_bytes);
        Ok(vec![ScalarValue::LargeBinary(file)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match &self.filter {
            Some(filter) => filter_value(filter.to_bytes()),
            None => ScalarValue::try_from(filter_type()),
        }
    }

    fn size(&self) -> usize {
        let bytes = self.filter.as_ref().map_or(0, AnyFilter::bytes);
        size_of_val(self) + usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

impl Part {
    fn merge(&mut self, file: &[u8]) -> tamis_arrow::Result<()> {
        let theirs = AnyFilter::from_bytes(file)?;
        let their_record = KeyRecord::of(&theirs.metadata()?)?;
        let record = self.record.common(their_record)?;
        match &mut self.filter {
            Some(ours) => ours.merge_from(&theirs)?,
            none => *none = Some(theirs.into_owned()?),
        }
        if let (Some(ours), true) = (&mut self.filter, record != self.record) {
            record.store(ours)?;
            self.record = record;
        }
        Ok(())
    }
}

/// The arguments after the column.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Settings {
    fpr: f64,
    items: i64,
    /// Chosen for the rate if `None`.
    kind: Option<Kind>,
}

impl Settings {
    /// The value that all rows of the arguments have.
    fn of(columns: &[ArrayRef]) -> Result<Self> {
        let (fpr, items, kind) = match columns {
            [fpr, items] => (fpr, items, None),
            [fpr, items, kind] => (fpr, items, Some(kind)),
            _ => {
                return exec_err!("tamis_build takes three or four arguments");
            }
        };
        let kind = match kind {
            None => None,
            Some(kind) => {
                let kinds = kind.as_string::<i32>().iter();
                let kind: Kind = single(kinds, "kind")?
                    .parse()
                    .map_err(|error| exec_datafusion_err!("{error}"))?;
                Some(kind)
            }
        };
        Ok(Self {
            fpr: single(fpr.as_primitive::<Float64Type>().iter(), "fpr")?,
            items: single(items.as_primitive::<Int64Type>().iter(), "items")?,
            kind,
        })
    }

    /// An empty filter.
    fn build(self) -> Result<AnyFilter> {
        let Ok(items) = u64::try_from(self.items) else {
            return exec_err!("the number of keys is {}", self.items);
        };
        let size = Size::Fpr(self.fpr);
        let kind = match self.kind {
            Some(Kind::Balanced) => {
                return exec_err!(
                    "balanced filters cannot be merged: choose another kind"
                );
            }
            Some(kind) => kind,
            None => Kind::recommended(size, BLOCK_BITS, Prefer::Space)
                .map_err(external)?,
        };
        let builder = AnyFilter::builder(kind).size(size).items(items);
        builder.build().map_err(external)
    }
}

/// The value of all rows; an error if it is null or varies.
fn single<T: PartialEq + Copy>(
    mut rows: impl Iterator<Item = Option<T>>,
    name: &str,
) -> Result<T> {
    let Some(Some(value)) = rows.next() else {
        return exec_err!("the argument {name} of tamis_build is null");
    };
    match rows.all(|row| row == Some(value)) {
        true => Ok(value),
        false => Err(varying()),
    }
}

fn varying() -> datafusion::error::DataFusionError {
    exec_datafusion_err!(
        "the arguments of tamis_build after the column must be the same in \
         all rows"
    )
}
