//! `tamis theory crisis` and `tamis theory summary` against independent
//! reference values.

use serde_json::Value;

use crate::{
    assert_fields, assert_same, json, number, numbers, rows, run, success,
};

fn reference(block: &str) -> Vec<Value> {
    rows(
        include_str!(
            "../../../tamis-theory/tests/fixtures/multilevel_reference.json"
        ),
        block,
    )
}

/// List as an option takes it.
fn list(values: &Value) -> String {
    let texts = values.as_array().unwrap().iter().map(Value::to_string);
    texts.collect::<Vec<String>>().join(",")
}

#[test]
fn items_are_parsed_as_in_plan_and_build() {
    let levels = "--levels 1900,650,250,100";
    assert_eq!(
        json(&format!("crisis --items 1e3 {levels}")),
        json(&format!("crisis --items 1000 {levels}"))
    );
    let kind = "--kind interpolation --bits 40";
    assert_eq!(
        json(&format!("summary --items 1_000 {levels} {kind}")),
        json(&format!("summary --items 1000 {levels} {kind}"))
    );
}

#[test]
fn crisis_probabilities_match() {
    let mut rows = 0;
    for row in reference("crisis") {
        // The largest row takes a second and tests no other code.
        if number(&row["n"]) > 1e6 {
            continue;
        }
        let (items, sizes) = (&row["n"], list(&row["sizes"]));
        let what = format!("crisis --items {items} --levels {sizes}");
        let got = json(&what);
        assert_fields(&got, "crisis heuristic level_items");
        assert_same(&what, &got["crisis"], number(&row["crisis"]));
        let heuristic = numbers(&row["heuristic_passed_on"]);
        assert_same(&what, &got["heuristic"], *heuristic.last().unwrap());
        let passed_on = numbers(&row["mean_passed_on"]);
        let levels = got["level_items"].as_array().unwrap();
        assert_eq!(levels.len(), passed_on.len(), "{what}");
        for (level, pair) in levels.iter().zip(passed_on.windows(2)) {
            assert_same(&what, level, pair[0] - pair[1]);
        }
        rows += 1;
    }
    assert_eq!(rows, 17);
}

#[test]
fn larger_buckets_match() {
    let mut rows = 0;
    for row in reference("capacity_exact") {
        let (items, bucket) = (&row["n"], &row["h"]);
        let what = format!(
            "crisis --items {items} --levels {} --bucket {bucket}",
            list(&row["pages"])
        );
        let got = json(&what);
        assert_same(&what, &got["crisis"], number(&row["crisis"]));
        assert_same(&what, &got["heuristic"], number(&row["fluid"]));
        rows += 1;
    }
    assert_eq!(rows, 4);
}

#[test]
fn churn_matches() {
    let mut rows = 0;
    for row in reference("churn") {
        if number(&row["h"]) > 8.0 {
            continue;
        }
        let (items, bucket) = (&row["n"], &row["h"]);
        let what = format!(
            "crisis --items {items} --levels {} --bucket {bucket} --churn",
            list(&row["sizes"])
        );
        let got = json(&what);
        assert_fields(
            &got,
            "crisis heuristic level_items crises_per_turnover \
             churn_level_items",
        );
        let passed_on = numbers(&row["churn_passed_on_erlang"]);
        let crises = passed_on.last().unwrap();
        assert_same(&what, &got["crises_per_turnover"], *crises);
        let levels = got["churn_level_items"].as_array().unwrap();
        assert_eq!(levels.len(), passed_on.len() - 1);
        for (level, pair) in levels.iter().zip(passed_on.windows(2)) {
            // A difference of numbers with ten digits.
            let want = pair[0] - pair[1];
            let gap = (number(level) - want).abs();
            assert!(gap < 1e-6 * want + 1e-9 * pair[0], "{what}: {level}");
        }
        rows += 1;
    }
    assert_eq!(rows, 3);
}

