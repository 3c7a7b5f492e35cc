//! Reports of info and plan.

use serde_json::Value;
use tamis_theory::plan::{self, Kind};
use tamis_theory::tinyset::{self, Block};
use tamis_theory::{Prediction, blocked, split, standard};

use crate::support::{KINDS, TestDir, agree, header, lines};

fn float(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn info_has_every_field() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 30_000));
    for kind in KINDS {
        let build = dir.run(&format!(
            "build keys -o {kind} --kind {kind} --fpr 0.01 --seed 77 --json"
        ));
        let info = dir.info(kind);
        agree(&build.json(), &info);
        for name in [
            "kind",
            "format_version",
            "hash",
            "seed",
            "items",
            "design_items",
            "bits_per_key",
            "bytes",
            "expected_fpr",
            "design_fpr",
            "reads_hit",
            "reads_miss",
            "saturated_blocks",
            "stuck_keys",
            "over_design",
        ] {
            assert!(!info[name].is_null(), "{kind}: no {name} in {info}");
        }
        assert_eq!(info["kind"], kind);
        assert_eq!(info["format_version"], tamis::Header::FORMAT_VERSION);
        assert_eq!(info["hash"], "xxh3");
        assert_eq!(info["seed"], "0x4d");
        assert_eq!(info["items"], 30_000);
        assert_eq!(info["design_items"], 30_000);
        assert_eq!(info["over_design"], false);
        let file = dir.read(kind);
        let bytes = file.len();
        assert_eq!(info["bytes"], bytes);

        let design = match kind {
            "bloom" => standard::for_fpr(0.01),
            "blocked" => blocked::for_fpr(512, 0.01),
            "split" => split::for_fpr(512, 0.01),
            _ => tinyset::for_fpr(Block::new(512, 64), 0.01),
        };
        let design = design.unwrap();
        // Stored with seven digits.
        close(&info["design_fpr"], design.fpr, 1e-7);
        // Rounded up to an even number of blocks: 2 in about 590.
        close(&info["bits_per_key"], design.bits_per_key, 0.004);
        // The metadata is the last section, shorter than 64 bytes.
        let blocks = (bytes - 1) / 64 * 64 - header(&file);
        let without_header = blocks as f64 * 8.0 / 30_000.0;
        close(&info["bits_per_key"], without_header, 1e-9);
        close(&info["expected_fpr"], 0.01, 0.05);
        close(&info["reads_hit"], design.reads_hit, 1e-9);
        close(&info["reads_miss"], design.reads_miss, 0.02);

        let table = dir.run(&format!("info {kind}"));
        let table = table.success().text();
        for part in [kind, "30,000", "xxh3", "seed 0x4d"] {
            assert!(table.contains(part), "{part}: {table}");
        }
        assert!(!table.contains("OVER"), "{table}");
    }
}

fn close(value: &Value, expected: f64, relative: f64) {
    let value = float(value);
    assert!(
        (value - expected).abs() <= relative * expected.abs(),
        "{value} is not {expected} within {relative}"
    );
}

#[test]
fn filters_over_their_design_are_reported() {
    let dir = TestDir::new();
    dir.write("design", lines(1, 5_000));
    dir.write("more", lines(2, 20_000));
    for kind in KINDS {
        dir.run(&format!("build design -o {kind} --kind {kind} --fpr 0.01"))
            .success();
        let before = dir.info(kind);
        assert_eq!(before["over_design"], false);
        let after = dir.run(&format!("add {kind} more --json")).json();
        agree(&after, &dir.info(kind));
        assert_eq!(after["over_design"], true, "{kind}");
        assert_eq!(after["design_fpr"], before["design_fpr"]);
        assert!(float(&after["expected_fpr"]) > 0.2, "{kind}: {after}");
        assert_eq!(after["bytes"], before["bytes"]);
        let table = dir.run(&format!("info {kind}"));
        assert!(table.text().contains("OVER DESIGN"), "{table:?}");
        // No false negatives, even over the design.
        dir.run(&format!("query -v {kind} design more")).no_match();
    }
}

