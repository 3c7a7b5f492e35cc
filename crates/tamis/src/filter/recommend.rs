//! The kind for a size, if the user names none.

use tamis_theory::plan;

use super::{Blocked, Size, TinySet};
use crate::error::Result;
use crate::format::Kind;

/// Objective of [`Kind::recommended`].
///
/// ```
/// use tamis::{Kind, Prefer, Size};
/// let size = Size::Fpr(0.01);
/// assert_eq!(Kind::recommended(size, 512, Prefer::Space)?, Kind::TinySet);
/// assert_eq!(Kind::recommended(size, 512, Prefer::Speed)?, Kind::Blocked);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Prefer {
    /// The least memory.
    #[default]
    Space,
    /// Blocked filters: testing bits takes a fraction of the time of
    /// searching fingerprints.
    Speed,
}

impl Kind {
    /// The kind for a size, among those that read one block per lookup:
    /// a `TinySet` where it is the smaller one and rates are 0.01 % to 3 %,
    /// otherwise `Blocked`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) or
    /// [`Error::Infeasible`](crate::Error::Infeasible) if no blocked filter
    /// has that size.
    ///
    /// ```
    /// use tamis::{Kind, Prefer, Size};
    ///
    /// let recommended = |fpr| {
    ///     Kind::recommended(Size::Fpr(fpr), 512, Prefer::Space)
    /// };
    /// assert_eq!(recommended(0.001)?, Kind::TinySet);
    /// assert_eq!(recommended(0.1)?, Kind::Blocked);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn recommended(
        size: Size,
        block_bits: u32,
        prefer: Prefer,
    ) -> Result<Self> {
        let blocked =
            Blocked::builder().size(size).block_bits(block_bits).predict()?;
        let tinyset = TinySet::builder().size(size).block_bits(block_bits);
        // Rates out of its reach are out of its range, too.
        let Ok(tinyset) = tinyset.predict() else {
            return Ok(Self::Blocked);
        };
        let (size, prefer) = (size.into(), prefer.into());
        let taken = plan::prefers_tinyset(size, prefer, &blocked, &tinyset);
        Ok(if taken { Self::TinySet } else { Self::Blocked })
    }
}

impl From<Prefer> for plan::Prefer {
    fn from(prefer: Prefer) -> Self {
        match prefer {
            Prefer::Space => Self::Space,
            Prefer::Speed => Self::Speed,
        }
    }
}

impl From<Size> for plan::Size {
    fn from(size: Size) -> Self {
        match size {
            Size::Fpr(fpr) => Self::Fpr(fpr),
            Size::BitsPerKey(bits) => Self::BitsPerKey(bits),
        }
    }
}
