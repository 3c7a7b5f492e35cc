//! `tamis theory` against independent reference values.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod tables;

use std::collections::BTreeMap;
use std::process::{Command, Output};

use serde_json::Value;

fn reference(block: &str) -> Vec<Value> {
    rows(
        include_str!(
            "../../../tamis-theory/tests/fixtures/reference_values.json"
        ),
        block,
    )
}

fn tinyset_reference(block: &str) -> Vec<Value> {
    rows(
        include_str!(
            "../../../tamis-theory/tests/fixtures/tinyset_reference.json"
        ),
        block,
    )
}

fn rows(file: &str, block: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(file).unwrap();
    all[block].as_array().unwrap().clone()
}

fn run(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tamis"))
        .arg("theory")
        .args(arguments.split_whitespace())
        .output()
        .unwrap()
}

#[track_caller]
fn success(arguments: &str) -> String {
    let output = run(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn json(arguments: &str) -> Value {
    serde_json::from_str(&success(&format!("{arguments} --json"))).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

/// Asserts equality to six significant digits.
#[track_caller]
fn assert_same(what: &str, got: &Value, want: f64) {
    let gap = (number(got) - want).abs();
    assert!(gap <= 1e-6 * want.abs(), "{what}: {got}, reference {want}");
}

#[track_caller]
fn assert_fields(report: &Value, fields: &str) {
    let got: Vec<&String> = report.as_object().unwrap().keys().collect();
    let want: Vec<&str> = fields.split_whitespace().collect();
    assert_eq!(got, want);
}

/// The two rules of removal on the table of the documents.
#[test]
fn lazy_deletion_keeps_crises_rare() {
    let table = "crisis --items 100000 \
                 --levels 190000,65000,25000,15000,3000,2000 --churn";
    let quarter = json(&format!("{table} --quota 0.25"));
    let crisis = number(&quarter["crisis_per_rebuild"]);
    assert!((crisis - 6.2e-6).abs() < 0.1e-6, "{crisis}");
    assert!((number(&quarter["crises_per_turnover"]) - 12.65).abs() < 0.01);
    let lazy = number(&quarter["lazy_crises_per_turnover"]);
    assert!((lazy / (4.0 * crisis) - 1.0).abs() < 1e-3, "{lazy}");
    let half = json(&format!("{table} --quota 0.5"));
    let crisis = number(&half["crisis_per_rebuild"]);
    assert!((crisis - 0.034).abs() < 0.001, "{crisis}");
}

#[test]
fn bounds_match_theorem_1() {
    let (mut rows, mut infinite) = (0, 0);
    for row in reference("theorem1") {
        rows += 1;
        let [a, r, gamma] = ["a", "r", "gamma"].map(|key| number(&row[key]));
        let what =
            format!("bound --access-budget {a} --load {r} --overflow {gamma}");
        let got = json(&what);
        assert_fields(
            &got,
            "threshold admission distribution mean variance e0 p0",
        );
        let shares = got["distribution"].as_array().unwrap();
        let want = numbers(&row["P"]);
        assert!(shares.len() >= want.len(), "{what}");
        for (share, want) in shares.iter().zip(want) {
            // The last share of the reference is a difference, exact to
            // 1e-13.
            if (number(share) - want).abs() > 1e-13 {
                assert_same(&what, share, want);
            }
        }
        assert_same(&what, &got["mean"], r * (1.0 - gamma));
        let shares = numbers(&got["distribution"]);
        let square = |(load, share): (usize, &f64)| {
            (load as f64 - number(&got["mean"])).powi(2) * share
        };
        let variance: f64 = shares.iter().enumerate().map(square).sum();
        assert_same(&what, &got["variance"], variance);
        if row["k0"] == "inf" {
            infinite += 1;
            assert_eq!(got["threshold"], Value::Null);
            continue;
        }
        assert_eq!(got["threshold"], row["k0"], "{what}");
        for (field, key) in [("admission", "p"), ("e0", "e0"), ("p0", "p0")] {
            assert_same(&what, &got[field], number(&row[key]));
        }
    }
    assert_eq!((rows, infinite), (18, 1));
}

const REGION: &str = "threshold admission overflow_fraction level_shares";

#[test]
fn sequential_regions_match() {
    let mut rows = 0;
    for row in reference("sequential") {
        rows += 1;
        let what = format!(
            "region --scheme sequential --access-budget {} --load {} \
             --choices {}",
            row["a"], row["r"], row["d"]
        );
        let got = json(&what);
        assert_fields(&got, REGION);
        assert_eq!(got["threshold"], row["h"], "{what}");
        assert_same(&what, &got["admission"], number(&row["p"]));
        assert_same(&what, &got["overflow_fraction"], number(&row["gamma0"]));
        assert_eq!(got["level_shares"], Value::Array(Vec::new()));
    }
    assert_eq!(rows, 18);
}

#[test]
fn multilevel_regions_match() {
    let mut rows = 0;
    for row in reference("mht_by_r") {
        rows += 1;
        let what = format!(
            "region --scheme multilevel --access-budget {} --load {} \
             --choices {}",
            row["a"], row["r"], row["d"]
        );
        let got = json(&what);
        assert_fields(&got, REGION);
        assert_eq!(got["threshold"], row["h"], "{what}");
        assert_same(&what, &got["admission"], number(&row["p"]));
        let (a, q) = (number(&row["a"]), number(&row["p_of_a"]));
        let shares = got["level_shares"].as_array().unwrap();
        assert_eq!(shares.len() as u64, row["d"].as_u64().unwrap());
        let mut left = 1.0;
        for share in shares {
            assert_same(&what, share, left / a);
            left *= q;
        }
        assert_same(&what, &got["overflow_fraction"], left);
    }
    assert_eq!(rows, 13);
}

const FPR: &str = "probes fpr fpr_paper_approximation reads_hit reads_miss \
                   overflow_fraction counter_bits threshold admission \
                   payload_bits list_reads";
const OTHERS: &str = "fpr_first_match reads_miss_first_match fpr_coin \
                      reads_miss_coin";

/// Arguments of a reference row, with the probes of a standard filter.
fn fpr(scheme: &str, row: &Value) -> String {
    format!(
        "fpr --scheme {scheme} --block-bits {} --bits-per-key {} --probes {}",
        row["B"], row["beta"], row["k"]
    )
}

#[test]
fn multilevel_rates_match() {
    let mut rows = 0;
    for row in reference("fpr") {
        rows += 1;
        let what =
            fpr("multilevel", &row) + " --access-budget 1.2 --choices 3";
        let got = json(&what);
        assert_fields(&got, &format!("{FPR} {OTHERS}"));
        for (field, key) in
            [("probes", "k"), ("threshold", "k0"), ("counter_bits", "b")]
        {
            assert_eq!(got[field], row[key], "{what} {field}");
        }
        for (field, key) in [
            ("fpr", "fpr_mht"),
            ("fpr_paper_approximation", "fpr_mht_approx"),
            ("reads_miss", "EP"),
            ("admission", "p"),
            ("list_reads", "P_list"),
            ("fpr_coin", "fpr_mht_coin"),
            ("reads_miss_coin", "EP_coin"),
        ] {
            assert_same(
                &format!("{what} {field}"),
                &got[field],
                number(&row[key]),
            );
        }
        assert_eq!(got["reads_hit"], 1.2);
        assert_same(
            &what,
            &got["overflow_fraction"],
            0.004_984_471_899_924_287,
        );
        // Stopping at the first match saves reads and false positives.
        for field in ["fpr", "reads_miss"] {
            let first = number(&got[format!("{field}_first_match").as_str()]);
            assert!(first <= number(&got[field]), "{what} {field}");
        }
        let bits = ["payload_bits", "counter_bits"].map(|key| &got[key]);
        let bits = bits.map(|bits| bits.as_u64().unwrap());
        assert_eq!(bits[0] + bits[1], row["B"].as_u64().unwrap());
    }
    assert_eq!(rows, 24);
}

#[test]
fn single_rates_match() {
    // The reference uses the overflow of three levels for SINGLE.
    let mut rows = 0;
    for row in reference("fpr") {
        rows += 1;
        let what = fpr("single", &row) + " --overflow 0.004984471899924287";
        let got = json(&what);
        assert_fields(&got, &format!("{FPR} {OTHERS}"));
        assert_eq!(got["threshold"], row["single_k0"], "{what}");
        assert_eq!(got["counter_bits"], row["single_b"], "{what}");
        assert_same(&what, &got["admission"], number(&row["single_p"]));
        assert_same(&what, &got["fpr"], number(&row["fpr_single"]));
        let approximation = &got["fpr_paper_approximation"];
        assert_same(&what, approximation, number(&row["fpr_single_approx"]));
        assert_eq!(got["reads_hit"], 1.0);
        assert_eq!(got["reads_miss"], 1.0);
    }
    assert_eq!(rows, 24);
}

#[test]
fn blocked_rates_match() {
    let mut rows = 0;
    for row in reference("fpr") {
        rows += 1;
        let what = fpr("blocked", &row);
        let got = json(&what);
        assert_fields(&got, FPR);
        assert_same(&what, &got["fpr"], number(&row["fpr_blocked"]));
        let approximation = &got["fpr_paper_approximation"];
        assert_same(&what, approximation, number(&row["fpr_blocked_approx"]));
        assert_eq!(got["reads_miss"], 1.0);
        assert_eq!(got["payload_bits"], row["B"]);
    }
    assert_eq!(rows, 24);
}

#[test]
fn standard_rates_match() {
    // A standard filter has no blocks: both block sizes share one run.
    let mut runs = BTreeMap::new();
    let mut rows = 0;
    for row in reference("fpr") {
        rows += 1;
        let what = format!(
            "fpr --scheme bloom --bits-per-key {} --probes {}",
            row["beta"], row["k"]
        );
        let got = runs.entry(what.clone()).or_insert_with(|| json(&what));
        assert_fields(got, FPR);
        assert_same(&what, &got["fpr"], number(&row["fpr_standard"]));
        assert_eq!(got["fpr"], got["fpr_paper_approximation"]);
        let reads = number(&row["standard_reads_early_exit"]);
        assert_same(&what, &got["reads_miss"], reads);
        assert_eq!(number(&got["reads_hit"]), number(&row["k"]));
    }
    assert_eq!((rows, runs.len()), (24, 12));
}

#[test]
fn best_numbers_of_probes_match() {
    let mut rows = 0;
    for row in reference("best_k") {
        // The other rows test no other code.
        if ![8, 40].map(Value::from).contains(&row["beta"]) {
            continue;
        }
        rows += 1;
        let (bits, beta) = (&row["B"], &row["beta"]);
        let what = format!("--block-bits {bits} --bits-per-key {beta}");
        let got = json(&format!("fpr --scheme multilevel {what}"));
        assert_eq!(got["probes"], row["mht_best_k"], "{what}");
        assert_same(&what, &got["fpr"], number(&row["mht_best"]));
    }
    assert_eq!(rows, 4);
}

#[test]
fn tracking_bits_save_reads() {
    let row = reference("tracking")
        .into_iter()
        .find(|row| row["beta"] == 40 && row["t"] == 8)
        .unwrap();
    let got = json(
        "fpr --scheme multilevel --bits-per-key 40 --probes 28 \
         --tracking-bits 8",
    );
    assert_same("reads", &got["reads_miss"], number(&row["EP_a12"]));
    assert_same("fpr", &got["fpr"], number(&row["fpr_a12"]));
}

const TINYSET: &str = "bits_per_key load chains array_bits fpr_union \
                       fpr_one_size fpr_fresh spilled fpr_replaced freed_slots \
                       fpr_refilled";

#[test]
fn tinyset_rates_match() {
    let mut rows = 0;
    for row in tinyset_reference("rates") {
        // Below 9e-5 the longer remainders of the reference are visible.
        if number(&row["exact"]) < 9e-5 {
            continue;
        }
        rows += 1;
        let [chains, array] = ["L", "A"].map(|key| row[key].as_u64().unwrap());
        let what = |bits: u64| {
            let mean = &row["mean"];
            format!(
                "fpr --scheme tinyset --block-bits {bits} --chains {chains} \
                 --load {mean}"
            )
        };
        let bits = chains + array;
        let got = json(&what(bits));
        assert_fields(&got, &format!("{FPR} {TINYSET}"));
        let context = format!("{row}");
        assert_same(&context, &got["fpr"], number(&row["exact"]));
        assert_same(&context, &got["fpr_union"], number(&row["union"]));
        assert_eq!(got["fpr_union"], got["fpr_paper_approximation"]);
        assert_same(&context, &got["fpr_one_size"], number(&row["one_size"]));
        assert_same(
            &context,
            &got["bits_per_key"],
            bits as f64 / number(&row["mean"]),
        );
        for (field, want) in [
            ("probes", 0),
            ("chains", chains),
            ("array_bits", array),
            ("payload_bits", array),
        ] {
            assert_eq!(got[field], want, "{field}");
        }
        assert_eq!(
            (&got["reads_hit"], &got["reads_miss"]),
            (&1.0.into(), &1.0.into())
        );
        // With removals, one bit of the block marks freed slots.
        let got = json(&(what(bits) + " --removable"));
        assert_eq!(got["array_bits"], array);
        assert_same(&context, &got["fpr"], number(&row["removable"]));
    }
    assert_eq!(rows, 19);
}

#[test]
fn tinyset_rates_match_by_memory() {
    let mut rows = 0;
    for table in ["table5", "table6"] {
        for row in tinyset_reference(table) {
            rows += 1;
            let [chains, array] =
                ["L", "A"].map(|key| row[key].as_u64().unwrap());
            let what = format!(
                "fpr --scheme tinyset --block-bits {} --chains {chains} \
                 --bits-per-key {}",
                chains + array,
                row["bits_exact"]
            );
            let got = json(&what);
            let gap = number(&got["fpr"]) / number(&row["eps"]) - 1.0;
            // The memory of the reference has three digits.
            assert!(gap.abs() < 1e-3, "{what} {gap}");
        }
    }
    assert_eq!(rows, 7);
    // The default is one chain per 8 bits.
    let got = json("fpr --scheme tinyset --block-bits 256 --bits-per-key 10");
    assert_eq!(got["chains"], 32);
}

#[test]
fn tinyset_aging_matches() {
    let mut rows = 0;
    // The blocks of the reference reserve one of 512 bits.
    let what = "fpr --scheme tinyset --block-bits 511 --chains 64 \
                --removable --load";
    for row in tinyset_reference("fig15") {
        rows += 1;
        let replaced = number(&row["percent"]) / 100.0;
        let mean = &row["mean"];
        let got = json(&format!("{what} {mean} --replaced {replaced}"));
        let gap = 100.0 * number(&got["freed_slots"]) - number(&row["freed"]);
        assert!(gap.abs() < 0.2, "{row} {gap}");
        assert!(number(&got["fpr_replaced"]) > number(&got["fpr"]));
        assert_eq!(got["fpr_refilled"], Value::Null);
    }
    for row in tinyset_reference("growth") {
        rows += 1;
        let times = &row["doublings"];
        let got = json(&format!("{what} 39 --doublings {times}"));
        let part = number(&got["fpr_refilled"]) / number(&row["fpr"]);
        assert!((0.975..1.01).contains(&part), "{row} {part}");
    }
    assert_eq!(rows, 11 + 6);
}

#[test]
fn two_level_tinyset_rates_match() {
    let mut rows = 0;
    for row in tinyset_reference("two_level") {
        rows += 1;
        let what = format!(
            "fpr --scheme tinyset --chains 64 --bits-per-key {} --cap {} \
             --ratio {}",
            row["bits"], row["cap"], row["ratio"]
        );
        let got = json(&what);
        assert_fields(&got, &format!("{FPR} {TINYSET}"));
        assert_eq!(got["array_bits"], 447);
        assert_eq!(got["fpr_union"], Value::Null);
        assert_same(&what, &got["bits_per_key"], number(&row["bits"]));
        // The reference is measured on one filter per row.
        let rate = number(&row["fpr"]) / number(&got["fpr"]);
        assert!((0.975..1.01).contains(&rate), "{what} {rate}");
        let reads = number(&got["reads_miss"]) - number(&row["reads"]);
        assert!(reads.abs() < 8e-4, "{what} {reads}");
        let more = number(&got["reads_hit"]) - 1.0;
        assert_same(&what, &got["spilled"], more);
    }
    assert_eq!(rows, 7);
}

#[test]
fn tuned_designs_beat_blocked_and_split() {
    let mut rows = 0;
    for (beta, mode, by, most) in [
        (24, "static", "count while building", 0.46),
        (40, "popcount", "popcount", 0.04),
    ] {
        rows += 1;
        let what = format!("tune --block-bits 512 --bits-per-key {beta}");
        let limit = "--max-reads-miss 1.25";
        let any = json(&format!("{what} {limit}"));
        assert_fields(
            &any,
            "access_budget choices level_shares threshold threshold_by \
             probes tracking_bits fpr reads_hit reads_miss \
             overflow_fraction fpr_of_blocked ratio_to_blocked \
             fpr_of_split ratio_to_split",
        );
        assert!(number(&any["ratio_to_blocked"]) <= most, "{any}");
        let one = json(&format!("{what} {limit} --mode {mode}"));
        assert_eq!(one["threshold_by"], by);
        for got in [&any, &one] {
            assert!(number(&got["reads_miss"]) <= 1.25, "{got}");
            assert_eq!(got["access_budget"], got["reads_hit"]);
            let shares = numbers(&got["level_shares"]);
            assert_eq!(got["choices"], shares.len());
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            for kind in ["blocked", "split"] {
                let other = number(&got[format!("fpr_of_{kind}").as_str()]);
                let ratio = number(&got["fpr"]) / other;
                let printed = &got[format!("ratio_to_{kind}").as_str()];
                assert_same(kind, printed, ratio);
            }
        }
        assert!(number(&any["fpr"]) <= number(&one["fpr"]));
    }
    assert_eq!(rows, 2);
}

/// Asserts that every element is closed, in order.
#[track_caller]
fn assert_well_formed(svg: &str) {
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    let mut open = Vec::new();
    let mut elements = 0;
    for tag in svg.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').unwrap();
        assert!(!text.contains('&') && tag.matches('"').count() % 2 == 0);
        let name = tag.split([' ', '\n', '/']).next().unwrap();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed.trim()));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        elements += 1;
        assert!(!tag.contains("NaN") && !tag.contains("inf"), "{tag}");
    }
    assert!(open.is_empty() && elements > 30, "{open:?} {elements}");
}