#[test]
fn siphash_seeds_are_random_unless_given() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 1_000));
    let build = |name: &str, settings: &str| {
        dir.run(&format!("build keys -o {name} --fpr 0.01 {settings}"))
            .success();
        dir.read(name)
    };
    let seed = |file: &[u8]| file[16..32].to_vec();
    let secret = build("secret", "--hash siphash");
    let another = build("another", "--hash siphash");
    assert_ne!(seed(&secret), seed(&another));
    assert!(secret[128..] != another[128..]);
    dir.run("query -v secret keys").no_match();
    dir.run("query -v another keys").no_match();
    assert_eq!(dir.info("secret")["hash"], "siphash");

    let hex = build("hex", "--hash siphash --seed 0x75bcd15");
    let decimal = build("decimal", "--hash siphash --seed 123456789");
    assert!(hex == decimal);
    let shown = dir.run("info --show-key hex --json").json();
    assert_eq!(shown["seed"], "0x75bcd15");
    dir.run("query -v hex keys").no_match();

    let plain = build("plain", "");
    assert!(plain == build("zero", "--seed 0"));
    assert!(plain != build("one", "--seed 1"));
    dir.run("query -v one keys").no_match();
}

#[test]
fn plan_prints_the_predictions_of_the_theory() {
    let dir = TestDir::new();
    let check = |size: &str, expected: [(&str, Prediction); 4]| {
        let plan = dir
            .run(&format!("plan --items 1e9 {size} --json --miss-share 0.75"))
            .json();
        assert_eq!(plan["items"], 1_000_000_000);
        let designs = plan["designs"].as_array().unwrap();
        let names: Vec<&Value> =
            designs.iter().map(|design| &design["kind"]).collect();
        assert!(names.contains(&&plan["recommended"]), "{plan}");
        for (kind, theory) in expected {
            let design = designs
                .iter()
                .find(|design| design["kind"] == kind)
                .unwrap_or_else(|| panic!("no {kind} in {plan}"));
            // Conversion to text and back may change the last digit.
            close(&design["bits_per_key"], theory.bits_per_key, 1e-15);
            close(&design["fpr"], theory.fpr, 1e-15);
            close(&design["reads_hit"], theory.reads_hit, 1e-15);
            close(&design["reads_miss"], theory.reads_miss, 1e-15);
            assert_eq!(design["probes"], theory.probes, "{kind}");
            let mean = 0.75 * theory.reads_miss + 0.25 * theory.reads_hit;
            close(&design["reads"], mean, 1e-12);
            close(&design["bytes"], 1.25e8 * theory.bits_per_key, 1e-7);
        }
    };
    let line = Block::new(512, 64);
    for fpr in [0.05, 0.01, 0.001, 1e-6] {
        check(
            &format!("--fpr {fpr}"),
            [
                ("bloom", standard::for_fpr(fpr).unwrap()),
                ("blocked", blocked::for_fpr(512, fpr).unwrap()),
                ("split", split::for_fpr(512, fpr).unwrap()),
                ("tinyset", tinyset::for_fpr_once(line, fpr).unwrap()),
            ],
        );
    }
    for bits in [4.0, 10.0, 16.5, 40.0] {
        check(
            &format!("--bits-per-key {bits}"),
            [
                ("bloom", standard::best(bits).unwrap()),
                ("blocked", blocked::best(512, bits).unwrap()),
                ("split", split::best(512, bits).unwrap()),
                (
                    "tinyset",
                    tinyset::predict_once(line, 512.0 / bits).unwrap(),
                ),
            ],
        );
    }
    let table = dir.run("plan --items 1e9 --fpr 0.01");
    let table = table.success().text();
    for kind in KINDS {
        assert!(table.contains(kind), "{table}");
    }
    assert!(table.contains("Recommended: "), "{table}");
}

