//! One claim beside our figure, and the verdict.

use serde::Serialize;

use crate::simulation::{Rate, Sample};

/// Outcome of the comparison of a claim with our figure.
///
/// ```
/// use tamis_lab::report::Verdict;
/// assert_eq!(Verdict::Differs.to_string(), "differs");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Our figure agrees with the claim.
    Reproduced,
    /// It does not, for the stated reason.
    Differs,
    /// The text leaves out what a repetition needs.
    NotReproducible,
    /// The comparison came out against the expectation of this project: a
    /// defect of a structure, of the theory, or of the experiment.
    Unexpected,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Reproduced => "reproduced",
            Self::Differs => "differs",
            Self::NotReproducible => "not reproducible from the text",
            Self::Unexpected => "unexpected",
        })
    }
}

/// Relation of our figure to a published limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Ours must not exceed it.
    AtMost,
    /// Ours must reach it.
    AtLeast,
}

/// A claim beside our figure.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// Numbers of the claims.
    pub claims: &'static [&'static str],
    /// Quantity or statement.
    pub quantity: String,
    /// Published figure; none if the claim has none.
    pub published: Option<f64>,
    /// The published figure is a limit.
    pub limit: Option<Limit>,
    /// Our figure.
    pub ours: Option<f64>,
    /// Interval of our figure.
    pub interval: Option<[f64; 2]>,
    /// Meaning of the interval.
    pub interval_kind: Option<&'static str>,
    /// Figure of `tamis-theory`.
    pub predicted: Option<f64>,
    /// Reason for a difference, or for a missing repetition.
    pub reason: Option<&'static str>,
    /// Conditions that hold.
    pub checks: Vec<String>,
    /// Conditions that do not hold, although they are expected to.
    pub broken: Vec<String>,
    #[serde(skip)]
    agrees: bool,
    #[serde(skip)]
    lost: bool,
    /// Depends on the speed of the machine, so that no test asserts it.
    pub timed: bool,
}

