//! The stages of a distributed query: each is encoded, decoded in a context of
//! its own, and run there; results are passed on as Arrow IPC.

use std::path::Path;
use std::sync::Arc;

use crate::common::{file, local};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::ipc::{reader::StreamReader, writer::StreamWriter};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::{
    ExecutionPlan, collect, displayable, execute_stream,
    replace_children_if_necessary,
};
use datafusion::prelude::{CsvReadOptions, SessionConfig, SessionContext};
use datafusion::scalar::ScalarValue;
use datafusion_proto::bytes::{
    physical_plan_from_bytes, physical_plan_to_bytes,
};
use tamis::{AnyFilter, Kind};

const FILES: i64 = 6;
const ROWS: i64 = 3000;

/// The context of a process. Tasks of a stage run in several, so that they
/// cannot pass rows or files to each other.
fn process() -> SessionContext {
    let config = SessionConfig::new()
        .with_target_partitions(4)
        .set_bool("datafusion.optimizer.enable_round_robin_repartition", false)
        .set_bool(
            "datafusion.execution.enable_file_stream_work_stealing",
            false,
        );
    let context = SessionContext::new_with_config(config);
    tamis_datafusion::register(&context);
    context
}

/// The only node of a mode.
fn node(
    plan: &Arc<dyn ExecutionPlan>,
    mode: AggregateMode,
) -> Option<Arc<dyn ExecutionPlan>> {
    let is_aggregate = plan
        .downcast_ref::<AggregateExec>()
        .is_some_and(|aggregate| *aggregate.mode() == mode);
    match is_aggregate {
        true => Some(Arc::clone(plan)),
        false => plan.children().into_iter().find_map(|plan| node(plan, mode)),
    }
}

/// The plan as another process decodes it, and its context.
fn sent(
    plan: Arc<dyn ExecutionPlan>,
) -> (Arc<dyn ExecutionPlan>, SessionContext) {
    let bytes = physical_plan_to_bytes(plan).unwrap();
    let other = process();
    let plan = physical_plan_from_bytes(&bytes, &other.task_ctx()).unwrap();
    (plan, other)
}

/// Batches as another process receives them.
fn received(batches: &[RecordBatch]) -> Vec<RecordBatch> {
    let mut bytes = Vec::new();
    let schema = batches[0].schema();
    let mut writer = StreamWriter::try_new(&mut bytes, &schema).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    let reader = StreamReader::try_new(&bytes[..], None).unwrap();
    reader.collect::<Result<_, _>>().unwrap()
}

fn write_tables(place: &Path) {
    for part in 0..FILES {
        let ids = part * ROWS..(part + 1) * ROWS;
        let lines: Vec<_> = ids.map(|id| format!("{}\n", id * 3)).collect();
        let text = format!("id\n{}", lines.concat());
        std::fs::write(place.join(format!("{part}.csv")), text).unwrap();
    }
}

#[tokio::test]
async fn stages_run_where_plans_are_decoded() {
    let place = std::env::temp_dir()
        .join(format!("tamis-stages-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    write_tables(&place);
    let client = process();
    let path = place.to_string_lossy();
    let options = CsvReadOptions::new();
    client.register_csv("keys", &*path, options).await.unwrap();
    let items = FILES * ROWS;
    let sql =
        format!("select tamis_build(id, 0.01, {items}, 'blocked') from keys");
    let frame = client.sql(&sql).await.unwrap();
    let plan = frame.create_physical_plan().await.unwrap();

    // The first stage, one task per partition.
    let text = displayable(&*plan).indent(false).to_string();
    assert!(!text.contains("RepartitionExec"), "{text}");
    let partial = node(&plan, AggregateMode::Partial).unwrap();
    let partitions = partial.properties().partitioning.partition_count();
    assert!(partitions > 1);
    let mut states = Vec::new();
    for partition in 0..partitions {
        let (stage, executor) = sent(Arc::clone(&partial));
        let mut stream =
            stage.execute(partition, executor.task_ctx()).unwrap();
        let mut batches = Vec::new();
        while let Some(batch) = futures::StreamExt::next(&mut stream).await {
            batches.push(batch.unwrap());
        }
        states.push(received(&batches));
    }

    // The last stage, on the states.
    let last = node(&plan, AggregateMode::Final).unwrap();
    let schema = states[0][0].schema();
    let states: Vec<_> = states.into_iter().flatten().collect();
    let source =
        MemorySourceConfig::try_new_exec(&[states], schema, None).unwrap();
    let last = replace_children_if_necessary(last, vec![source]).unwrap();
    let (stage, executor) = sent(last);
    let filter = collect(stage, executor.task_ctx()).await.unwrap();
    let filter = received(&filter);
    let filter = ScalarValue::try_from_array(filter[0].column(0), 0).unwrap();

    let ids: ArrayRef =
        Arc::new((0..items).map(|id| Some(id * 3)).collect::<Int64Array>());
    let local = local(Kind::Blocked, 0.01, items as u64, &ids);
    let built = AnyFilter::from_bytes(file(&filter)).unwrap();
    assert_eq!(built.len(), local.len());
    assert!(built.to_bytes() == local.to_bytes());

    // A lookup, with the filter as a literal of the plan.
    let known = tamis_datafusion::tamis_contains().call(vec![
        datafusion::prelude::lit(filter),
        datafusion::prelude::col("id"),
    ]);
    let keys = client.table("keys").await.unwrap().filter(known).unwrap();
    let plan = keys.create_physical_plan().await.unwrap();
    let (stage, executor) = sent(plan);
    let mut found = 0;
    let mut stream = execute_stream(stage, executor.task_ctx()).unwrap();
    while let Some(batch) = futures::StreamExt::next(&mut stream).await {
        found += batch.unwrap().num_rows();
    }
    assert_eq!(found, items as usize);
    std::fs::remove_dir_all(&place).unwrap();
}
