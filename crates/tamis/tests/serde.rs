//! serde: filters as the bytes of their file, in formats with and without a
//! byte type.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod support;

use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::{BytesDeserializer, Error};
use support::{Recipe, Size, keys};
use tamis::*;

fn filters() -> impl Iterator<Item = AnyFilter> {
    Kind::ALL.into_iter().map(|kind| {
        let recipe = Recipe::new(kind, 100, Size::BitsPerKey(10.0));
        let mut filter = recipe.build().unwrap();
        for key in keys(1, 100) {
            filter.insert(&key);
        }
        filter
    })
}

#[test]
fn filters_survive_a_round_trip() {
    for filter in filters() {
        let bytes = filter.to_bytes();
        let json = serde_json::to_string(&filter).unwrap();
        assert_eq!(json, serde_json::to_string(&bytes).unwrap());
        let again: AnyFilter = serde_json::from_str(&json).unwrap();
        assert_eq!(again.to_bytes(), bytes);

        let binary: BytesDeserializer<'_, Error> =
            bytes[..].into_deserializer();
        let again = AnyFilter::deserialize(binary).unwrap();
        assert_eq!(again.to_bytes(), bytes);
    }
}

#[test]
fn each_kind_accepts_its_own_bytes() {
    for filter in filters() {
        let json = serde_json::to_string(&filter).unwrap();
        let accepted = [
            serde_json::from_str::<Bloom>(&json).is_ok(),
            serde_json::from_str::<Blocked>(&json).is_ok(),
            serde_json::from_str::<Split>(&json).is_ok(),
            serde_json::from_str::<Balanced>(&json).is_ok(),
            serde_json::from_str::<TinySet>(&json).is_ok(),
        ];
        let expected = Kind::ALL.map(|kind| kind == filter.kind());
        assert_eq!(accepted, expected, "{}", filter.kind());
    }
}

#[test]
fn damage_is_an_error() {
    for filter in filters() {
        let mut bytes = filter.to_bytes();
        *bytes.last_mut().unwrap() ^= 1;
        let damaged = serde_json::to_string(&bytes).unwrap();
        let error = serde_json::from_str::<AnyFilter>(&damaged).unwrap_err();
        assert!(error.to_string().contains("checksum"), "{error}");
    }
    for wrong in ["[]", "[1, 2, 300]", "7", "{}"] {
        assert!(serde_json::from_str::<AnyFilter>(wrong).is_err(), "{wrong}");
    }
}
