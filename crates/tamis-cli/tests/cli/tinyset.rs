//! Tinyset filters in every verb, and as the default kind.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{TestDir, agree, lines};

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
fn every_design_works_in_every_verb() {
    let dir = TestDir::new();
    dir.write("first", lines(1, 4_000));
    dir.write("second", lines(2, 1_000));
    dir.write("others", lines(3, 20_000));
    for bytes in [64, 32] {
        for form in ["", "--repeats", "--removable"] {
            let what = format!("{bytes} bytes {form}");
            dir.run(&format!(
                "build first -o f --force --kind tinyset --fpr 0.01 \
                 --items 5000 --block-bytes {bytes} {form}"
            ))
            .success();
            dir.run("add f second").done();
            dir.run("verify f").success();
            dir.run("query -v f first second").no_match();
            let wrong = dir.count("f others");
            assert!((100..320).contains(&wrong), "{what}: {wrong}");
            let info = dir.info("f");
            assert_eq!(info["kind"], "tinyset", "{what}");
            assert_eq!(info["items"], 5_000, "{what}");
            assert_eq!(info["block_bits"], 8 * bytes, "{what}");
            let removable = form == "--removable";
            assert_eq!(info["removable"], removable, "{what}");
            assert_eq!(info["repeats"], !form.is_empty(), "{what}");
            assert_eq!(info["over_design"], false, "{what}");
            dir.run("fold f -o half --force").success();
            dir.run("grow f -o twice --force").success();
            dir.run("merge f half -o out").refused();
            dir.run("merge f f -o both --force").done();
            for changed in ["half", "twice", "both"] {
                dir.run(&format!("verify {changed}")).success();
                dir.run(&format!("query -v {changed} first second"))
                    .no_match();
            }
        }
    }
}

#[test]
fn block_size_is_given_in_bytes_or_bits() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 3_000));
    for kind in ["bloom", "blocked", "split", "balanced", "tinyset"] {
        let mut files = BTreeSet::new();
        for size in ["bytes 64", "bits 512", "bytes 32", "bits 256"] {
            dir.run(&format!(
                "build keys -o f --force --kind {kind} --fpr 0.001 \
                 --block-{size}"
            ))
            .success();
            files.insert(dir.read("f"));
        }
        assert_eq!(files.len(), 2, "{kind}");
    }
}

/// Fields of a report that only `remove` prints.
const REMOVALS: [&str; 3] = ["removed", "stuck", "absent"];

#[test]
fn removed_keys_are_absent_and_others_remain() {
    let dir = TestDir::new();
    let (gone, kept) = (lines(1, 2_000), lines(2, 2_000));
    dir.write("gone", &gone);
    dir.write("kept", &kept);
    dir.run(
        "build gone kept -o f --kind tinyset --removable --fpr 0.001 \
         --items 4000",
    )
    .success();
    let before = dir.info("f");
    let report = dir.run("remove f gone --json").json();
    assert_eq!(report["removed"], 2_000);
    assert_eq!(report["absent"], 0);
    assert_eq!(report["items"], 2_000);
    assert!(float(&report["expected_fpr"]) < float(&before["expected_fpr"]));
    dir.run("verify f").success();
    let mut fields = report.as_object().unwrap().clone();
    fields.retain(|name, _| !REMOVALS.contains(&&**name));
    agree(&Value::Object(fields), &dir.info("f"));
    dir.run("query -v f kept").no_match();
    // 2,000 keys less false positives.
    assert!(dir.count("-v f gone") > 1_970);

    // Absent keys are counted and change nothing.
    let absent: String = dir
        .run("query -v f gone")
        .text()
        .lines()
        .take(50)
        .map(|key| format!("{key}\n"))
        .collect();
    let file = dir.read("f");
    let run = dir.feed("remove f - --json", absent.as_bytes());
    run.no_match();
    let report: Value = serde_json::from_slice(&run.out).unwrap();
    assert_eq!(
        (&report["removed"], &report["absent"]),
        (&0.into(), &50.into())
    );
    assert!(dir.read("f") == file);

    let run = dir.run("remove f kept");
    let table = run.success().text();
    assert!(table.starts_with("removed         2,000\nabsent "), "{table}");
    dir.run("query f kept").no_match();
    // The emptied filter accepts keys again.
    dir.run("add f gone").success();
    dir.run("query -v f gone").no_match();
}

