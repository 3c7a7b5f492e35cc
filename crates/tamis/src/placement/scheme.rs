//! The names of the placement schemes.

use crate::named::named_enum;

/// The scheme that proposes blocks to a key.
///
/// ```
/// use tamis::Scheme;
/// assert_eq!("multilevel".parse(), Ok(Scheme::Multilevel));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// One block (SINGLE).
    Single,
    /// Several blocks of one array (SEQUENTIAL).
    Sequential,
    /// One block in each of several levels of decreasing size (MHT).
    Multilevel,
}

named_enum!(Scheme, "scheme", {
    Single => "single",
    Sequential => "sequential",
    Multilevel => "multilevel",
});