const SUMMARY: &str = "bits_per_item false_positive failure";

#[test]
fn filter_summaries_match() {
    let mut rows = 0;
    for row in reference("summaries") {
        if number(&row["n"]) > 1e5 {
            continue;
        }
        let table =
            format!("--items {} --levels {}", row["n"], list(&row["sizes"]));
        let levels = row["sizes"].as_array().unwrap().len();
        let single = &row["sf"];
        // Cells are packed into 64-bit words.
        let per_word = 64.0 / ((levels + 1) as f64).log2();
        let bits = number(&single["cells"]) * 64.0 / per_word.floor();
        let what = format!(
            "summary {table} --kind type-filter --bits {} --probes {}",
            bits.ceil(),
            single["k"]
        );
        let got = json(&what);
        assert_fields(&got, SUMMARY);
        assert_same(
            &what,
            &got["false_positive"],
            number(&single["false_positive"]),
        );
        assert_same(&what, &got["failure"], number(&single["failure"]));
        let ratio =
            number(&got["bits_per_item"]) / number(&single["bits_per_item"]);
        assert!((1.0..1.04).contains(&ratio), "{what}: {ratio}");
        let stack = &row["mbf"];
        let pairs = stack["filters"].as_array().unwrap();
        let part = |i: usize| {
            list(&pairs.iter().map(|pair| pair[i].clone()).collect())
        };
        let what = format!(
            "summary {table} --kind filter-stack --bits {} --probes {}",
            part(0),
            part(1)
        );
        let got = json(&what);
        assert_fields(&got, SUMMARY);
        for field in SUMMARY.split_whitespace() {
            assert_same(&what, &got[field], number(&stack[field]));
        }
        rows += 1;
    }
    assert_eq!(rows, 5);
}

#[test]
fn interpolation_matches() {
    let mut rows = 0;
    for row in reference("interpolation") {
        let what = format!(
            "summary --items {} --levels 30000,20000,10000 --kind \
             interpolation --bits {}",
            row["n"], row["bits_per_item"]
        );
        // The result is independent of the levels. Small tables are fast.
        if number(&row["n"]) > 1e5 {
            continue;
        }
        let got = json(&what);
        assert_fields(&got, SUMMARY);
        assert_same(&what, &got["failure"], number(&row["failure"]));
        assert_same(
            &what,
            &got["false_positive"],
            number(&row["false_positive"]),
        );
        let bits = number(&row["bits_per_item"]) + 2.0;
        assert_eq!(got["bits_per_item"], bits);
        rows += 1;
    }
    assert_eq!(rows, 3);
}

#[test]
fn filter_stack_accepts_a_list_of_strings() {
    let table = "--items 1000 --levels 1900,650,250 --kind filter-stack";
    let hit = |last: &str, probes: u32| {
        let got = json(&format!(
            "summary {table} --bits 9600,12000,{last} --probes 7,40,{probes}"
        ));
        number(&got["failure"])
    };
    assert!(hit("8", 0) > 10.0 * hit("48", 0));
    assert!(hit("1600", 40) < hit("8", 0));
}

