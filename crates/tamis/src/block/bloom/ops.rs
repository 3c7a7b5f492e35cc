//! The operations a Bloom block needs from an instruction set.

use super::Probes;
use crate::arch::Token;

/// Bloom block operations. Every implementation gives the same answers; the
/// one for [`Scalar`](crate::arch::Scalar) is their definition.
///
/// Blocks have 32 or 64 bytes.
pub trait Ops: Token {
    /// Whether all positions of `probes` are set. They are `GROUPS` groups of
    /// [`LANES`](super::LANES), or [`ANY`](super::ANY) number of them.
    #[doc(hidden)]
    fn all_set<const GROUPS: u32>(self, block: &[u8], probes: Probes) -> bool;

    /// Sets all positions of `probes`.
    #[doc(hidden)]
    fn set_all(self, block: &mut [u8], probes: Probes);

    /// Sets all positions of `probes`, `GROUPS` as in
    /// [`all_set`](Self::all_set). Returns whether one was clear.
    #[doc(hidden)]
    fn set_missing<const GROUPS: u32>(
        self,
        block: &mut [u8],
        probes: Probes,
    ) -> bool;
}
