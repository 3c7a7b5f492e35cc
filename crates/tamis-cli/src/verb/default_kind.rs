//! Default kind of `build` and starting point of `plan`.

use tamis::Kind;

use super::SizeArgs;

/// Objective of the choice of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Prefer {
    /// Least memory
    Space,
    /// Fastest lookups: testing bits takes a fraction of the time of
    /// searching fingerprints
    Speed,
}

impl From<Prefer> for tamis::Prefer {
    fn from(prefer: Prefer) -> Self {
        match prefer {
            Prefer::Space => Self::Space,
            Prefer::Speed => Self::Speed,
        }
    }
}

/// Best kind among those that read exactly one block per lookup.
pub(super) fn default_kind(
    size: &SizeArgs,
    block_bits: u32,
    prefer: Prefer,
) -> tamis::Result<Kind> {
    Kind::recommended(size.value(), block_bits, prefer.into())
}
