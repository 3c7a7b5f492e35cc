//! Each claim of the papers has an answer, and the answer exists.

use std::fs;
use std::path::Path;

use tamis_lab::claims::{self, Answer};

/// Claims of each paper.
const COUNTS: [(char, usize); 3] = [('B', 80), ('S', 38), ('T', 44)];

#[test]
fn every_number_of_the_papers_is_listed_once() {
    let listed: Vec<String> =
        claims::all().unwrap().into_iter().map(|claim| claim.id).collect();
    let numbers = COUNTS.iter().flat_map(|(paper, count)| {
        (1..=*count).map(move |number| format!("{paper}-{number:03}"))
    });
    assert_eq!(listed, numbers.collect::<Vec<_>>());
}

#[test]
fn tests_and_places_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for claim in claims::all().unwrap() {
        assert!(!claim.statement.is_empty() && !claim.source.is_empty());
        let (place, is_test) = match &claim.answer {
            Answer::Test(place) => (place, true),
            Answer::Code(place) => (place, false),
            Answer::Reason(reason) => {
                assert!(reason.len() > 20, "{claim:?}");
                continue;
            }
            Answer::Experiment(_) => continue,
        };
        let (file, item) = place.split_once(": ").unwrap();
        let text = fs::read_to_string(root.join(file))
            .unwrap_or_else(|error| panic!("{file}: {error}"));
        let present = match is_test {
            true => text.contains(&format!("fn {item}(")),
            false => text.contains(item),
        };
        assert!(present, "{}: no {item} in {file}", claim.id);
    }
}
