//! Both functions in SQL.

use std::sync::Arc;

use crate::common::{context, file, local, plan, rows, value};
use datafusion::arrow::array::{ArrayRef, AsArray as _, Int64Array};
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use tamis::{AnyFilter, Kind};
use tamis_datafusion::filter_value;

const KEYS: i64 = 20_000;

/// `keys(id)`: 20,000 numbers in several partitions.
async fn with_keys() -> SessionContext {
    let context = context();
    let create = format!(
        "create table keys as select value * 7 - 500 as id \
         from generate_series(0, {}) where value >= 0",
        KEYS - 1
    );
    context.sql(&create).await.unwrap().collect().await.unwrap();
    context
}

fn keys() -> ArrayRef {
    Arc::new((0..KEYS).map(|n| Some(n * 7 - 500)).collect::<Int64Array>())
}

#[tokio::test]
async fn partitions_merge_into_the_local_build() {
    let context = with_keys().await;
    for kind in [Kind::Bloom, Kind::Blocked, Kind::Split] {
        for fpr in [0.1, 0.001] {
            let sql = format!(
                "select tamis_build(id, {fpr}, {KEYS}, '{kind}') from keys"
            );
            let plan = plan(&context, &sql).await;
            assert!(plan.contains("mode=Partial"), "{plan}");
            assert!(plan.contains("partition_sizes=[5, 5, 5, 5]"), "{plan}");
            let built = file(&value(&context, &sql).await.unwrap());
            let local = local(kind, fpr, KEYS as u64, &keys());
            assert!(built == local.to_bytes(), "{kind} {fpr}");
        }
    }
}

#[tokio::test]
async fn tinysets_have_the_keys_and_the_rate() {
    let context = with_keys().await;
    let sql = format!("select tamis_build(id, 0.001, {KEYS}) from keys");
    let built = file(&value(&context, &sql).await.unwrap());
    let built = AnyFilter::from_bytes(built).unwrap();
    built.verify().unwrap();
    let local = local(Kind::TinySet, 0.001, KEYS as u64, &keys());
    assert_eq!(built.kind(), Kind::TinySet);
    assert_eq!(built.len(), local.len());
    assert_eq!(built.bytes(), local.bytes());
    assert_eq!(built.metadata().unwrap(), local.metadata().unwrap());
    let (rate, expected) =
        (built.stats().expected_fpr, local.stats().expected_fpr);
    assert!((rate / expected - 1.0).abs() < 0.02, "{rate} {expected}");
    assert!((0..KEYS).all(|n| built.contains(&((n * 7 - 500) as u64))));
}

#[tokio::test]
async fn a_filter_prunes_a_join() {
    let context = with_keys().await;
    let create = "create table big as \
                  select value as id from generate_series(-1000, 199000)";
    context.sql(create).await.unwrap().collect().await.unwrap();
    let filter = "(select tamis_build(id, 0.001, count) from keys, \
                  (select count(*) as count from keys))";
    let count = async |condition: &str| {
        let sql = format!("select count(*) from big where {condition}");
        match value(&context, &sql).await.unwrap() {
            ScalarValue::Int64(Some(count)) => count,
            other => panic!("{other:?}"),
        }
    };
    let kept = count(&format!("tamis_contains({filter}, id)")).await;
    // 180,001 rows without a partner: 180 expected, 14 the deviation.
    assert!((KEYS + 110..KEYS + 250).contains(&kept), "{kept}");
    let lost = format!(
        "id in (select id from keys) and not tamis_contains({filter}, id)"
    );
    assert_eq!(count(&lost).await, 0);
    // A constant: the plan has no join that repeats the filter per row.
    let sql = format!("select * from big where tamis_contains({filter}, id)");
    let plan = plan(&context, &sql).await;
    assert!(plan.contains("tamis_contains(scalar_subquery("), "{plan}");
}

#[tokio::test]
async fn nulls() {
    let context = context();
    let sql = "select tamis_contains(filter, key) from \
               (select tamis_build(column1, 0.001, 3) as filter \
                from (values (1), (null), (3))), \
               (values (1), (null), (2)) as t(key)";
    let found = rows(&context, sql).await.unwrap();
    let found: Vec<_> = found.column(0).as_boolean().iter().collect();
    assert_eq!(found, [Some(true), None, Some(false)]);

    for sql in [
        "select tamis_contains(null, 5)",
        "select tamis_contains((select tamis_build(1, 0.1, 1)), null)",
        "select tamis_contains(tamis_build(column1, 0.1, 1), 5) \
         from (values (1)) where column1 = 2",
    ] {
        let found = value(&context, sql).await.unwrap();
        assert_eq!(found, ScalarValue::Boolean(None), "{sql}");
    }
    // Rows without a key: an empty filter, for any type.
    let sql = "select tamis_build(arrow_cast(null, 'Int32'), 0.01, 5)";
    let empty = file(&value(&context, sql).await.unwrap());
    let empty = AnyFilter::from_bytes(empty).unwrap();
    assert!(empty.is_empty() && empty.metadata().unwrap().is_empty());
    let sql = format!("select tamis_contains(({sql}), 'pear')");
    let found = value(&context, &sql).await.unwrap();
    assert_eq!(found, ScalarValue::Boolean(Some(false)));
}