#[test]
fn plots_are_well_formed_svg() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("curve.svg");
    for (arguments, words) in [
        (
            "bound --access-budget 1.2 --load 8 --overflow 0.005",
            ["share of blocks", "Poisson", "circle"],
        ),
        (
            // No refusals and no overflow.
            "region --scheme multilevel --access-budget 1 --load 8 \
             --choices 3",
            ["sequential", "multilevel", "polyline"],
        ),
        (
            "fpr --scheme multilevel --bits-per-key 24",
            ["multilevel, best probes", "blocked, best probes", "polyline"],
        ),
        (
            "fpr --scheme split --bits-per-key 6 --probes 5",
            ["split, 5 probes", "blocked, 5 probes", "6 bits per key"],
        ),
        (
            "fpr --scheme tinyset --load 39",
            ["tinyset", "blocked, best probes", "13.1282 bits per key"],
        ),
    ] {
        let text = success(&format!("{arguments} --plot {}", path.display()));
        assert!(text.lines().count() >= 3, "{text}");
        let svg = std::fs::read_to_string(&path).unwrap();
        assert_well_formed(&svg);
        for word in words {
            assert!(svg.contains(word), "{arguments}: no {word}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn invalid_arguments_are_refused_with_one_line() {
    for (arguments, word) in [
        ("bound --access-budget 0.9 --load 8 --overflow 0.05", "at least 1"),
        ("bound --access-budget 1.2 --load -8", "keys per block"),
        ("bound --access-budget 1.2 --load nan", "keys per block"),
        (
            "region --scheme sequential --access-budget 3 --load 8 \
             --choices 3",
            "access budget",
        ),
        (
            "region --scheme multilevel --access-budget 1.2 --load 8 \
             --choices 1",
            "choices",
        ),
        ("fpr --scheme blocked --bits-per-key 8 --block-bits 500", "block"),
        ("fpr --scheme blocked --bits-per-key 8 --choices 3", "--choices"),
        ("fpr --scheme multilevel --bits-per-key 8 --overflow 0.1", "single"),
        ("fpr --scheme bloom --bits-per-key 8 --probes 0", "probes"),
        ("fpr --scheme blocked --load 8", "--load"),
        ("fpr --scheme split --bits-per-key 8 --removable", "tinyset"),
        ("fpr --scheme tinyset --bits-per-key 8 --probes 5", "--probes"),
        ("fpr --scheme tinyset --load nan", "keys per block"),
        ("fpr --scheme tinyset --load 39 --chains 512", "chains"),
        (
            "fpr --scheme tinyset --load 39 --cap 500 --ratio 9",
            "primary block",
        ),
        (
            "fpr --scheme single --block-bits 64 --bits-per-key 8 \
             --tracking-bits 64",
            "no room",
        ),
        ("tune --bits-per-key 24 --max-reads-miss 1", "reads per absent key"),
        (
            "bound --access-budget 1.2 --load 8 --plot /no/such/place.svg",
            "/no/such/place.svg",
        ),
    ] {
        let output = run(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {error}");
        assert!(output.stdout.is_empty(), "{arguments}");
        assert!(error.starts_with("tamis: "), "{arguments}: {error}");
        assert_eq!(error.matches('\n').count(), 1, "{error}");
        assert!(error.contains(word), "{arguments}: {error}");
    }
    // Aging needs --removable, which excludes two levels.
    for arguments in ["--replaced 1", "--doublings 1 --cap 34 --ratio 9"] {
        let output =
            run(&format!("fpr --scheme tinyset --load 39 {arguments}"));
        assert_eq!(output.status.code(), Some(2), "{arguments}");
    }
    // A plot must not overwrite a filter.
    let refused = run("bound --access-budget 1.2 --load 8 --plot words.tamis");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains(".svg"));
}