#[test]
fn optimised_summaries_match() {
    let mut rows = 0;
    for row in reference("optimised_h1") {
        if number(&row["n"]) > 1e4 || number(&row["buckets_per_item"]) < 3.0 {
            continue;
        }
        let budget = number(&row["budget"]);
        let what = format!(
            "summary --optimise --items {} --buckets-per-item {} \
             --budget {budget:e}",
            row["n"], row["buckets_per_item"]
        );
        let got = json(&what);
        assert_fields(&got, "filter_stack type_filter interpolation");
        let kinds = [
            ("filter_stack", "mbf"),
            ("type_filter", "sf"),
            ("interpolation", "is"),
        ];
        for (kind, name) in kinds {
            let found = &got[kind];
            let bits = number(&found["bits_per_item"]);
            let ratio = bits / number(&row[name]["bits_per_item"]);
            assert!((0.93..1.001).contains(&ratio), "{what} {kind}: {ratio}");
            let risk = number(&found["crisis"]) + number(&found["failure"]);
            assert!(risk <= budget, "{what} {kind}: {risk}");
            assert!(number(&found["false_positive"]) <= 0.01);
            let sum: f64 = numbers(&found["levels"]).iter().sum();
            assert!(sum <= 3.0 * number(&row["n"]));
        }
        rows += 1;
        // The printed options reproduce the result.
        let stack = &got["filter_stack"];
        let part = |name: &str| {
            let filters = stack["filters"].as_array().unwrap().iter();
            list(&filters.map(|filter| filter[name].clone()).collect())
        };
        let again = json(&format!(
            "summary --items {} --levels {} --kind filter-stack --bits {} \
             --probes {}",
            row["n"],
            list(&stack["levels"]),
            part("bits"),
            part("probes")
        ));
        assert_eq!(again["failure"], stack["failure"]);
    }
    assert_eq!(rows, 2);
    let fewer = json(
        "summary --optimise --items 1000 --buckets-per-item 3 --choices 5 \
         --budget 1e-4 --max-false-positive 0.1",
    );
    assert_eq!(numbers(&fewer["filter_stack"]["levels"]).len(), 5);
    assert!(number(&fewer["filter_stack"]["false_positive"]) > 0.09);
}

#[test]
fn tables_have_the_values() {
    let text = success("crisis --items 10000 --levels 18000,7200,3600,1200");
    assert!(text.contains("probability of a crisis         0.0939331\n"));
    assert!(text.contains("7672.6"));
    let text = success(
        "summary --optimise --items 1000 --buckets-per-item 3 --budget 1e-6",
    );
    for word in ["filter-stack\n", "type-filter\n", "interpolation\n"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn invalid_arguments_are_refused_with_one_line() {
    let table = "--items 1000 --levels 1900,650";
    for (arguments, word) in [
        ("crisis --items 0 --levels 10".to_owned(), "items"),
        ("crisis --items 10 --levels 10,0".to_owned(), "buckets"),
        ("crisis --items 10 --levels 10 --bucket 0".to_owned(), "bucket"),
        ("crisis --items 99999999999 --levels 10".to_owned(), "items"),
        (format!("summary {table} --kind interpolation --bits 0"), "bits"),
        (format!("summary {table} --kind interpolation --bits 5,6"), "--bits"),
        (
            format!(
                "summary {table} --kind interpolation --bits 5 --probes 1"
            ),
            "--probes",
        ),
        (format!("summary {table} --kind type-filter --bits 900"), "--probes"),
        (
            format!("summary {table} --kind type-filter --bits 5 --probes 65"),
            "probes",
        ),
        (
            format!("summary {table} --kind filter-stack --bits 9 --probes 1"),
            "1 filters for 2 levels",
        ),
        (
            format!(
                "summary {table} --kind filter-stack --bits 9,9 --probes 1"
            ),
            "2 numbers of --bits",
        ),
        (
            "summary --optimise --items 1000 --buckets-per-item 1 --choices 2"
                .to_owned(),
            "crisis",
        ),
        (
            "summary --optimise --items 1000 --buckets-per-item nan"
                .to_owned(),
            "buckets per item",
        ),
        (
            "summary --optimise --items 1000 --buckets-per-item 3 --budget -1"
                .to_owned(),
            "budget",
        ),
    ] {
        let output = run(&arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(word), "{arguments}: {error}");
        assert!(output.stdout.is_empty());
    }
    // --optimise excludes the options of a given summary.
    for arguments in [
        "summary --items 10 --levels 10",
        "summary --items 10 --optimise",
        "summary --items 10 --optimise --buckets-per-item 3 --bits 9",
        "summary --items 10 --levels 9 --kind interpolation --bits 9 --budget 1",
    ] {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments}");
    }
}
