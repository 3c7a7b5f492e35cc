//! The claims of the papers, each with its answer.
//!
//! *B* are claims of Kanizo, Hay and Keslassy, *T* of Einziger and Friedman,
//! *S* of Kirsch and Mitzenmacher.

use serde::{Deserialize, Serialize};

/// A definition, theorem, figure or number of a paper.
///
/// ```
/// let claims = tamis_lab::claims::all()?;
/// let bound = claims.iter().find(|claim| claim.id == "B-019").unwrap();
/// assert_eq!(bound.source, "BBF 4, Theorem 1");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Number, such as `B-019`.
    pub id: String,
    /// Paper and section.
    pub source: String,
    /// Content of the claim.
    pub statement: String,
    /// Place of the answer.
    #[serde(flatten)]
    pub answer: Answer,
    /// Addition to the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Answer to a claim.
///
/// ```
/// use tamis_lab::claims::Answer;
///
/// let answer: Answer = serde_json::from_str(r#"{"experiment": "bound"}"#)?;
/// assert_eq!(answer, Answer::Experiment("bound".to_owned()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Name of an experiment with a finding about the claim.
    Experiment(String),
    /// File and function of a test.
    Test(String),
    /// File and item of the implementation.
    Code(String),
    /// Reason for its absence.
    Reason(String),
}

/// All claims, by number.
///
/// ```
/// assert_eq!(tamis_lab::claims::all()?.len(), 162);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn all() -> serde_json::Result<Vec<Claim>> {
    serde_json::from_str(include_str!("../data/claims.json"))
}