/// `plan` predicts without builders, so that it can run in a browser.
#[test]
fn the_builders_predict_what_plan_does() {
    use tamis::{Balanced, Blocked, Bloom, Split, TinySet};
    let sizes = [0.2, 0.03, 0.01, 0.001, 2e-4, 1e-4, 1e-5, 1e-8]
        .map(plan::Size::Fpr)
        .into_iter()
        .chain([3.0, 8.0, 13.5, 25.0, 60.0].map(plan::Size::BitsPerKey));
    let mut compared = 0;
    for size in sizes {
        let built = match size {
            plan::Size::Fpr(fpr) => tamis::Size::Fpr(fpr),
            plan::Size::BitsPerKey(bits) => tamis::Size::BitsPerKey(bits),
        };
        for block_bits in [512, 256] {
            for kind in Kind::ALL {
                macro_rules! of {
                    ($kind:ty $(, $form:ident)?) => {{
                        let builder = <$kind>::builder().size(built)$(.$form())?;
                        builder.block_bits(block_bits).predict()
                    }};
                }
                let built = match kind {
                    Kind::Blocked => of!(Blocked),
                    Kind::Split => of!(Split),
                    Kind::Bloom => of!(Bloom),
                    Kind::TinySet => of!(TinySet),
                    Kind::Removable => of!(TinySet, removable),
                    Kind::TwoLevels => of!(TinySet, two_level),
                    Kind::Balanced => of!(Balanced),
                };
                let planned = kind.predict(size, block_bits);
                compared += 1;
                let (Ok(built), Ok(planned)) = (&built, &planned) else {
                    assert!(built.is_err() && planned.is_err(), "{kind:?}");
                    continue;
                };
                // Bloom kinds round computed memory up to 2^-12 bits.
                let more = built.bits_per_key - planned.bits_per_key;
                assert!((0.0..1.0 / 4096.0).contains(&more), "{kind:?}");
                let bits_per_key = built.bits_per_key;
                let rounded = Prediction { bits_per_key, ..*planned };
                assert_eq!(*built, rounded, "{kind:?} {size:?}");
            }
        }
    }
    assert_eq!(compared, 13 * 2 * 7);
}

/// Every line of `text` fits a terminal of 80 columns.
#[track_caller]
fn assert_narrow(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}\n{text}");
    }
}

#[test]
fn tables_fit_80_columns() {
    let dir = TestDir::new();
    dir.write("keys", lines(1, 30_000));
    for kind in ["bloom", "blocked", "split", "balanced", "tinyset"] {
        for settings in ["--fpr 0.01", "--fpr 1e-6 --items 10"] {
            let run = dir.run(&format!(
                "build keys -o f --force --kind {kind} {settings}"
            ));
            assert_narrow(run.done().text());
            assert_narrow(dir.run("info f").success().text());
        }
    }
    for items in ["1", "1e6", "18446744073709551615"] {
        for size in [
            "--fpr 0.3",
            "--fpr 0.01",
            "--fpr 1e-9",
            "--bits-per-key 3",
            "--bits-per-key 40",
        ] {
            for prefer in ["space", "speed"] {
                let run = dir.run(&format!(
                    "plan --items {items} {size} --prefer {prefer}"
                ));
                assert_narrow(run.success().text());
            }
        }
    }
    for arguments in [
        "bound --access-budget 1.2 --load 8 --overflow 0.005",
        "region --scheme multilevel --access-budget 1.9 --load 8 --choices 9",
        "fpr --scheme multilevel --bits-per-key 24",
        "fpr --scheme tinyset --load 39 --removable --replaced 2",
        "tune --bits-per-key 24 --max-reads-miss 1.25",
        "crisis --items 1000 --levels 900,300,120,60,40,30,20,10 --churn",
        "summary --optimise --items 10000 --buckets-per-item 3",
    ] {
        let run = dir.run(&format!("theory {arguments}"));
        assert_narrow(run.success().text());
    }
}

#[test]
fn version_names_the_program() {
    let dir = TestDir::new();
    let run = dir.run("-V");
    let expected = concat!("tamis ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(run.success().text(), expected);
    let run = dir.run("query -V");
    assert!(run.success().text().starts_with("tamis-query "), "{run:?}");
}
