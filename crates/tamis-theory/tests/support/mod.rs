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
    rows(include_str!("../fixtures/reference_values.json"), block)
}

pub fn tinyset_reference(block: &str) -> Vec<Value> {
    rows(include_str!("../fixtures/tinyset_reference.json"), block)
}

fn rows(file: &str, block: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(file).unwrap();
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

    /// As many digits after the point as given.
    pub fn places(&mut self, what: &str, got: f64, want: &Value, n: i32) {
        self.0 += 1;
        let want = number(want);
        assert!(
            (got - want).abs() <= 0.501 * 10f64.powi(-n),
            "{what}: got {got}, reference {want}"
        );
    }

    pub fn equal(&mut self, what: &str, got: u32, expected: &Value) {
        self.0 += 1;
        assert_eq!(got, integer(expected), "{what}");
    }
}
