//! Blocks: fixed-size pieces of memory that store keys.

pub(crate) mod bloom;
pub(crate) mod fingerprint;
pub(crate) mod guarded;

/// The outcome of one block read of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The key is certainly absent.
    Absent,
    /// The key may be present.
    Maybe,
    /// The next block of the key decides.
    Continue,
}

impl Verdict {
    /// [`Maybe`](Self::Maybe) if `matches`, else [`Absent`](Self::Absent).
    #[inline(always)]
    pub(crate) fn from_match(matches: bool) -> Self {
        if matches { Self::Maybe } else { Self::Absent }
    }
}
