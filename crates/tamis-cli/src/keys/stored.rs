//! Format of the keys of a filter, remembered in its metadata.

use std::fmt;
use std::path::Path;

use clap::ValueEnum;
use tamis::AnyFilter;

use super::{Digest, KeyFormat};
use crate::failure::{Failure, Result};

/// Format of the keys of a filter; `None` where the file has no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StoredFormat {
    pub(super) format: Option<KeyFormat>,
    /// Then the format is hexadecimal.
    pub(super) digest: Option<Digest>,
}

/// Names of metadata entries.
const KEY_FORMAT: &str = "key-format";
const DIGEST: &str = "digest";

impl StoredFormat {
    /// Format of the keys of `filter`, the file `path`.
    pub(crate) fn of<D: AsRef<[u8]>>(
        path: &Path,
        filter: &AnyFilter<D>,
    ) -> Result<Self> {
        let metadata =
            filter.metadata().map_err(|error| Failure::file(path, &error))?;
        Ok(Self {
            format: parse(path, KEY_FORMAT, metadata.get(KEY_FORMAT))?,
            digest: parse(path, DIGEST, metadata.get(DIGEST))?,
        })
    }

    pub(crate) fn store(self, filter: &mut AnyFilter) -> Result<()> {
        filter.set_metadata(KEY_FORMAT, &name(self.format))?;
        filter.set_metadata(DIGEST, &name(self.digest))?;
        Ok(())
    }

    /// Format of the keys of two filters; an error if their keys differ.
    pub(crate) fn common(
        self,
        other: Self,
    ) -> std::result::Result<Self, String> {
        match (self.format, other.format) {
            (_, None) => Ok(self),
            (None, _) => Ok(other),
            (Some(ours), Some(theirs))
                if ours.has_keys_of(theirs) && self.digest == other.digest =>
            {
                Ok(self)
            }
            _ => Err(format!(
                "the keys of the first are {self}, of the second {other}"
            )),
        }
    }

    /// Notation of keys for a filter with this format, by the options
    /// `--key-format` and `--digest`. Keys in fields end with their field.
    pub(super) fn resolve(
        self,
        format: Option<KeyFormat>,
        digest: Option<Digest>,
        in_fields: bool,
    ) -> std::result::Result<(KeyFormat, Option<Digest>), String> {
        let digest = match (digest, self.digest) {
            (Some(given), Some(stored)) if given != stored => {
                return Err(format!(
                    "the keys of the filter are {self}: omit --digest"
                ));
            }
            (given, stored) => given.or(stored),
        };
        if digest.is_some() {
            return match self.format {
                None | Some(KeyFormat::Hex) => {
                    Ok((format.unwrap_or(KeyFormat::Lines), digest))
                }
                Some(_) => Err(format!(
                    "the keys of the filter are {self}, not digests: omit \
                     --digest"
                )),
            };
        }
        let default = match self.format {
            Some(KeyFormat::Nul) if in_fields => KeyFormat::Lines,
            stored => stored.unwrap_or(KeyFormat::Lines),
        };
        let format = format.unwrap_or(default);
        if default.has_keys_of(format) || self.format.is_none() {
            return Ok((format, None));
        }
        let hint = match default {
            KeyFormat::Hex => " (--digest hashes plain keys)",
            _ => "",
        };
        Err(format!(
            "the keys of the filter are {self}, not {}: omit --key-format\
             {hint}",
            name(Some(format))
        ))
    }
}

impl fmt::Display for StoredFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.digest {
            Some(digest) => write!(f, "{} digests", name(Some(digest))),
            None => f.write_str(&name(self.format)),
        }
    }
}

impl KeyFormat {
    /// True if equal keys have equal bytes in both formats.
    fn has_keys_of(self, other: Self) -> bool {
        let is_text = |format| matches!(format, Self::Lines | Self::Nul);
        self == other || (is_text(self) && is_text(other))
    }
}

/// Name on the command line and in metadata; empty for `None`.
fn name(value: Option<impl ValueEnum>) -> String {
    value
        .and_then(|value| value.to_possible_value())
        .map_or_else(String::new, |value| value.get_name().into())
}

fn parse<T: ValueEnum>(
    path: &Path,
    entry: &str,
    value: Option<&str>,
) -> Result<Option<T>> {
    let Some(value) = value else { return Ok(None) };
    T::from_str(value, false).map(Some).map_err(|_| {
        Failure::new(format_args!(
            "{}: this version of tamis has no {entry} {value:?}",
            path.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names in files are part of the format.
    #[test]
    fn names_are_those_of_the_format() {
        let formats: Vec<_> = KeyFormat::value_variants()
            .iter()
            .map(|&f| name(Some(f)))
            .collect();
        assert_eq!(formats, ["lines", "nul", "u64le", "hex"]);
        let digests: Vec<_> =
            Digest::value_variants().iter().map(|&d| name(Some(d))).collect();
        assert_eq!(digests, ["sha1", "sha256", "md5", "ntlm"]);
    }

    #[test]
    fn options_are_resolved_by_the_stored_format() {
        use KeyFormat::{Hex, Lines, Nul, U64le};
        let stored = |format, digest| StoredFormat { format, digest };
        let plain = |format| stored(Some(format), None);
        let sha1 = Some(Digest::Sha1);
        let none = StoredFormat::default();
        let digests = stored(Some(Hex), sha1);
        for (stored, format, digest, expected) in [
            (none, None, None, (Lines, None)),
            (none, Some(U64le), None, (U64le, None)),
            (none, Some(Hex), sha1, (Hex, sha1)),
            (none, None, sha1, (Lines, sha1)),
            (plain(Hex), None, None, (Hex, None)),
            (plain(Hex), None, sha1, (Lines, sha1)),
            (plain(Nul), None, None, (Nul, None)),
            (plain(Nul), Some(Lines), None, (Lines, None)),
            (plain(Lines), Some(Nul), None, (Nul, None)),
            (digests, None, None, (Lines, sha1)),
            (digests, Some(Hex), None, (Hex, sha1)),
            (digests, Some(Nul), sha1, (Nul, sha1)),
        ] {
            let found = stored.resolve(format, digest, false);
            assert_eq!(found, Ok(expected), "{stored} {format:?} {digest:?}");
        }
        let field = plain(Nul).resolve(None, None, true);
        assert_eq!(field, Ok((Lines, None)));
        for (stored, format, digest) in [
            (plain(Hex), Some(Lines), None),
            (plain(Lines), Some(Hex), None),
            (plain(Lines), None, sha1),
            (plain(U64le), Some(Hex), None),
            (digests, None, Some(Digest::Md5)),
        ] {
            let found = stored.resolve(format, digest, false);
            assert!(found.is_err(), "{stored} {format:?} {digest:?}");
        }
        assert_eq!(plain(Nul).common(plain(Lines)), Ok(plain(Nul)));
        assert_eq!(none.common(digests), Ok(digests));
        assert_eq!(digests.common(none), Ok(digests));
        assert!(digests.common(plain(Hex)).is_err());
        assert!(plain(Lines).common(plain(Hex)).is_err());
    }
}