/// 100,000 copies of one key neither saturate its block nor leave a trace in
/// the emptied filter.
#[test]
fn a_hot_key_sticks_until_the_filter_is_empty() {
    let dir = TestDir::new();
    dir.write("hot", "hot\n".repeat(100_000));
    dir.write("cold", lines(1, 500));
    dir.run("build cold hot -o f --removable --fpr 0.01 --items 1000")
        .success();
    let info = dir.info("f");
    assert_eq!(info["items"], 100_500);
    assert_eq!(
        (&info["stuck_keys"], &info["saturated_blocks"]),
        (&1.into(), &0.into())
    );
    assert_eq!(info["over_design"], false);
    dir.run("verify f").done();
    assert!(dir.run("info f").text().contains("1 keys stay when removed"));

    let run = dir.run("remove f hot");
    run.no_match();
    let table = run.text();
    let row =
        "removed         0\nstuck           100,000, which still match\n";
    assert!(table.starts_with(row), "{table}");
    dir.run("query -q f -k hot").success();
    let report = dir.run("remove f cold --json").json();
    assert_eq!(report["removed"], 500);
    assert_eq!(
        (&report["items"], &report["stuck_keys"]),
        (&0.into(), &0.into())
    );
    dir.run("query -q f -k hot").no_match();
}

/// A key added three times takes three removals.
#[test]
fn one_occurrence_is_removed_at_a_time() {
    let dir = TestDir::new();
    let settings = "--kind tinyset --removable --fpr 1e-6 --items 100";
    dir.run(&format!("build -k a -k a -k a -k b -o f {settings}")).success();
    for left in [3, 2, 1] {
        assert_eq!(dir.info("f")["items"], left + 1);
        dir.run("query -q f -k a").success();
        dir.run("remove f -k a").success();
    }
    dir.run("query -q f -k a").no_match();
    dir.run("query -q f -k b").success();
    let report = dir.run("remove f -k a -k b -k c --json").json();
    assert_eq!(
        (&report["removed"], &report["absent"]),
        (&1.into(), &2.into())
    );
    assert_eq!(dir.info("f")["items"], 0);
    // Other key formats, and standard input.
    let seven = 7u64.to_le_bytes();
    for (format, key, bytes) in
        [("hex", "61ff", &b"61ff\n"[..]), ("u64le", "7", &seven)]
    {
        let build = format!("build -o {format} {settings}");
        dir.feed(&format!("{build} --key-format {format}"), b"").success();
        dir.run(&format!("add {format} -k {key}")).success();
        let run = dir.feed(&format!("remove {format} --json"), bytes);
        assert_eq!(run.json()["removed"], 1);
        assert_eq!(dir.info(format)["items"], 0);
    }
}

#[test]
fn remove_needs_a_removable_filter() {
    let dir = TestDir::new();
    for settings in [
        "--kind blocked",
        "--kind bloom",
        "--kind split",
        "--kind balanced",
        "--kind tinyset",
        "--kind tinyset --repeats",
        "",
    ] {
        dir.run(&format!("build -k a -o f --force --fpr 0.001 {settings}"))
            .success();
        let message = dir.refused("remove f -k a");
        assert!(message.contains("cannot remove"), "{message}");
        let hint = "--kind tinyset --removable";
        assert!(message.contains(hint), "{message}");
    }
}

#[test]
fn failed_remove_leaves_the_file_unchanged() {
    let dir = TestDir::new();
    let good: String = lines(1, 100_000)
        .lines()
        .map(|line| line[..8].to_owned() + "\n")
        .collect();
    dir.write("good.hex", &good);
    dir.write("bad.hex", good + "12345\n");
    dir.run(
        "build good.hex -o f --fpr 0.01 --key-format hex --kind tinyset \
         --removable",
    )
    .success();
    let message = dir.refused("remove f bad.hex --key-format hex");
    assert!(message.contains("bad.hex: key 100001:"), "{message}");
    dir.refused("remove f good.hex missing.hex --key-format hex");
    dir.refused("remove f -k 123 --key-format hex");
    dir.refused("remove missing -k a");
}

