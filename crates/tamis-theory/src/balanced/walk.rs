//! The path of a non-member through its blocks.

/// One block on the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stage {
    /// Chance that it answers "maybe".
    pub(crate) maybe: f64,
    /// Chance that a lookup may not stop here, whatever the answer.
    pub(crate) go_on: f64,
    /// Chance that it answers "no" and the lookup goes on.
    pub(crate) passed: f64,
}

/// The sums over a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk {
    pub(crate) fpr: f64,
    pub(crate) reads: f64,
    /// Chance of going on past the last block.
    pub(crate) beyond: f64,
}

impl Walk {
    /// A lookup stops at the first "maybe". Exact: blocks of different
    /// levels are independent.
    pub(crate) fn exact(stages: impl IntoIterator<Item = Stage>) -> Self {
        Self::along(stages, |stage| stage.passed)
    }

    /// As in section 9.1 of the paper, E(P) and E(P) FPR: a lookup goes on
    /// whatever the block answers.
    pub(crate) fn summed(stages: impl IntoIterator<Item = Stage>) -> Self {
        Self::along(stages, |stage| stage.go_on)
    }

    fn along(
        stages: impl IntoIterator<Item = Stage>,
        next: impl Fn(&Stage) -> f64,
    ) -> Self {
        let mut walk = Walk { fpr: 0.0, reads: 0.0, beyond: 1.0 };
        for stage in stages {
            walk.reads += walk.beyond;
            walk.fpr += walk.beyond * stage.maybe;
            walk.beyond *= next(&stage);
        }
        // Chances that add up to one may exceed it by rounding.
        walk.fpr = walk.fpr.min(1.0);
        walk
    }
}
