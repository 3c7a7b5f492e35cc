//! Independent reference values, comparisons, and a random generator.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "each test file uses some of the items"
)]
#![allow(clippy::allow_attributes, reason = "an expectation may not hold")]

use serde_json::Value;

pub fn reference(block: &str) -> Vec<Value> {
    rows(include_str!("../fixtures/reference_values.json"), block)
}

pub fn tinyset_reference(block: &str) -> Vec<Value> {
    rows(include_str!("../fixtures/tinyset_reference.json"), block)
}

pub fn multilevel_reference(block: &str) -> Vec<Value> {
    rows(include_str!("../fixtures/multilevel_reference.json"), block)
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

pub fn counts(value: &Value) -> Vec<u64> {
    numbers(value).into_iter().map(|x| x as u64).collect()
}

pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

/// Comparisons, counted so that a test can assert their number.
#[derive(Default)]
pub struct Tally(pub usize);

impl Tally {
    /// Asserts six significant digits.
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

    /// Asserts `n` decimal places.
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

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    pub fn chance(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