#[test]
fn predicted_rates_match_the_results() {
    let dir = TestDir::new();
    for shard in 0..4 {
        dir.write(&format!("{shard}.txt"), lines(shard, 5_000));
    }
    for form in ["", "--removable"] {
        let settings =
            format!("--kind tinyset --items 20000 --fpr 0.001 --force {form}");
        for shard in 0..4 {
            let build = format!("build {shard}.txt -o {shard} {settings}");
            dir.run(&build).success();
        }
        let all = "0.txt 1.txt 2.txt 3.txt";
        dir.run(&format!("build {all} -o direct {settings}")).success();
        let merged = dir.run("merge 0 1 2 3 -o all --force --json").json();
        assert_eq!(merged["items"], 20_000);
        near(&merged["predicted_fpr"], float(&merged["expected_fpr"]));
        let direct = float(&dir.info("direct")["expected_fpr"]);
        let ratio = float(&merged["expected_fpr"]) / direct;
        assert!((0.98..1.02).contains(&ratio), "{form}: {ratio}");

        let folded = dir.run("fold all -o half --force --json").json();
        near(&folded["predicted_fpr"], float(&folded["expected_fpr"]));
        let grown = dir.run("grow all -o twice --force --json").json();
        near(&grown["predicted_fpr"], float(&grown["expected_fpr"]));
        let blocks = |report: &Value| report["blocks"].as_u64().unwrap();
        assert_eq!(blocks(&folded), blocks(&merged) / 2);
        assert_eq!(blocks(&grown), blocks(&merged) * 2);
        assert_eq!(grown["design_items"], 40_000);
        for file in ["all", "half", "twice"] {
            dir.run(&format!("verify {file}")).success();
            dir.run(&format!("query -v {file} {all}")).no_match();
        }

        // The table begins with the prediction.
        for command in
            ["merge 0 1 -o g --force", "fold all -o g --force", "grow all"]
        {
            let run = dir.run(command);
            let table = run.success().text();
            assert!(table.starts_with("predicted  "), "{table}");
        }
    }
    // No prediction for a single filter, nor for Bloom kinds.
    let alone = dir.run("merge 0 -o g --force --json").json();
    assert_eq!(alone["predicted_fpr"], Value::Null);
    dir.run("build 0.txt -o b --kind blocked --fpr 0.01").success();
    let folded = dir.run("fold b -o g --force --json").json();
    assert_eq!(folded["predicted_fpr"], Value::Null);
    let run = dir.run("fold b -o g --force");
    assert!(run.success().text().starts_with("kind  "), "{run:?}");
}

/// A doubled filter has about twice the rate when filled again.
#[test]
fn grow_doubles_the_capacity_in_place() {
    let dir = TestDir::new();
    for shard in 0..2 {
        dir.write(&format!("{shard}.txt"), lines(shard, 10_000));
    }
    dir.run("build 0.txt -o f --kind tinyset --fpr 0.001").success();
    dir.run("grow f").success();
    let filled = dir.run("add f 1.txt --json").json();
    assert_eq!(filled["over_design"], false);
    // Stored with seven digits.
    assert!((float(&filled["design_fpr"]) - 0.002).abs() < 1e-9);
    let rate = float(&filled["expected_fpr"]);
    assert!((0.0017..0.0023).contains(&rate), "{rate}");
    dir.run("query -v f 0.txt 1.txt").no_match();
    // `fold` undoes `grow`, repeatedly.
    for _ in 0..2 {
        dir.run("grow f").success();
        dir.run("fold f -o folded").success();
        std::fs::rename(dir.path("folded"), dir.path("f")).unwrap();
        dir.run("query -v f 0.txt 1.txt").no_match();
        dir.run("verify f").success();
    }
    for kind in ["bloom", "blocked", "split", "balanced"] {
        dir.run(&format!("build 0.txt -o {kind} --kind {kind} --fpr 0.01"))
            .success();
        let message = dir.refused(&format!("grow {kind}"));
        assert!(message.contains("cannot grow"), "{message}");
    }
}

