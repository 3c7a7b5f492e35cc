//! Every experiment: each figure agrees with the theory, and each verdict is
//! the expected one.

use std::collections::BTreeSet;
use std::fs;

use tamis_lab::claims::{self, Answer};
use tamis_lab::experiment::{ALL, Setting};
use tamis_lab::report::{Report, Verdict};

#[test]
fn every_verdict_is_expected_and_every_claim_is_answered() {
    check(&Setting::quick());
}

#[test]
#[ignore = "minutes: run by `cargo xtask slow`"]
fn every_verdict_is_expected_with_full_sizes() {
    check(&Setting::default());
}

/// One run of all, as `tamis lab run all`: no verdict is unexpected,
/// the report names every claim, each experiment named as an answer has a
/// finding about the claim, and no finding names an unknown claim.
fn check(setting: &Setting) {
    let directory = tempfile::tempdir().unwrap();
    let mut report = Report::new(directory.path(), setting.quick).unwrap();
    for experiment in &ALL {
        report.run(experiment, setting).unwrap();
    }
    let unexpected: Vec<_> = report
        .findings()
        .filter(|(_, finding)| finding.verdict() == Verdict::Unexpected)
        .collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    let claims = claims::all().unwrap();
    let ids: BTreeSet<&str> =
        claims.iter().map(|claim| claim.id.as_str()).collect();
    let found: BTreeSet<(&str, &str)> = report
        .findings()
        .flat_map(|(name, finding)| {
            finding.claims.iter().map(move |claim| (name, *claim))
        })
        .collect();
    for (name, claim) in &found {
        assert!(ids.contains(claim), "{name}: {claim}");
    }
    let page = fs::read_to_string(report.finish().unwrap()).unwrap();
    for claim in &claims {
        assert!(page.contains(&format!("id=\"{}\"", claim.id)));
        if let Answer::Experiment(name) = &claim.answer {
            let pair = (name.as_str(), claim.id.as_str());
            assert!(found.contains(&pair), "{pair:?}");
        }
    }
    assert!(!page.contains("not run"));
    has_the_planner(&page);
    for name in ALL.each_ref().map(|each| each.name) {
        for extension in ["csv", "svg"] {
            let file = directory.path().join(format!("{name}.{extension}"));
            assert!(file.metadata().unwrap().len() > 0);
        }
    }
}

/// The page contains the planner of `tamis explore`, whose names are those of
/// no other part, and refers to no other file.
fn has_the_planner(page: &str) {
    assert!(page.contains(&tamis_explorer::planner()));
    assert!(page.contains(tamis_explorer::STYLE));
    let ids = page.split(" id=").skip(1).map(|rest| {
        let end = rest.find([' ', '>']).unwrap();
        rest[..end].trim_matches('"')
    });
    let mut seen = BTreeSet::new();
    for id in ids {
        assert!(seen.insert(id), "two elements are called {id}");
    }
    for reference in ["src=", "<link", "url(http", "@import"] {
        assert!(!page.contains(reference), "{reference}");
    }
}
