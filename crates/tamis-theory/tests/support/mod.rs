//! Independent reference values and the comparison used for all of them.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "each test file uses its own part"
)]
#![allow(clippy::allow_attributes, reason = "an expectation may not hold")]

use serde_json::Value;

pub fn reference(block: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!(
        "../fixtures/reference_values.json"
    ))
    .unwrap();
    all[block].as_array().unwrap().clone()
}

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

pub fn integer(value: &Value) -> u32 {
    number(value) as u32
}

pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

/// Counts comparisons, so that a test can state how many it made.
#[derive(Default)]
pub struct Tally(pub usize);

impl Tally {
    /// Six significant digits.
    pub fn same(&mut self, what: &str, got: f64, expected: &Value) {
        self.within(what, got, number(expected), 1e-6);
    }

    pub fn within(&mut self, what: &str, got: f64, want: f64, part: f64) {
        self.0 += 1;
        assert!(
            (got - want).abs() <= part * want.abs(),
            "{what}: got {got}, reference {want}"
        );
    }

    pub fn equal(&mut self, what: &str, got: u32, expected: &Value) {
        self.0 += 1;
        assert_eq!(got, integer(expected), "{what}");
    }
}