#[test]
fn merge_refuses_different_settings_and_names_them() {
    let dir = TestDir::new();
    let build = |name: &str, settings: &str| {
        dir.run(&format!(
            "build -k apple -o {name} --kind tinyset {settings}"
        ))
        .success();
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
        let message = dir.refused(&format!("merge base {other} -o out"));
        let wanted = format!("{field} differs");
        assert!(message.contains(&wanted), "{other}: {message}");
        assert!(message.contains("build "), "{message}");
        dir.refused(&format!("merge {other} base -o out"));
    }
    // More than one setting differs.
    let message = dir.refused("merge base removable-mode -o out");
    assert!(message.contains("differs"), "{message}");
    dir.run("build -k apple -o other --kind blocked --fpr 0.01").success();
    let message = dir.refused("merge base other -o out");
    assert!(message.contains("kind differs"), "{message}");
}

#[test]
fn two_levels_are_smaller_and_support_only_add() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 60_000));
    dir.write("more", lines(2, 1_000));
    let settings = "--kind tinyset --fpr 0.0001 --items 61000";
    dir.run(&format!("build keys -o one {settings}")).success();
    dir.run(&format!("build keys -o two {settings} --levels 2")).success();
    dir.run("verify two").success();
    dir.run("add two more").done();
    dir.run("verify two").success();
    dir.run("query -v two keys more").no_match();
    let (one, two) = (dir.info("one"), dir.info("two"));
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
        let message = dir.refused(command);
        let verb = command.split(' ').next().unwrap();
        let wanted = format!("cannot {verb}");
        assert!(message.contains(&wanted), "{message}");
        assert!(!message.contains("--seed"), "{message}");
    }
    // One level is the default.
    dir.run(&format!("build keys -o same {settings} --levels 1")).success();
    assert!(dir.read("same") == dir.read("one"));
}

#[test]
fn design_options_need_a_tinyset_filter() {
    let dir = TestDir::new();
    for option in ["--removable", "--repeats", "--levels 2", "--levels 1"] {
        for kind in ["--kind blocked", "--kind balanced"] {
            let message = dir.refused(&format!(
                "build -k a -o f --fpr 0.001 {kind} {option}"
            ));
            assert!(message.contains("--kind tinyset"), "{message}");
        }
    }
    let message = dir.refused(
        "build -k a -o f --fpr 0.0001 --kind tinyset --removable --levels 2",
    );
    assert!(message.contains("one level"), "{message}");
    dir.refused("build -k a -o f --fpr 0.001 --kind tinyset --choices 3");
}

#[test]
fn default_kind_follows_the_rate() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 3_000));
    let kind = |settings: &str| {
        let build = format!("build keys -o f --force --json {settings}");
        let built = dir.run(&build).json()["kind"].clone();
        // The default decides only the kind: `--kind` gives the same file.
        let file = dir.read("f");
        let settings = settings
            .replace("--prefer space", "")
            .replace("--prefer speed", "");
        let kind = built.as_str().unwrap().to_owned();
        dir.run(&format!("build keys -o f --force --kind {kind} {settings}"))
            .success();
        assert!(dir.read("f") == file, "{settings}");
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
    // Tinyset has 3 % at 7.28 bits per key, 0.01 % at 17.2.
    for (bits, expected) in [
        ("4", "blocked"),
        ("7.27", "blocked"),
        ("7.3", "tinyset"),
        ("10", "tinyset"),
        ("17.2", "tinyset"),
        ("17.3", "blocked"),
        ("40", "blocked"),
    ] {
        let size = format!("--bits-per-key {bits}");
        assert_eq!(kind(&size), expected, "{bits}");
        assert_eq!(kind(&format!("{size} --prefer speed")), "blocked");
    }
    // With blocks of 32 bytes, 3 % takes 7.44 bits per key.
    let half = "--block-bytes 32 --bits-per-key";
    assert_eq!(kind(&format!("{half} 7.4")), "blocked");
    assert_eq!(kind(&format!("{half} 7.5")), "tinyset");
}

fn rows(plan: &Value) -> &Vec<Value> {
    plan["designs"].as_array().unwrap()
}

/// Row of the tinyset design with these settings.
fn row(plan: &Value, removable: bool, levels: u32) -> &Value {
    let found = rows(plan).iter().find(|row| {
        row["kind"] == "tinyset"
            && row["removable"] == removable
            && row["levels"] == levels
    });
    found.unwrap_or_else(|| panic!("{removable} {levels}: {plan}"))
}

