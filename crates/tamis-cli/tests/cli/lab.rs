//! `tamis lab`.

use crate::support::TestDir;

#[test]
fn experiments_write_figures_data_and_a_page() {
    let dir = TestDir::new();
    let list = dir.run("lab list").success().text().to_owned();
    assert!(list.lines().any(|line| line.starts_with("region ")), "{list}");
    let run = dir.run("lab run bound partition bound -o out --quick");
    let text = run.success().text().to_owned();
    assert_eq!(text.matches("reproduced").count(), 2, "{text}");
    for file in ["bound.csv", "bound.svg", "partition.csv", "report.json"] {
        assert!(!dir.read(&format!("out/{file}")).is_empty(), "{file}");
    }
    let page = String::from_utf8(dir.read("out/report.html")).unwrap();
    assert!(page.contains("id=\"planner\""));
    assert!(page.contains("prefers-color-scheme: dark"));
    assert!(page.contains("tamis lab run bound -o DIR --quick"));
}

#[test]
fn a_capture_replaces_the_generated_one() {
    let dir = TestDir::new();
    dir.write("t", "not a capture");
    let message = dir.run("lab run trace -o out --quick --trace t").refused();
    assert!(message.contains("neither a pcap nor a pcapng file"), "{message}");
    let run = dir.run("lab run trace -o out --quick --trace none.pcap");
    let message = run.refused();
    assert!(message.contains("none.pcap"), "{message}");
    // No other experiment reads it.
    let run = dir.run("lab run bound -o out --quick --trace t");
    let message = run.refused();
    assert!(message.contains("the experiment trace"), "{message}");
}

#[test]
fn unknown_experiments_are_errors() {
    let dir = TestDir::new();
    let message = dir.refused("lab run bound nothing -o out");
    assert!(message.contains("no experiment nothing"), "{message}");
    // Nothing was run or written before.
    assert!(!dir.path("out").exists());
    dir.write("file", "");
    let message = dir.refused("lab run bound -o file --quick");
    assert!(message.contains("file"), "{message}");
}
