//! The committed module and page.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tamis_theory::plan::{Prefer, Size, Task};
use tamis_theory::{blocked, split, standard, tinyset, tune};

fn published() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("../../docs/explorer/index.html")
}

#[test]
fn the_published_page_is_the_present_one() {
    let page = tamis_explorer::page();
    if std::env::var_os("TAMIS_WRITE_PAGE").is_some() {
        std::fs::write(published(), &page).unwrap();
    }
    let found = std::fs::read_to_string(published()).unwrap();
    assert!(found == page, "cargo xtask explorer writes docs/explorer");
    // Self-contained.
    assert!(!page.contains("src=") && !page.contains("http"));
}

/// Largest relative distance of all numbers of two answers that are equal
/// otherwise.
fn distance(one: &Value, other: &Value) -> f64 {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let [one, other] =
                [one, other].map(|n| n.as_f64().expect("finite"));
            if one == other { 0.0 } else { (one - other).abs() / one.abs() }
        }
        (Value::Array(one), Value::Array(other)) => {
            assert_eq!(one.len(), other.len());
            let pairs = one.iter().zip(other);
            pairs.map(|(one, other)| distance(one, other)).fold(0.0, f64::max)
        }
        (Value::Object(one), Value::Object(other)) => {
            // The order of the keys depends on a feature of serde_json, which
            // other packages of a build may request.
            assert_eq!(one.len(), other.len());
            let pairs = one.iter().map(|(key, value)| (value, &other[key]));
            pairs.map(|(one, other)| distance(one, other)).fold(0.0, f64::max)
        }
        (one, other) => {
            assert_eq!(one, other);
            0.0
        }
    }
}

/// `None` without Node.
fn in_node(calls: &Value) -> Option<Vec<Value>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/evaluate.mjs");
    let started = Command::new("node")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut node = match started {
        Ok(node) => node,
        Err(error) => {
            eprintln!("SKIPPED: node cannot be started: {error}");
            return None;
        }
    };
    let mut input = node.stdin.take().expect("stdin is a pipe");
    let written = input.write_all(calls.to_string().as_bytes());
    written.expect("node reads the calls");
    drop(input);
    let output = node.wait_with_output().expect("node ends");
    assert!(output.status.success());
    let answers = serde_json::from_slice(&output.stdout);
    Some(answers.expect("an array of answers"))
}

#[test]
fn the_module_answers_as_the_theory_of_this_machine() {
    let (mut calls, mut expected) = (Vec::new(), Vec::new());
    for block_bits in [512, 256] {
        let rates = [0.3, 0.05, 0.01, 1e-3, 2e-4, 1e-6].map(Size::Fpr);
        let memory = [4.0, 9.5, 16.0, 40.0].map(Size::BitsPerKey);
        // Out of range: the answer is an error.
        let wrong = [Size::Fpr(0.0), Size::BitsPerKey(1e9)];
        for size in rates.into_iter().chain(memory).chain(wrong) {
            for (items, miss_share, prefer) in [
                (1000, 0.9, Prefer::Space),
                (1 << 53, 0.1, Prefer::Speed),
                (1_000_000_007, 1.0, Prefer::Space),
            ] {
                let (by_rate, value) = match size {
                    Size::Fpr(fpr) => (1, fpr),
                    Size::BitsPerKey(bits) => (0, bits),
                };
                let speed = u32::from(prefer == Prefer::Speed);
                calls.push(json!([
                    "plan", items, by_rate, value, miss_share, block_bits,
                    speed
                ]));
                expected.push(tamis_explorer::plan(&Task {
                    items,
                    size,
                    miss_share,
                    block_bits,
                    prefer,
                }));
            }
        }
        for fpr in [0.2, 0.02, 1e-3, 1e-5] {
            for kind in 0..=7 {
                calls.push(json!(["point", kind, block_bits, fpr]));
                expected.push(tamis_explorer::point(kind, block_bits, fpr));
            }
            calls.push(json!(["limits", block_bits, fpr]));
            expected.push(tamis_explorer::limits(block_bits, fpr));
        }
    }
    let Some(found) = in_node(&Value::from(calls)) else { return };
    assert_eq!(found.len(), expected.len());
    let far: Vec<f64> = found
        .iter()
        .zip(&expected)
        .map(|(found, expected)| distance(found, expected))
        .collect();
    let most = far.iter().copied().fold(0.0, f64::max);
    assert!(most <= 1e-12, "{most:e}");
}

/// The numbers of `tamis theory fpr` and `tamis theory tune`.
#[test]
fn the_module_answers_as_the_commands_of_theory() {
    for bits in [512, 256] {
        for beta in [6.0, 12.25, 31.0] {
            let call = json!([["plan", 1000, 0, beta, 0.5, bits, 0]]);
            let Some(found) = in_node(&call) else { return };
            let line = tinyset::Block::new(bits, bits / 8);
            let mode = Some(tune::Mode::Popcount);
            let expected = [
                ("blocked", blocked::best(bits, beta).unwrap()),
                ("split", split::best(bits, beta).unwrap()),
                ("bloom", standard::best(beta).unwrap()),
                ("tinyset", {
                    let load = f64::from(bits) / beta;
                    tinyset::predict_once(line, load).unwrap()
                }),
                ("balanced", {
                    tune::best(bits, beta, 1.25, mode).unwrap().prediction
                }),
            ];
            let designs = found[0]["designs"].as_array().unwrap();
            for (title, theory) in expected {
                let mut all = designs.iter();
                let one = all.find(|one| one["title"] == title).unwrap();
                for (name, theory) in [
                    ("fpr", theory.fpr),
                    ("reads_hit", theory.reads_hit),
                    ("reads_miss", theory.reads_miss),
                    ("bits_per_key", theory.bits_per_key),
                ] {
                    let found = one[name].as_f64().unwrap();
                    let far = (found / theory - 1.0).abs();
                    assert!(far <= 1e-12, "{title} {name}: {far:e}");
                }
            }
        }
    }
}