#[tokio::test]
async fn columns_of_one_key_type_agree() {
    let context = context();
    let groups: [(&[&str], &str, &str); 2] = [
        (
            &["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt32", "UInt64"],
            "7",
            "8",
        ),
        (
            &[
                "Utf8",
                "LargeUtf8",
                "Utf8View",
                "Binary",
                "LargeBinary",
                "BinaryView",
                "Dictionary(Int32, Utf8)",
            ],
            "'seven'",
            "'eight'",
        ),
    ];
    for (types, key, other) in groups {
        for built in types {
            for asked in types {
                let sql = format!(
                    "select tamis_contains(\
                     (select tamis_build(\
                      arrow_cast({key}, '{built}'), 1e-9, 2)), \
                     arrow_cast(column1, '{asked}')) \
                     from (values ({key}), ({other}))"
                );
                let found = rows(&context, &sql).await.unwrap();
                let found: Vec<_> =
                    found.column(0).as_boolean().iter().collect();
                assert_eq!(found, [Some(true), Some(false)], "{sql}");
            }
        }
    }
}

#[tokio::test]
async fn filters_of_groups_and_files() {
    let context = with_keys().await;
    let create = "create table filters as select id % 3 as part, \
                  tamis_build(id, 1e-6, 7000) as filter from keys group by 1";
    context.sql(create).await.unwrap().collect().await.unwrap();
    let filter_of = ["filter", "get_field(filter, 'file')", "f"];
    for filter in filter_of {
        let sql = format!(
            "select part, count(*), \
             sum(case when tamis_contains({filter}, id) then 1 else 0 end) \
             from keys join (select *, \
               arrow_cast(get_field(filter, 'file'), 'Binary') as f from filters) \
             on id % 3 = part group by part"
        );
        let found = rows(&context, &sql).await.unwrap();
        assert_eq!(found.num_rows(), 5);
        assert_eq!(found.column(1), found.column(2), "{filter}");
    }
    // Keys in a dictionary beside a column of filters.
    let sql = "select part, tamis_contains(filter, \
               arrow_cast('x', 'Dictionary(Int32, Utf8)')) from filters";
    let error = rows(&context, sql).await.unwrap_err().to_string();
    assert!(error.contains("are integers, not strings"), "{error}");
}

#[tokio::test]
async fn a_literal_of_a_filter() {
    use datafusion::prelude::{col, lit};

    let context = with_keys().await;
    let filter = local(Kind::Split, 1e-6, KEYS as u64, &keys());
    let literal = lit(filter_value(filter.to_bytes()).unwrap());
    let call = tamis_datafusion::tamis_contains()
        .call(vec![literal, col("id")])
        .is_false();
    let keys = context.table("keys").await.unwrap();
    assert_eq!(keys.filter(call).unwrap().count().await.unwrap(), 0);
    assert!(filter_value(b"no filter".to_vec()).is_err());
}

#[tokio::test]
async fn wrong_arguments_are_errors() {
    let context = with_keys().await;
    for (expression, message) in [
        ("tamis_build(id)", "takes a column, a false-positive rate"),
        ("tamis_build()", "takes"),
        ("tamis_build(id, 0.1, 5, 'bloom', 1)", "takes a column"),
        ("tamis_build(id / 2.0, 0.1, 5)", "Float64 values are not keys"),
        ("tamis_build(distinct id, 0.1, 5)", "leave DISTINCT out"),
        ("tamis_build(id, 0.1, 5, 'balanced')", "cannot be merged"),
        ("tamis_build(id, 0.1, 5, 'sieve')", "invalid kind"),
        ("tamis_build(id, 0.1, id)", "the same in all rows"),
        ("tamis_build(id, 0.1 + 1e-9 * id, 5)", "the same in all rows"),
        ("tamis_build(id, 0.1, null)", "items of tamis_build is null"),
        ("tamis_build(id, null, 5)", "fpr of tamis_build is null"),
        ("tamis_build(id, 0.1, 5, null)", "kind of tamis_build is null"),
        ("tamis_build(id, 0.1, -1)", "the number of keys is -1"),
        ("tamis_build(id, 1.5, 5)", "invalid false-positive rate"),
        ("tamis_build(id, 'NaN', 5)", "tamis_build"),
        ("tamis_build(id, 1e-9, 9e18)", "External error"),
        ("tamis_contains(id, id)", "the first argument of tamis_contains"),
        ("tamis_contains(id)", "takes a filter and a key"),
        ("tamis_contains(tamis_build(id, 0.1, 5), 0.5)", "are not keys"),
        ("tamis_contains(tamis_build(id, 0.1, 5), 'a')", "not strings"),
        ("tamis_contains(arrow_cast('a', 'Binary'), 1)", "External error"),
    ] {
        let sql = format!("select {expression} from keys");
        let error = rows(&context, &sql).await.unwrap_err().to_string();
        assert!(error.contains(message), "{expression}: {error}");
    }
}