#[test]
fn plan_compares_all_designs_and_recommends_one() {
    let dir = TestDir::new();
    let plan = |arguments: &str| {
        dir.run(&format!("plan --items 1e6 --json {arguments}")).json()
    };
    // The best kind that reads one block, unless another saves 5 %.
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

    let table = dir.run("plan --items 1e6 --fpr 0.0001");
    let table = table.success().text();
    for name in ["tinyset ", "tinyset, removable ", "tinyset, 2 levels "] {
        assert!(table.contains(&format!("\n{name}")), "{table}");
    }
    assert!(table.contains("Recommended: tinyset (--kind tinyset)"));
    // Bloom kinds have no levels.
    assert!(rows(&plan)[0].get("levels").is_none());
}

#[test]
fn planned_sizes_are_built() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 200_000));
    for block in ["--block-bytes 64", "--block-bytes 32"] {
        let plan = dir
            .run(&format!("plan --items 2e5 --fpr 0.0001 --json {block}"))
            .json();
        for (form, removable, levels) in [
            ("", false, 1),
            ("--removable", true, 1),
            ("--levels 2", false, 2),
        ] {
            let planned = row(&plan, removable, levels);
            let built = dir
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

/// Removals free slots, which `info` shows beside the keys.
#[test]
fn info_shows_the_slots_that_removals_freed() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 20_000));
    dir.write("half", lines(1, 10_000));
    dir.run("build keys -o f --kind tinyset --fpr 0.001 --removable")
        .success();
    assert_eq!(dir.info("f")["slots"], dir.info("f")["items"]);
    assert!(!dir.run("info f").text().contains("free"));
    dir.run("remove f half").done();
    let info = dir.info("f");
    let items = info["items"].as_u64().unwrap();
    assert_eq!(info["slots"].as_u64().unwrap(), items + 10_000);
    assert!(
        dir.run("info f")
            .text()
            .replace("\n", " ")
            .contains("10,000 of them free")
    );
}

#[test]
fn info_counts_every_block_and_every_key() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 20_000));
    dir.write("more", lines(2, 300_000));
    for form in ["--removable", "--repeats"] {
        dir.run(&format!(
            "build keys -o f --force --kind tinyset --fpr 0.001 {form}"
        ))
        .success();
        let info = dir.info("f");
        let loads = histogram(&info);
        let blocks: u64 = loads.iter().sum();
        assert_eq!(info["blocks"], blocks, "{form}");
        let keys: u64 = (0..).zip(&loads).map(|(x, n)| x * n).sum();
        assert_eq!(keys, 20_000, "{form}");
        assert_eq!(info["saturated_blocks"], 0, "{form}");

        let run = dir.run("info f");
        let bars = bars(run.success().text());
        assert!((8..=16).contains(&bars.len()), "{run:?}");
        let counted: u64 = bars.iter().map(|(_, blocks, _)| blocks).sum();
        assert_eq!(counted, blocks, "{run:?}");
        let longest = bars.iter().max_by_key(|(_, blocks, _)| blocks);
        assert_eq!(longest.unwrap().2, 40, "{run:?}");
        for (name, blocks, length) in bars {
            assert_eq!(blocks > 0, length > 0, "{name}");
        }
    }
    // Overfull: most blocks are saturated.
    dir.run("add f more").done();
    let info = dir.info("f");
    let saturated = info["saturated_blocks"].as_u64().unwrap();
    let rest: u64 = histogram(&info).iter().sum();
    assert!(saturated > 0);
    assert_eq!(info["blocks"], saturated + rest);
    let run = dir.run("info f");
    let bars = bars(run.text());
    let (name, blocks, _) = bars.last().unwrap();
    assert_eq!((&name[..], *blocks), ("saturated", saturated));
    assert!(run.text().contains("blocks match every key"));
    dir.run("query -v f keys more").no_match();
    dir.run("verify f").done();

    dir.run("build keys -o b --kind blocked --fpr 0.01").success();
    assert_eq!(dir.info("b")["load_histogram"], Value::Null);
    assert_eq!(dir.info("b")["saturated_blocks"], 0);
    assert!(!dir.run("info b").text().contains('#'));
    // An empty filter has one row.
    dir.write("none", "");
    dir.run("build none -o e --kind tinyset --fpr 0.01 --items 9").success();
    assert_eq!(histogram(&dir.info("e")).len(), 1);
}

/// Rows of the chart: range, number of blocks and length of the bar.
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
