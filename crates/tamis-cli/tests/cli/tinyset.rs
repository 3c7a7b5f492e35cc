//! Tinyset filters, through every verb, and when they are taken unasked.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Lab, agree, lines};

fn float(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[track_caller]
fn near(value: &Value, expected: f64) {
    let value = float(value);
    let distance = (value / expected - 1.0).abs();
    assert!(distance < 1e-9, "{value} is not {expected}");
}

#[test]
fn every_form_goes_through_every_verb() {
    let lab = Lab::new();
    lab.write("first", lines(1, 4_000));
    lab.write("second", lines(2, 1_000));
    lab.write("strangers", lines(3, 20_000));
    for bytes in [64, 32] {
        for form in ["", "--repeats", "--removable"] {
            let what = format!("{bytes} bytes {form}");
            lab.run(&format!(
                "build first -o f --force --kind tinyset --fpr 0.01 \
                 --items 5000 --block-bytes {bytes} {form}"
            ))
            .done();
            lab.run("add f second").done();
            lab.run("verify f").done();
            lab.run("query -v f first second").nothing();
            let wrong = lab.count("f strangers");
            assert!((100..320).contains(&wrong), "{what}: {wrong}");
            let info = lab.info("f");
            let yes = |yes| if yes { "yes" } else { "no" };
            assert_eq!(info["kind"], "tinyset", "{what}");
            assert_eq!(info["items"], 5_000, "{what}");
            assert_eq!(info["block_bits"], 8 * bytes, "{what}");
            let removable = form == "--removable";
            assert_eq!(info["removable"], yes(removable), "{what}");
            assert_eq!(info["repeats"], yes(!form.is_empty()), "{what}");
            assert_eq!(info["over_design"], false, "{what}");
            lab.run("fold f -o half --force").done();
            lab.run("grow f -o twice --force").done();
            lab.run("merge f half -o out").refused();
            lab.run("merge f f -o both --force").done();
            for changed in ["half", "twice", "both"] {
                lab.run(&format!("verify {changed}")).done();
                lab.run(&format!("query -v {changed} first second")).nothing();
            }
        }
    }
}

#[test]
fn blocks_are_measured_in_bytes_or_in_bits() {
    let lab = Lab::new();
    lab.write("keys", lines(1, 3_000));
    for kind in ["bloom", "blocked", "split", "balanced", "tinyset"] {
        let mut files = BTreeSet::new();
        for size in ["bytes 64", "bits 512", "bytes 32", "bits 256"] {
            lab.run(&format!(
                "build keys -o f --force --kind {kind} --fpr 0.001 \
                 --block-{size}"
            ))
            .done();
            files.insert(lab.read("f"));
        }
        assert_eq!(files.len(), 2, "{kind}");
    }
}

#[test]
fn what_is_removed_is_gone_and_nothing_else() {
    let lab = Lab::new();
    let (gone, kept) = (lines(1, 2_000), lines(2, 2_000));
    lab.write("gone", &gone);
    lab.write("kept", &kept);
    lab.run(
        "build gone kept -o f --kind tinyset --removable --fpr 0.001 \
         --items 4000",
    )
    .done();
    let before = lab.info("f");
    let report = lab.run("remove f gone --json").json();
    assert_eq!(report["removed"], 2_000);
    assert_eq!(report["absent"], 0);
    assert_eq!(report["items"], 2_000);
    assert!(float(&report["expected_fpr"]) < float(&before["expected_fpr"]));
    lab.run("verify f").done();
    let mut fields = report.as_object().unwrap().clone();
    fields.retain(|name, _| name != "removed" && name != "absent");
    agree(&Value::Object(fields), &lab.info("f"));
    lab.run("query -v f kept").nothing();
    // All but false positives among two thousand.
    assert!(lab.count("-v f gone") > 1_970);

    // What is no longer there is told apart, and nothing happens to it.
    let absent: String = lab
        .run("query -v f gone")
        .text()
        .lines()
        .take(50)
        .map(|key| format!("{key}\n"))
        .collect();
    let file = lab.read("f");
    let report = lab.feed("remove f - --json", absent.as_bytes()).json();
    assert_eq!(
        (&report["removed"], &report["absent"]),
        (&0.into(), &50.into())
    );
    assert!(lab.read("f") == file);

    let run = lab.run("remove f kept");
    let table = run.done().text();
    assert!(table.starts_with("removed         2,000\nabsent "), "{table}");
    lab.run("query f kept").nothing();
    // Empty again, it is as new.
    lab.run("add f gone").done();
    lab.run("query -v f gone").nothing();
}

/// A key added three times takes three removals.
#[test]
fn one_occurrence_is_removed_at_a_time() {
    let lab = Lab::new();
    let settings = "--kind tinyset --removable --fpr 1e-6 --items 100";
    lab.run(&format!("build -k a -k a -k a -k b -o f {settings}")).done();
    for left in [3, 2, 1] {
        assert_eq!(lab.info("f")["items"], left + 1);
        lab.run("query -q f -k a").done();
        lab.run("remove f -k a").done();
    }
    lab.run("query -q f -k a").nothing();
    lab.run("query -q f -k b").done();
    let report = lab.run("remove f -k a -k b -k c --json").json();
    assert_eq!(
        (&report["removed"], &report["absent"]),
        (&1.into(), &2.into())
    );
    // Every key format, and keys from standard input.
    lab.run("add f --key-format hex -k 61ff").done();
    let run = lab.feed("remove f --key-format hex --json", b"61ff\n");
    assert_eq!(run.json()["removed"], 1);
    lab.run("add f --key-format u64le -k 7").done();
    let run = lab
        .feed("remove f --key-format u64le --json", &[7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(run.json()["removed"], 1);
    assert_eq!(lab.info("f")["items"], 0);
}

#[test]
fn only_removable_filters_are_removed_from() {
    let lab = Lab::new();
    for settings in [
        "--kind blocked",
        "--kind bloom",
        "--kind split",
        "--kind balanced",
        "--kind tinyset",
        "--kind tinyset --repeats",
        "",
    ] {
        lab.run(&format!("build -k a -o f --force --fpr 0.001 {settings}"))
            .done();
        let message = lab.refused("remove f -k a");
        assert!(message.contains("cannot remove"), "{message}");
        let hint = "--kind tinyset --removable";
        assert!(message.contains(hint), "{message}");
    }
}

#[test]
fn a_failed_removal_leaves_the_file_as_it_was() {
    let lab = Lab::new();
    let good: String = lines(1, 100_000)
        .lines()
        .map(|line| line[..8].to_owned() + "\n")
        .collect();
    lab.write("good.hex", &good);
    lab.write("bad.hex", good + "12345\n");
    lab.run(
        "build good.hex -o f --fpr 0.01 --key-format hex --kind tinyset \
         --removable",
    )
    .done();
    let message = lab.refused("remove f bad.hex --key-format hex");
    assert!(message.contains("bad.hex: key 100001:"), "{message}");
    lab.refused("remove f good.hex missing.hex --key-format hex");
    lab.refused("remove f -k 123 --key-format hex");
    lab.refused("remove missing -k a");
}

#[test]
fn predictions_come_true() {
    let lab = Lab::new();
    for shard in 0..4 {
        lab.write(&format!("{shard}.txt"), lines(shard, 5_000));
    }
    for form in ["", "--removable"] {
        let settings =
            format!("--kind tinyset --items 20000 --fpr 0.001 --force {form}");
        for shard in 0..4 {
            let build = format!("build {shard}.txt -o {shard} {settings}");
            lab.run(&build).done();
        }
        let all = "0.txt 1.txt 2.txt 3.txt";
        lab.run(&format!("build {all} -o direct {settings}")).done();
        let merged = lab.run("merge 0 1 2 3 -o all --force --json").json();
        assert_eq!(merged["items"], 20_000);
        near(&merged["predicted_fpr"], float(&merged["expected_fpr"]));
        let direct = float(&lab.info("direct")["expected_fpr"]);
        let ratio = float(&merged["expected_fpr"]) / direct;
        assert!((0.98..1.02).contains(&ratio), "{form}: {ratio}");

        let folded = lab.run("fold all -o half --force --json").json();
        near(&folded["predicted_fpr"], float(&folded["expected_fpr"]));
        let grown = lab.run("grow all -o twice --force --json").json();
        near(&grown["predicted_fpr"], float(&grown["expected_fpr"]));
        let blocks = |report: &Value| report["blocks"].as_u64().unwrap();
        assert_eq!(blocks(&folded), blocks(&merged) / 2);
        assert_eq!(blocks(&grown), blocks(&merged) * 2);
        assert_eq!(grown["design_items"], 40_000);
        for file in ["all", "half", "twice"] {
            lab.run(&format!("verify {file}")).done();
            lab.run(&format!("query -v {file} {all}")).nothing();
        }

        // People read the prediction first.
        for command in
            ["merge 0 1 -o g --force", "fold all -o g --force", "grow all"]
        {
            let run = lab.run(command);
            let table = run.done().text();
            assert!(table.starts_with("predicted  "), "{table}");
        }
    }
    // One alone has nothing to predict, and bits tell nothing before.
    let alone = lab.run("merge 0 -o g --force --json").json();
    assert_eq!(alone["predicted_fpr"], Value::Null);
    lab.run("build 0.txt -o b --kind blocked --fpr 0.01").done();
    let folded = lab.run("fold b -o g --force --json").json();
    assert_eq!(folded["predicted_fpr"], Value::Null);
    let run = lab.run("fold b -o g --force");
    assert!(run.done().text().starts_with("kind  "), "{run:?}");
}

/// Doubled and filled again, a filter has about twice the rate.
#[test]
fn growing_in_place_makes_room() {
    let lab = Lab::new();
    for shard in 0..2 {
        lab.write(&format!("{shard}.txt"), lines(shard, 10_000));
    }
    lab.run("build 0.txt -o f --kind tinyset --fpr 0.001").done();
    lab.run("grow f").done();
    let filled = lab.run("add f 1.txt --json").json();
    assert_eq!(filled["over_design"], false);
    // Kept to seven digits.
    assert!((float(&filled["design_fpr"]) - 0.002).abs() < 1e-9);
    let rate = float(&filled["expected_fpr"]);
    assert!((0.0017..0.0023).contains(&rate), "{rate}");
    lab.run("query -v f 0.txt 1.txt").nothing();
    // Half of it is what it was, and once more.
    for _ in 0..2 {
        lab.run("grow f").done();
        lab.run("fold f -o f --force").done();
        lab.run("query -v f 0.txt 1.txt").nothing();
        lab.run("verify f").done();
    }
    for kind in ["bloom", "blocked", "split", "balanced"] {
        lab.run(&format!("build 0.txt -o {kind} --kind {kind} --fpr 0.01"))
            .done();
        let message = lab.refused(&format!("grow {kind}"));
        assert!(message.contains("cannot grow"), "{message}");
    }
}

#[test]
fn merging_refuses_what_differs_and_names_it() {
    let lab = Lab::new();
    let build = |name: &str, settings: &str| {
        lab.run(&format!(
            "build -k apple -o {name} --kind tinyset {settings}"
        ))
        .done();
    };
    let base = "--items 1000 --bits-per-key 10";
    build("base", base);
    build("blocks", "--items 2000 --bits-per-key 10");
    build("block-bits", "--items 500 --bits-per-key 10 --block-bytes 32");
    build("removable-mode", &format!("{base} --removable"));
    build("repeats", &format!("{base} --repeats"));
    build("hash", &format!("{base} --hash siphash --seed 0"));
    build("seed", &format!("{base} --seed 1"));
    for other in ["blocks", "block-bits", "repeats", "hash", "seed"] {
        let field = other.replace('-', " ");
        let message = lab.refused(&format!("merge base {other} -o out"));
        let wanted = format!("{field} differs");
        assert!(message.contains(&wanted), "{other}: {message}");
        assert!(message.contains("same settings"), "{message}");
        lab.refused(&format!("merge {other} base -o out"));
    }
    // It differs in more than one way.
    let message = lab.refused("merge base removable-mode -o out");
    assert!(message.contains("differs"), "{message}");
    lab.run("build -k apple -o other --kind blocked --fpr 0.01").done();
    let message = lab.refused("merge base other -o out");
    assert!(message.contains("kind differs"), "{message}");
}

#[test]
fn two_levels_are_smaller_and_can_less() {
    let lab = Lab::new();
    lab.write("keys", lines(1, 60_000));
    lab.write("more", lines(2, 1_000));
    let settings = "--kind tinyset --fpr 0.0001 --items 61000";
    lab.run(&format!("build keys -o one {settings}")).done();
    lab.run(&format!("build keys -o two {settings} --levels 2")).done();
    lab.run("verify two").done();
    lab.run("add two more").done();
    lab.run("verify two").done();
    lab.run("query -v two keys more").nothing();
    let (one, two) = (lab.info("one"), lab.info("two"));
    let share = float(&two["bytes"]) / float(&one["bytes"]);
    assert!((0.94..0.97).contains(&share), "{share}");
    assert!(float(&two["reads_miss"]) < 1.07, "{two}");
    assert!(float(&two["reads_miss"]) > 1.0, "{two}");
    let rate = float(&two["expected_fpr"]);
    assert!((0.00008..0.00012).contains(&rate), "{rate}");
    assert!(two["second_blocks"].as_u64().unwrap() > 0);
    for command in [
        "merge two two -o out",
        "fold two -o out",
        "grow two",
        "remove two -k a",
    ] {
        let message = lab.refused(command);
        let verb = command.split(' ').next().unwrap();
        let wanted = format!("cannot {verb}");
        assert!(message.contains(&wanted), "{message}");
        assert!(!message.contains("--seed"), "{message}");
    }
    // One level is what one gets anyway.
    lab.run(&format!("build keys -o same {settings} --levels 1")).done();
    assert!(lab.read("same") == lab.read("one"));
}

#[test]
fn options_are_for_tinyset_filters_only() {
    let lab = Lab::new();
    for option in ["--removable", "--repeats", "--levels 2", "--levels 1"] {
        for kind in ["--kind blocked", "--kind balanced", ""] {
            let message = lab.refused(&format!(
                "build -k a -o f --fpr 0.001 {kind} {option}"
            ));
            assert!(message.contains("--kind tinyset"), "{message}");
        }
    }
    let message = lab.refused(
        "build -k a -o f --fpr 0.0001 --kind tinyset --removable --levels 2",
    );
    assert!(message.contains("one level"), "{message}");
    lab.refused("build -k a -o f --fpr 0.001 --kind tinyset --choices 3");
}

/// What `build` takes, by the rate or by the memory.
#[test]
fn the_default_kind_follows_the_rate() {
    let lab = Lab::new();
    lab.write("keys", lines(1, 3_000));
    let kind = |settings: &str| {
        let build = format!("build keys -o f --force --json {settings}");
        let built = lab.run(&build).json()["kind"].clone();
        // Nothing but the kind is decided: the file is that of the kind.
        let file = lab.read("f");
        let settings = settings
            .replace("--prefer space", "")
            .replace("--prefer speed", "");
        let kind = built.as_str().unwrap().to_owned();
        lab.run(&format!("build keys -o f --force --kind {kind} {settings}"))
            .done();
        assert!(lab.read("f") == file, "{settings}");
        kind
    };
    for (rate, expected) in [
        ("0.5", "blocked"),
        ("0.1", "blocked"),
        ("0.0301", "blocked"),
        ("3.01%", "blocked"),
        ("0.03", "tinyset"),
        ("3%", "tinyset"),
        ("0.01", "tinyset"),
        ("0.001", "tinyset"),
        ("0.0001", "tinyset"),
        ("0.01%", "tinyset"),
        ("0.000099", "blocked"),
        ("1e-6", "blocked"),
        ("1e-12", "blocked"),
    ] {
        assert_eq!(kind(&format!("--fpr {rate}")), expected, "{rate}");
        let space = format!("--fpr {rate} --prefer space");
        assert_eq!(kind(&space), expected, "{rate}");
        let speed = format!("--fpr {rate} --prefer speed");
        assert_eq!(kind(&speed), "blocked", "{rate}");
    }
    // Tinyset has 3 % at 7.3 bits per key, 0.01 % at 17.2.
    for (bits, expected) in [
        ("4", "blocked"),
        ("7.3", "blocked"),
        ("7.35", "tinyset"),
        ("10", "tinyset"),
        ("17.2", "tinyset"),
        ("17.3", "blocked"),
        ("40", "blocked"),
    ] {
        let size = format!("--bits-per-key {bits}");
        assert_eq!(kind(&size), expected, "{bits}");
        assert_eq!(kind(&format!("{size} --prefer speed")), "blocked");
    }
    // A half line has 3 % at 7.49 bits per key.
    let half = "--block-bytes 32 --bits-per-key";
    assert_eq!(kind(&format!("{half} 7.4")), "blocked");
    assert_eq!(kind(&format!("{half} 7.5")), "tinyset");
}

fn rows(plan: &Value) -> &Vec<Value> {
    plan["designs"].as_array().unwrap()
}

/// The row of a form of tinyset.
fn row(plan: &Value, removable: bool, levels: u32) -> &Value {
    let found = rows(plan).iter().find(|row| {
        row["kind"] == "tinyset"
            && row["removable"] == removable
            && row["levels"] == levels
    });
    found.unwrap_or_else(|| panic!("{removable} {levels}: {plan}"))
}

#[test]
fn plans_have_all_forms_and_a_rule() {
    let lab = Lab::new();
    let plan = |arguments: &str| {
        lab.run(&format!("plan --items 1e6 --json {arguments}")).json()
    };
    // The best of one line, then what saves 5 % over it.
    for (arguments, recommended, options) in [
        ("--fpr 0.05", "blocked", "--kind blocked"),
        ("--fpr 0.03", "tinyset", "--kind tinyset"),
        ("--fpr 0.01", "tinyset", "--kind tinyset"),
        ("--fpr 0.001 --miss-share 0.2", "tinyset", "--kind tinyset"),
        ("--fpr 0.0001", "tinyset", "--kind tinyset"),
        ("--fpr 0.00009", "tinyset", "--kind tinyset"),
        ("--fpr 1e-5", "tinyset", "--kind tinyset --levels 2"),
        ("--fpr 0.01 --prefer speed", "blocked", "--kind blocked"),
        ("--fpr 0.001 --prefer speed", "split", "--kind split"),
        (
            "--fpr 0.001 --prefer speed --miss-share 0",
            "blocked",
            "--kind blocked",
        ),
        (
            "--fpr 0.001 --block-bytes 32",
            "tinyset",
            "--kind tinyset --block-bytes 32",
        ),
        ("--bits-per-key 5", "blocked", "--kind blocked"),
        ("--bits-per-key 12", "tinyset", "--kind tinyset"),
    ] {
        let plan = plan(arguments);
        assert_eq!(plan["recommended"], recommended, "{arguments}: {plan}");
        assert_eq!(plan["options"], options, "{arguments}");
        let notes = plan["notes"].as_array().unwrap();
        assert_eq!(notes.len(), rows(&plan).len() - 1, "{arguments}");
        let prefer = arguments.contains("speed");
        let prefer = if prefer { "speed" } else { "space" };
        assert_eq!(plan["prefer"], prefer);
    }

    let plan = plan("--fpr 0.0001");
    let bits = |removable, levels| {
        float(&row(&plan, removable, levels)["bits_per_key"])
    };
    assert!((bits(false, 1) - 17.223).abs() < 0.001);
    assert!(bits(true, 1) > bits(false, 1) && bits(true, 1) < 17.58);
    assert!(bits(false, 2) < 16.6);
    assert_eq!(row(&plan, true, 1)["mergeable"], true);
    let two = row(&plan, false, 2);
    assert_eq!(two["mergeable"], false);
    assert!(float(&two["reads_miss"]) <= 1.06, "{two}");

    let table = lab.run("plan --items 1e6 --fpr 0.0001");
    let table = table.done().text();
    for name in ["tinyset ", "tinyset, removable ", "tinyset, 2 levels "] {
        assert!(table.contains(&format!("\n{name}")), "{table}");
    }
    assert!(table.contains("Recommended: tinyset (--kind tinyset)"));
    // The kinds of the Bloom family have no levels.
    assert!(rows(&plan)[0].get("levels").is_none());
}

/// What a plan promises is what a build takes.
#[test]
fn plans_are_what_is_built() {
    let lab = Lab::new();
    lab.write("keys", lines(1, 200_000));
    for block in ["--block-bytes 64", "--block-bytes 32"] {
        let plan = lab
            .run(&format!("plan --items 2e5 --fpr 0.0001 --json {block}"))
            .json();
        for (form, removable, levels) in [
            ("", false, 1),
            ("--removable", true, 1),
            ("--levels 2", false, 2),
        ] {
            let planned = row(&plan, removable, levels);
            let built = lab
                .run(&format!(
                    "build keys -o f --force --kind tinyset --fpr 0.0001 \
                     --json {block} {form}"
                ))
                .json();
            for field in ["bits_per_key", "reads_hit", "reads_miss"] {
                let ratio = float(&built[field]) / float(&planned[field]);
                let near = (0.995..1.005).contains(&ratio);
                assert!(near, "{block} {form} {field}: {ratio}");
            }
            let ratio = float(&built["expected_fpr"]) / 0.0001;
            assert!((0.95..1.05).contains(&ratio), "{form}: {ratio}");
        }
    }
}

fn histogram(info: &Value) -> Vec<u64> {
    let counts = info["load_histogram"].as_array().unwrap();
    counts.iter().map(|count| count.as_u64().unwrap()).collect()
}

#[test]
fn info_counts_every_block_and_every_key() {
    let lab = Lab::new();
    lab.write("keys", lines(1, 20_000));
    lab.write("more", lines(2, 300_000));
    for form in ["--removable", "--repeats"] {
        lab.run(&format!(
            "build keys -o f --force --kind tinyset --fpr 0.001 {form}"
        ))
        .done();
        let info = lab.info("f");
        let loads = histogram(&info);
        let blocks: u64 = loads.iter().sum();
        assert_eq!(info["blocks"], blocks, "{form}");
        let keys: u64 = (0..).zip(&loads).map(|(x, n)| x * n).sum();
        assert_eq!(keys, 20_000, "{form}");
        assert_eq!(info["saturated_blocks"], 0, "{form}");

        let run = lab.run("info f");
        let bars = bars(run.done().text());
        assert!((8..=16).contains(&bars.len()), "{run:?}");
        let counted: u64 = bars.iter().map(|(_, blocks, _)| blocks).sum();
        assert_eq!(counted, blocks, "{run:?}");
        let longest = bars.iter().max_by_key(|(_, blocks, _)| blocks);
        assert_eq!(longest.unwrap().2, 40, "{run:?}");
        for (name, blocks, length) in bars {
            assert_eq!(blocks > 0, length > 0, "{name}");
        }
    }
    // So full that nothing can be told of most blocks.
    lab.run("add f more").done();
    let info = lab.info("f");
    let saturated = info["saturated_blocks"].as_u64().unwrap();
    let rest: u64 = histogram(&info).iter().sum();
    assert!(saturated > 0);
    assert_eq!(info["blocks"], saturated + rest);
    let run = lab.run("info f");
    let bars = bars(run.text());
    let (name, blocks, _) = bars.last().unwrap();
    assert_eq!((&name[..], *blocks), ("saturated", saturated));
    assert!(run.text().contains("blocks match every key"));
    lab.run("query -v f keys more").nothing();
    lab.run("verify f").done();

    lab.run("build keys -o b --kind blocked --fpr 0.01").done();
    assert_eq!(lab.info("b")["load_histogram"], Value::Null);
    assert_eq!(lab.info("b")["saturated_blocks"], 0);
    assert!(!lab.run("info b").text().contains('#'));
    // A filter without a key has one row.
    lab.write("none", "");
    lab.run("build none -o e --kind tinyset --fpr 0.01 --items 9").done();
    assert_eq!(histogram(&lab.info("e")).len(), 1);
}

/// The rows of the chart: a range, a number and the length of a bar.
fn bars(table: &str) -> Vec<(String, u64, usize)> {
    table
        .lines()
        .skip_while(|line| !line.starts_with("blocks by number"))
        .skip(1)
        .map(|line| {
            let parts: Vec<&str> = line.split_whitespace().collect();
            let blocks = parts[1].replace(',', "").parse().unwrap();
            let bar = parts.get(2).map_or(0, |bar| bar.len());
            (parts[0].to_owned(), blocks, bar)
        })
        .collect()
}
