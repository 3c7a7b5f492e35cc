//! The examples of README.md, run as printed.

use std::iter::Peekable;

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::{SessionConfig, SessionContext};

/// Blocks of code with their languages.
fn blocks(text: &str) -> Vec<(&str, String)> {
    let mut lines = text.lines();
    let mut blocks = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let body: Vec<_> =
                lines.by_ref().take_while(|&line| line != "```").collect();
            blocks.push((language, body.join("\n")));
        }
    }
    blocks
}

fn expected<'a>(
    blocks: &mut Peekable<impl Iterator<Item = (&'a str, String)>>,
) -> Option<String> {
    blocks.next_if(|(language, _)| *language == "text").map(|block| block.1)
}

#[tokio::test]
async fn examples_print_what_is_printed() {
    let config = SessionConfig::new().with_target_partitions(3);
    let context = SessionContext::new_with_config(config);
    tamis_datafusion::register(&context);
    let blocks = blocks(include_str!("../../README.md"));
    let mut blocks = blocks.into_iter().peekable();
    let mut compared = 0;
    while let Some((language, sql)) = blocks.next() {
        if language != "sql" {
            continue;
        }
        let rows = match context.sql(&sql).await {
            Ok(rows) => rows.collect().await,
            Err(error) => Err(error),
        };
        let Some(expected) = expected(&mut blocks) else {
            rows.unwrap();
            continue;
        };
        let printed = match rows {
            Ok(rows) => pretty_format_batches(&rows).unwrap().to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(printed, expected, "{sql}");
        compared += 1;
    }
    assert_eq!(compared, 4);
}
