//! Warnings and hints on filters that are nearly or over their design.

use crate::support::{KINDS, ProgramRun, TestDir, lines};

/// Asserts success with one line on stderr that contains `parts`.
#[track_caller]
fn warned(run: &ProgramRun, parts: &[&str]) {
    run.status(0);
    let message = run.message();
    for part in parts {
        assert!(message.contains(part), "no {part:?}: {message}");
    }
}

#[test]
fn filters_over_their_design_are_a_warning_or_an_error() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 1_000));
    dir.write("more", lines(2, 1_000));
    for kind in KINDS {
        let small = format!("--kind {kind} --fpr 0.01 --items 100 --force -q");
        let over = ["warning: f: over its design of 100", "--items 1000"];
        let build = format!("build keys -o f {small}");
        warned(&dir.run(&build), &over);
        let query = dir.run("query -c f keys");
        warned(&query, &over);
        assert_eq!(query.text(), "1000\n");

        std::fs::remove_file(dir.path("f")).unwrap();
        let message = dir.refused(&format!("{build} --strict"));
        assert!(message.contains(over[1]), "{message}");
        dir.run(&build).status(0);
        dir.refused("query --strict f keys");

        let exact = format!("--kind {kind} --fpr 0.01 --items 1000 --force");
        let whole = format!("build keys -o f {exact} --strict");
        dir.run(&whole).success();
        dir.run("query --strict f keys -q").success();
        dir.refused("add --strict f more");
        warned(
            &dir.run("add -q f more"),
            &["warning: f: over its design of 1,000", "--items 2000"],
        );
        dir.run(&format!("build keys -o a {exact}")).success();
        dir.run(&format!("build more -o b {exact}")).success();
        dir.refused("merge a b -o m --strict");
        warned(
            &dir.run("merge a b -o m -q --force"),
            &["warning: m: over its design of 1,000", "every part", "2000"],
        );
        warned(&dir.run("query -c m keys"), &["over its design"]);
    }
}

/// The header counts repeats, which do not fill a filter.
#[test]
fn repeats_are_no_reason_for_a_warning() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 1_000).repeat(5));
    for kind in KINDS {
        let options = format!("--kind {kind} --fpr 0.01 --items 1000");
        dir.run(&format!("build keys -o {kind} {options} --strict")).success();
        assert_eq!(dir.info(kind)["items"], 5_000);
        dir.run(&format!("query -q --strict {kind} keys")).success();
    }
}

/// A false-positive rate that the query cannot distinguish from the design's
/// is no reason for one either.
#[test]
fn a_few_keys_too_many_do_not_disturb_queries() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 10_300));
    let options = "--fpr 0.01 --items 10000";
    warned(
        &dir.run(&format!("build keys -o f {options} -q")),
        &["over its design"],
    );
    dir.run("query -q --strict f keys").success();
}

#[test]
fn two_levels_warn_where_one_level_does_not() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 44_400));
    let build = "build keys --fpr 0.0001 --items 40000 -q";
    warned(&dir.run(&format!("{build} -o two --levels 2")), &["over"]);
    warned(&dir.run(&format!("{build} -o one --levels 1")), &["over"]);
    warned(&dir.run("query -c two keys"), &["over its design of 40,000"]);
    dir.run("query -c one keys").success();
}

#[test]
fn nearly_full_filters_are_a_hint() {
    let dir = TestDir::new();
    dir.write("most", lines(1, 890));
    dir.write("some", lines(2, 30));
    for (options, cure) in [
        ("--kind tinyset", "`tamis grow`"),
        ("--kind blocked", "cannot grow"),
        ("--levels 2", "two levels"),
    ] {
        let build = format!("build most -o f --items 1000 --force {options}");
        dir.run(&format!("{build} --fpr 0.0001")).success();
        warned(&dir.run("add f some"), &["hint: f: 9", "% full", cure]);
        dir.run("add -q f some").success();
    }
    dir.feed("seen g --items 1000 -c", lines(1, 890).as_bytes()).message();
    let run = dir.feed("seen g -c", lines(2, 30).as_bytes());
    assert!(run.err.contains("hint: g: 92 % full"), "{run:?}");
}

#[test]
fn growing_too_late_is_a_warning() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 4_000));
    let build = "build keys -o f --kind tinyset --fpr 0.01 --force -q";
    dir.run(&format!("{build} --items 1000")).status(0);
    warned(&dir.run("grow f"), &["warning", "--items 4000"]);
    dir.run(&format!("{build} --items 4000")).success();
    dir.run("grow f").success();
}

#[test]
fn repeats_that_made_a_filter_too_large_are_a_hint() {
    let dir = TestDir::new();
    let keys = lines(1, 12_429);
    dir.write("keys", keys.repeat(7));
    dir.write("once", &keys);
    for kind in KINDS {
        let build = format!("build -o f --kind {kind} --fpr 0.001 --force");
        let run = dir.run(&format!("{build} keys"));
        warned(&run, &["hint: 87,003 keys, about 12,4", "saves 86 %"]);
        let items = run.err.split("--items ").nth(1).unwrap();
        let items: u64 = items.split(' ').next().unwrap().parse().unwrap();
        assert!((12_429..12_700).contains(&items), "{run:?}");
        dir.run(&format!("{build} -q keys")).success();
        dir.run(&format!("{build} --items {items} --strict keys")).success();
        dir.run(&format!("{build} once")).success();
        assert_eq!(dir.info("f")["over_design"], false);
    }
    // Each repeat is stored.
    dir.run("build -o f --removable --fpr 0.001 --force keys").success();
}

/// A filter far over its design cannot count its keys. The bounds hold, and
/// the advice is not below the number of keys.
#[test]
fn the_advice_is_not_below_the_number_of_keys() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 20_000));
    for settings in [
        "--kind tinyset",
        "--kind tinyset --repeats",
        "--kind blocked",
        "--kind bloom",
        "--kind split",
    ] {
        dir.run(&format!(
            "build keys -o f --force --fpr 0.01 --items 100 {settings}"
        ))
        .done();
        let info = dir.info("f");
        let number = |field: &str| info[field].as_f64().unwrap();
        let (least, most) = (number("least_items"), number("most_items"));
        assert!(least <= 20_000.0 && 20_000.0 <= most, "{settings}: {info}");
        let estimate = number("estimated_items");
        assert!(least <= estimate && estimate <= most, "{settings}: {info}");
        let run = dir.run("info f");
        let text = run.text();
        let advice = text.split("--items ").nth(1).unwrap_or_default();
        let digits = |c: &char| c.is_ascii_digit();
        let items: String = advice.chars().take_while(digits).collect();
        assert!(items.parse::<u64>().unwrap() >= 20_000, "{settings}: {text}");
    }
}