impl Finding {
    pub(crate) fn new(
        claims: &'static [&'static str],
        quantity: impl Into<String>,
    ) -> Self {
        Self {
            claims,
            quantity: quantity.into(),
            published: None,
            limit: None,
            ours: None,
            interval: None,
            interval_kind: None,
            predicted: None,
            reason: None,
            checks: Vec::new(),
            broken: Vec::new(),
            agrees: true,
            lost: false,
            timed: false,
        }
    }

    /// Our figure, exact.
    pub(crate) fn ours(mut self, value: f64) -> Self {
        self.ours = Some(value);
        self
    }

    /// Our figure, a counted share.
    pub(crate) fn rate(mut self, rate: Rate) -> Self {
        self.interval = Some(rate.interval());
        self.interval_kind = Some("99.9 %");
        self.ours(rate.value())
    }

    /// Our figure, the mean of runs.
    pub(crate) fn mean(mut self, sample: &Sample) -> Self {
        self.interval = Some(sample.interval());
        self.interval_kind = Some("99.9 %");
        self.ours(sample.mean())
    }

    /// Our figure, the median of runs, with the range of 90 % of them.
    pub(crate) fn median(mut self, sample: &Sample) -> Self {
        self.interval = Some([0.05, 0.95].map(|q| sample.quantile(q)));
        self.interval_kind = Some("5 to 95 % of runs");
        self.ours(sample.quantile(0.5))
    }

    /// The published figure, which our figure matches if it is at most
    /// `tolerance` away: the unit of the last printed digit, or its half.
    pub(crate) fn published(mut self, value: f64, tolerance: f64) -> Self {
        self.published = Some(value);
        // Decimal fractions have no exact binary form.
        let tolerance = tolerance * (1.0 + 1e-9) + 1e-15;
        self.agrees &=
            self.ours.is_some_and(|ours| (ours - value).abs() <= tolerance);
        self
    }

    /// The published figure, which our figure matches if its interval
    /// contains it.
    pub(crate) fn published_inside(mut self, value: f64) -> Self {
        self.published = Some(value);
        self.agrees &= self
            .interval
            .is_some_and(|[low, high]| low <= value && value <= high);
        self
    }

    /// The published limit, which ours must not exceed by more than
    /// `tolerance`.
    pub(crate) fn at_most(self, value: f64, tolerance: f64) -> Self {
        let limit = Some(Limit::AtMost);
        let keeps = self.ours.is_some_and(|ours| ours <= value + tolerance);
        Self { published: Some(value), limit, ..self }.holds(keeps)
    }

    /// The published limit, which ours must reach.
    pub(crate) fn at_least(self, value: f64) -> Self {
        let limit = Some(Limit::AtLeast);
        let reaches = self.ours.is_some_and(|ours| ours >= value);
        Self { published: Some(value), limit, ..self }.holds(reaches)
    }

    /// The prediction, which must lie in our interval.
    pub(crate) fn predicted(mut self, value: f64) -> Self {
        self.predicted = Some(value);
        let inside = self
            .interval
            .is_some_and(|[low, high]| low <= value && value <= high);
        self.check("the theory lies in our interval", inside)
    }

    /// The prediction, from which our figure deviates by at most a share.
    pub(crate) fn predicted_within(mut self, value: f64, share: f64) -> Self {
        self.predicted = Some(value);
        let near = self
            .ours
            .is_some_and(|ours| (ours - value).abs() <= share * value.abs());
        self.check(
            format!("within {} % of the theory", super::number(share * 100.0)),
            near,
        )
    }

    /// The claim as a statement without a figure, and whether our figure
    /// agrees with it.
    pub(crate) fn holds(mut self, holds: bool) -> Self {
        self.agrees &= holds;
        self
    }

    /// A condition beside the claim.
    pub(crate) fn check(
        mut self,
        condition: impl Into<String>,
        holds: bool,
    ) -> Self {
        let list = if holds { &mut self.checks } else { &mut self.broken };
        list.push(condition.into());
        self
    }

    /// The claim is expected to differ, for this reason.
    pub(crate) fn differs(mut self, reason: &'static str) -> Self {
        self.reason = Some(reason);
        self
    }

    /// The text leaves out what a repetition needs.
    pub(crate) fn not_reproducible(mut self, reason: &'static str) -> Self {
        self.reason = Some(reason);
        self.lost = true;
        self
    }

    /// The figure depends on the machine: agreement or not, the verdict is
    /// no defect.
    pub(crate) fn timed(mut self, reason: &'static str) -> Self {
        self.timed = true;
        self.reason = (!self.agrees).then_some(reason);
        self
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        match (self.broken.is_empty(), self.reason.is_some(), self.agrees) {
            (true, true, _) if self.lost => Verdict::NotReproducible,
            (true, false, true) => Verdict::Reproduced,
            (true, true, false) => Verdict::Differs,
            _ => Verdict::Unexpected,
        }
    }

    /// Relative deviation of our figure from the published one; none from a
    /// limit.
    pub(crate) fn deviation(&self) -> Option<f64> {
        let published = self.published.filter(|value| *value != 0.0)?;
        if self.limit.is_some() {
            return None;
        }
        Some(self.ours? / published - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding() -> Finding {
        Finding::new(&["X-1"], "share").rate(Rate { hits: 30, trials: 1000 })
    }

    #[test]
    fn verdicts_follow_from_the_figures() {
        let verdict = |finding: Finding| finding.verdict();
        assert_eq!(
            verdict(finding().published(0.03, 0.0)),
            Verdict::Reproduced
        );
        assert_eq!(
            verdict(finding().published(0.04, 0.005)),
            Verdict::Unexpected
        );
        let wrong = finding().published(0.04, 0.005).differs("why");
        assert_eq!(verdict(wrong), Verdict::Differs);
        // A reason for a difference that is not seen.
        let same = finding().published_inside(0.02).differs("why");
        assert_eq!(verdict(same), Verdict::Unexpected);
        let theory = finding().published_inside(0.02).predicted(0.5);
        assert_eq!(verdict(theory), Verdict::Unexpected);
        assert_eq!(verdict(finding().predicted(0.03)), Verdict::Reproduced);
        assert_eq!(verdict(finding().at_most(0.02, 0.0)), Verdict::Unexpected);
        assert_eq!(verdict(finding().at_least(0.02)), Verdict::Reproduced);
        let lost = finding().not_reproducible("digits lost");
        assert_eq!(verdict(lost), Verdict::NotReproducible);
        let slow = finding().at_most(0.02, 0.0).timed("slow machine");
        assert_eq!(verdict(slow), Verdict::Differs);
        assert_eq!(finding().published(0.02, 1.0).deviation(), Some(0.5));
        assert_eq!(finding().at_least(0.02).deviation(), None);
        assert_eq!(
            verdict(finding().at_most(0.02, 0.01)),
            Verdict::Reproduced
        );
    }
}
