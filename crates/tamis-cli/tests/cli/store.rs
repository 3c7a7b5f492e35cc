//! `tamis store`.
#![cfg(unix)]

use std::fs;

use crate::support::TestDir;

/// `count` rows of key, tab, value.
fn rows(count: u64) -> String {
    (0..count).map(|i| format!("key{i}\tvalue {}\n", i * i)).collect()
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn records_are_stored_found_and_deleted() {
    let dir = TestDir::new();
    dir.run("store create s").success();
    dir.run("store put s apple red").success();
    dir.run("store put s pear green").success();
    dir.run("store put s pear yellow").success();
    let found = dir.run("store get s apple pear plum");
    assert_eq!(found.success().text(), "apple\tred\npear\tyellow\n");
    assert_eq!(dir.run("store get s plum").status(1).text(), "");
    assert_eq!(dir.run("store get s -v apple plum").text(), "plum\n");
    assert_eq!(dir.run("store get s -c apple plum").text(), "1\n");
    assert_eq!(dir.run("store get s --values pear").text(), "yellow\n");
    let json = dir.run("store get s --json pear").json();
    assert_eq!(json["value"], "yellow");
    dir.run("store delete s pear plum").success();
    dir.run("store get s pear").status(1);
    assert_eq!(dir.run("store scan s").text(), "apple\tred\n");
}

/// Every mode of reading finds the same records.
#[test]
fn modes_of_reading_agree() {
    let dir = TestDir::new();
    dir.run("store create s").success();
    dir.write("rows", rows(5000));
    dir.run("store load s rows").success();
    let keys: String = (0..6000).map(|i| format!("key{i}\n")).collect();
    let mut modes = vec!["buffered"];
    if cfg!(target_os = "linux") {
        modes.push("mapped");
    }
    for mode in modes {
        let get = format!("store get s --read-mode {mode} -");
        let found = dir.feed(&get, keys.as_bytes());
        assert!(found.success().text() == rows(5000), "{mode}");
    }
    // Some file systems have no direct reads.
    let found = dir.feed("store get s --read-mode direct -", keys.as_bytes());
    match found.err.is_empty() {
        true => assert!(found.success().text() == rows(5000)),
        false => assert!(found.status(2).out.is_empty()),
    }
}

#[test]
fn keys_and_values_are_any_bytes() {
    let dir = TestDir::new();
    dir.run("store create s").success();
    dir.write("pairs", [[7u8; 16], [255; 16]].concat());
    let loaded = dir.run("store load s pairs --format u64le");
    assert_eq!(loaded.success().text(), "loaded 2 records\n");
    let found = dir.feed("store get s -0 -", &[[7; 8], [0; 8]].concat()[..9]);
    let mut expected = vec![7; 8];
    expected.push(b'\t');
    expected.extend([7; 8]);
    expected.push(0);
    assert!(found.success().out == expected);
    let scanned = dir.run("store scan s --json");
    assert!(
        scanned.success().text().contains(r#"{"hex":"ffffffffffffffff"}"#)
    );
    let empty = dir.feed("store put s empty -", b"");
    empty.success();
    assert_eq!(dir.run("store get s empty").text(), "empty\t\n");
}

#[test]
fn files_in_every_notation_give_the_same_records() {
    let dir = TestDir::new();
    let plain = "a\tone\nb\ttwo, three\nc\t\"four\"\n";
    dir.write("r.tsv", plain);
    dir.write(
        "r.csv",
        "id,note,text\na,-,one\nb,-,\"two, three\"\nc,-,\"\"\"four\"\"\"\n",
    );
    dir.write("bare.csv", "a,one\nb,\"two, three\"\nc,\"\"\"four\"\"\"\n");
    dir.write(
        "r.jsonl",
        "{\"key\":\"a\",\"value\":\"one\"}\n{\"value\":\"two, three\",\"key\":\
         \"b\"}\n{\"key\":\"c\",\"value\":\"\\\"four\\\"\"}\n",
    );
    for (i, load) in
        ["r.tsv", "r.csv --key id --value text", "bare.csv", "r.jsonl"]
            .iter()
            .enumerate()
    {
        dir.run(&format!("store create s{i}")).success();
        let loaded = dir.run(&format!("store load s{i} {load}"));
        assert_eq!(loaded.success().text(), "loaded 3 records\n", "{load}");
        let scanned = dir.run(&format!("store scan s{i}"));
        assert_eq!(sorted(scanned.text()), sorted(plain), "{load}");
    }
}

#[test]
fn many_records_are_loaded_compacted_and_verified() {
    let dir = TestDir::in_memory();
    let text = rows(200_000);
    dir.write("rows", &text);
    dir.run("store create s --absent-reads 0.001").success();
    let loaded = dir.run("store load s rows");
    assert_eq!(loaded.success().text(), "loaded 200,000 records\n");
    let stats = dir.run("store compact s --json").json();
    assert_eq!(stats["records"], 200_000);
    assert_eq!(stats["buffered"], 0);
    let verified = dir.run("store verify s --json").json();
    assert_eq!(verified["records"], 200_000);
    let scanned = dir.run("store scan s");
    assert!(sorted(scanned.success().text()) == sorted(&text));
    let keys: String = (0..200_000).map(|i| format!("key{i}\n")).collect();
    let found = dir.feed("store get s -", keys.as_bytes());
    assert!(found.success().text() == text);
    let again = dir.run("store stats s --json").json();
    assert_eq!(again["records"], 200_000);
    let total = again["ram"]["total"].as_u64();
    assert!(total <= again["ram"]["budget"].as_u64());
}

#[test]
fn plans_are_what_stores_have() {
    let dir = TestDir::new();
    let text: String =
        (0..50_000).map(|i| format!("{i:016}\t{i:0100}\n")).collect();
    dir.write("rows", text);
    let plan = dir.run(
        "store plan --items 50000 --record-bytes 116 --absent-reads 0.001 \
         --json",
    );
    let plan = plan.json();
    dir.run("store create s --absent-reads 0.001 --items 50000").success();
    dir.run("store load s rows").success();
    let stats = dir.run("store compact s --json").json();
    let near = |planned: f64, found: f64, tolerance: f64| {
        assert!(
            (found / planned - 1.0).abs() < tolerance,
            "planned {planned}, found {found}"
        );
    };
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    near(number(&plan["file_bytes"]), number(&stats["disk"]["data"]), 0.05);
    near(number(&plan["bits_per_key"]), number(&stats["bits_per_key"]), 0.05);
}

#[test]
fn errors_name_the_store_and_lose_nothing() {
    let dir = TestDir::new();
    assert!(dir.refused("store get s a").contains("tamis store create"));
    dir.run("store create s").success();
    assert!(dir.refused("store create s").contains("has a store already"));
    dir.write("bad.tsv", "a\tone\nb\ttwo\nno tab here\nc\tthree\n");
    let message = dir.refused("store load s bad.tsv");
    assert!(message.contains("record 3: no tab"), "{message}");
    assert!(message.contains("2 records before it are stored"), "{message}");
    assert_eq!(dir.run("store get s a b c").text(), "a\tone\nb\ttwo\n");
    dir.write("bad.jsonl", "{\"key\": 1}\n");
    assert!(
        dir.refused("store load s bad.jsonl").contains("no field `value`")
    );
    let message = dir.refused("store create t --items 1e9 --ram 64MiB");
    assert!(message.contains("--ram"), "{message}");
    assert!(!dir.path("t").exists());

    dir.run("store compact s -q").success();
    let data = dir.path("s/data");
    let mut bytes = fs::read(&data).unwrap();
    let at = bytes.windows(3).position(|w| w == b"one").unwrap();
    bytes[at] ^= 1;
    fs::write(&data, bytes).unwrap();
    let message = dir.refused("store verify s");
    assert!(message.contains("data is damaged at byte"), "{message}");
    assert!(dir.refused("store get s a").contains("damaged"));
}
