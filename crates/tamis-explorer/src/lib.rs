//! The planner page of `tamis explore`.
//!
//! The same functions answer in the browser, where `export` calls them as
//! WebAssembly, and in tests. Their answers are JSON: the designs have the
//! fields of `tamis plan --json`.
//!
//! ```
//! use serde_json::json;
//! use tamis_theory::plan::{Prefer, Size, Task};
//!
//! let answer = tamis_explorer::plan(&Task {
//!     items: 1000,
//!     size: Size::Fpr(0.001),
//!     miss_share: 0.9,
//!     block_bits: 512,
//!     prefer: Prefer::Space,
//! });
//! assert_eq!(answer["recommended"], "tinyset");
//! assert_eq!(answer["designs"][0]["kind"], "blocked");
//! assert_eq!(answer["designs"][0]["reads"], json!(1.0));
//! ```

#[cfg(target_family = "wasm")]
pub mod export;
#[cfg(not(target_family = "wasm"))]
mod page;

use serde_json::{Value, json};
use tamis_theory::plan::{Candidate, Kind, Size, Task};
use tamis_theory::{Prediction, Result, limit};

#[cfg(not(target_family = "wasm"))]
pub use page::{STYLE, page, planner};

/// Comparison of all kinds, and the recommendation.
///
/// ```
/// use tamis_theory::plan::{Prefer, Size, Task};
///
/// let answer = tamis_explorer::plan(&Task {
///     items: 1000,
///     size: Size::Fpr(2.0),
///     miss_share: 0.9,
///     block_bits: 512,
///     prefer: Prefer::Space,
/// });
/// let message = answer["error"].as_str().unwrap();
/// assert!(message.contains("must be between"), "{message}");
/// ```
pub fn plan(task: &Task) -> Value {
    answer(task.compare().map(|comparison| {
        let designs: Vec<Value> =
            comparison.candidates.iter().map(design).collect();
        json!({
            "designs": designs,
            "recommended": comparison.best().kind.name(),
            "title": comparison.best().kind.title(),
            "options": comparison.options(),
            "reason": comparison.reason,
            "notes": comparison.notes,
        })
    }))
}

fn design(candidate: &Candidate) -> Value {
    let Candidate { kind, prediction, bytes, reads } = candidate;
    json!({
        "kind": kind.name(),
        "title": kind.title(),
        "levels": kind.levels(),
        "bits_per_key": prediction.bits_per_key,
        "bytes": bytes,
        "fpr": prediction.fpr,
        "probes": prediction.probes,
        "reads_hit": prediction.reads_hit,
        "reads_miss": prediction.reads_miss,
        "reads": reads,
        "removable": kind.removable(),
        "mergeable": kind.mergeable(),
    })
}

/// A point of a curve: the kind of this number in [`Kind::ALL`], at a rate.
///
/// ```
/// let point = tamis_explorer::point(0, 512, 0.01);
/// assert_eq!(point["title"], "blocked");
/// assert!((point["bits_per_key"].as_f64().unwrap() - 9.92).abs() < 0.01);
/// // Two levels have no such rate.
/// assert!(tamis_explorer::point(5, 512, 0.1)["error"].is_string());
/// // The number of the last kind is 6.
/// assert!(tamis_explorer::point(7, 512, 0.1).is_null());
/// ```
pub fn point(kind: u32, block_bits: u32, fpr: f64) -> Value {
    let Some(kind) = Kind::ALL.get(kind as usize) else {
        return Value::Null;
    };
    answer(kind.predict(Size::Fpr(fpr), block_bits).map(|prediction| {
        let Prediction { bits_per_key, reads_hit, reads_miss, .. } =
            prediction;
        json!({
            "title": kind.title(),
            "bits_per_key": bits_per_key,
            "reads_hit": reads_hit,
            "reads_miss": reads_miss,
        })
    }))
}

/// Limits of the bits per key at a rate: of any filter, of growing ones, and
/// of those that read one block.
///
/// ```
/// let limits = tamis_explorer::limits(512, 0.001);
/// assert!((limits["line"].as_f64().unwrap() - 12.05).abs() < 1e-3);
/// ```
pub fn limits(block_bits: u32, fpr: f64) -> Value {
    let limits = || -> Result<Value> {
        Ok(json!({
            "any": limit::any(fpr)?,
            "growing": limit::growing(fpr)?,
            "line": limit::line_for_fpr(block_bits, fpr)?.bits_per_key,
        }))
    };
    answer(limits())
}

fn answer(result: Result<Value>) -> Value {
    result.unwrap_or_else(|error| json!({ "error": error.to_string() }))
}
