//! Metadata of an image: named texts, in a section of their own.

use alloc::vec::Vec;
use core::fmt;

use crate::error::{Error, Result};

/// Version of the encoding of the section.
const VERSION: u16 = 1;
/// Bytes of the version before the first entry.
const VERSION_BYTES: usize = 2;
/// Bytes before an entry's name: the lengths of name and value.
const ENTRY_BYTES: usize = 3;
/// Longest name, in bytes.
const MAX_NAME: usize = 64;
/// Longest section, in bytes.
pub(super) const MAX_METADATA: u64 = 1 << 16;

/// The texts that a filter carries, each with a name: the format of its keys,
/// the source of the data, a note.
///
/// Names have 1 to 64 printable ASCII characters other than space and `=`.
/// Names without a dot are reserved for the meanings in the description of
/// the format, `docs/format.md`. Values are UTF-8 text. All entries together
/// take at most 64 KiB.
///
/// ```
/// use tamis::Blocked;
///
/// let mut filter = Blocked::builder().items(100).fpr(0.01).build()?;
/// filter.set_metadata("note", "nightly build")?;
/// filter.set_metadata("example.shard", "7")?;
///
/// let bytes = filter.to_bytes();
/// let view = Blocked::from_bytes(&bytes[..])?;
/// let metadata = view.metadata()?;
/// assert_eq!(metadata.get("note"), Some("nightly build"));
/// let names = metadata.iter().map(|(name, _)| name);
/// assert!(names.eq(["example.shard", "note"]), "sorted by name");
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Metadata<'a> {
    /// Entries in their encoding, checked by `parse`.
    entries: &'a [u8],
}

impl<'a> Metadata<'a> {
    /// Parses a section and checks every entry; no bytes are no entries.
    pub(crate) fn parse(section: &'a [u8]) -> Result<Self> {
        let Some((version, entries)) = section.split_first_chunk() else {
            return match section {
                [] => Ok(Self { entries: section }),
                _ => Err(Error::Inconsistent("the metadata is cut")),
            };
        };
        let version = u16::from_le_bytes(*version);
        if version != VERSION {
            return Err(Error::UnsupportedVersion {
                found: version,
                supported: VERSION,
            });
        }
        let (mut rest, mut before) = (entries, "");
        while !rest.is_empty() {
            let Some((name, value, next)) = split_entry(rest) else {
                return Err(Error::Inconsistent("the metadata is cut"));
            };
            if !is_name(name) || value.is_empty() {
                return Err(Error::Inconsistent(
                    "an entry of the metadata has no valid name or no value",
                ));
            }
            if name <= before {
                return Err(Error::Inconsistent(
                    "the metadata is not sorted by name",
                ));
            }
            (rest, before) = (next, name);
        }
        match entries {
            [] => Err(Error::Inconsistent("the metadata has no entry")),
            _ => Ok(Self { entries }),
        }
    }

    /// The value of an entry.
    ///
    /// ```
    /// let filter = tamis::Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert_eq!(filter.metadata()?.get("note"), None);
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a str> {
        let mut entries = self.iter();
        entries.find_map(|(found, value)| (found == name).then_some(value))
    }

    /// Names and values, sorted by name.
    ///
    /// ```
    /// let mut filter = tamis::Bloom::builder().items(9).fpr(0.1).build()?;
    /// filter.set_metadata("note", "test")?;
    /// assert!(filter.metadata()?.iter().eq([("note", "test")]));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let mut rest = self.entries;
        core::iter::from_fn(move || {
            let (name, value, next) = split_entry(rest)?;
            rest = next;
            Some((name, value))
        })
    }

    /// Whether the filter has no metadata.
    ///
    /// ```
    /// let filter = tamis::Bloom::builder().items(9).fpr(0.1).build()?;
    /// assert!(filter.metadata()?.is_empty());
    /// # Ok::<(), tamis::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The section with another value of `name`; an empty value removes the
    /// entry.
    pub(crate) fn with(&self, name: &str, value: &str) -> Result<Vec<u8>> {
        if !is_name(name) {
            return Err(Error::InvalidArgument {
                what: "metadata name",
                why: "expected 1 to 64 printable ASCII characters other than \
                      space and =",
            });
        }
        let too_long = Error::InvalidArgument {
            what: "metadata",
            why: "expected at most 64 KiB in all",
        };
        let before = self.iter().take_while(|&(other, _)| other < name);
        let after = self.iter().skip_while(|&(other, _)| other <= name);
        let this = (!value.is_empty()).then_some((name, value));
        let mut section = VERSION.to_le_bytes().to_vec();
        for (name, value) in before.chain(this).chain(after) {
            // Both lengths fit, or the section is refused below.
            section.push(name.len() as u8);
            section.extend_from_slice(&(value.len() as u16).to_le_bytes());
            section.extend_from_slice(name.as_bytes());
            section.extend_from_slice(value.as_bytes());
        }
        match section.len() {
            VERSION_BYTES => Ok(Vec::new()),
            len if len as u64 > MAX_METADATA => Err(too_long),
            _ => Ok(section),
        }
    }
}

impl fmt::Debug for Metadata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'=')
}

/// Name and value of the first entry, and the entries after it.
fn split_entry(entries: &[u8]) -> Option<(&str, &str, &[u8])> {
    let (&[name, low, high], rest) =
        entries.split_first_chunk::<ENTRY_BYTES>()?;
    let (name, rest) = rest.split_at_checked(name.into())?;
    let value = usize::from(u16::from_le_bytes([low, high]));
    let (value, rest) = rest.split_at_checked(value)?;
    let text = |bytes| core::str::from_utf8(bytes).ok();
    Some((text(name)?, text(value)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::string::String;
    use alloc::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn metadata_equals_a_map(
            changes in proptest::collection::vec(
                ("[!-<>-~]{1,2}", "\\PC{0,9}"), 0..40,
            ),
        ) {
            let mut section = Vec::new();
            let mut map = BTreeMap::<String, String>::new();
            for (name, value) in changes {
                let metadata = Metadata::parse(&section).unwrap();
                section = metadata.with(&name, &value).unwrap();
                match value.is_empty() {
                    true => map.remove(&name),
                    false => map.insert(name, value),
                };
            }
            let metadata = Metadata::parse(&section).unwrap();
            prop_assert_eq!(metadata.is_empty(), map.is_empty());
            let pairs = map.iter().map(|(name, value)| (&**name, &**value));
            prop_assert!(metadata.iter().eq(pairs));
            for (name, value) in &map {
                prop_assert_eq!(metadata.get(name), Some(&**value));
            }
        }

        /// Every section that parses is the one that its entries encode.
        #[test]
        fn each_content_has_one_encoding(
            bytes in proptest::collection::vec(
                prop_oneof![0u8..4, 0x40u8..0x44, any::<u8>()], 0..40,
            ),
        ) {
            let section = [&VERSION.to_le_bytes()[..], &bytes].concat();
            if let Ok(metadata) = Metadata::parse(&section) {
                let mut again = Vec::new();
                for (name, value) in metadata.iter() {
                    let metadata = Metadata::parse(&again).unwrap();
                    again = metadata.with(name, value).unwrap();
                }
                prop_assert_eq!(again, section);
            }
        }
    }

    #[test]
    fn faults_are_named() {
        let fault = |section: &[u8]| Metadata::parse(section).unwrap_err();
        let entry = |name: &str, value: &str| {
            let mut entry = vec![name.len() as u8, value.len() as u8, 0];
            entry.extend_from_slice(name.as_bytes());
            entry.extend_from_slice(value.as_bytes());
            entry
        };
        let section = |entries: &[Vec<u8>]| {
            let mut section = vec![1, 0];
            section.extend(entries.iter().flatten());
            section
        };
        let (a, b) = (entry("a", "1"), entry("b", "2"));
        let valid = section(&[a.clone(), b.clone()]);
        assert!(Metadata::parse(&valid).is_ok());
        for len in [1, 3, 5, 6, valid.len() - 1] {
            let why = "the metadata is cut";
            assert_eq!(
                fault(&valid[..len]),
                Error::Inconsistent(why),
                "{len}"
            );
        }
        for unsorted in [section(&[b, a.clone()]), section(&[a.clone(), a])] {
            let why = "the metadata is not sorted by name";
            assert_eq!(fault(&unsorted), Error::Inconsistent(why));
        }
        for invalid in [entry("", "1"), entry("a b", "1"), entry("a", "")] {
            let why = "an entry of the metadata has no valid name or no value";
            assert_eq!(fault(&section(&[invalid])), Error::Inconsistent(why));
        }
        let why = "the metadata has no entry";
        assert_eq!(fault(&[1, 0]), Error::Inconsistent(why));
        assert!(matches!(
            fault(&[2, 0]),
            Error::UnsupportedVersion { found: 2, supported: 1 }
        ));
    }

    #[test]
    fn limits_are_kept() {
        let none = Metadata::parse(&[]).unwrap();
        assert!(none.is_empty());
        let name = "n".repeat(MAX_NAME);
        let room =
            MAX_METADATA as usize - VERSION_BYTES - ENTRY_BYTES - MAX_NAME;
        let full = none.with(&name, &"v".repeat(room)).unwrap();
        assert_eq!(full.len(), MAX_METADATA as usize);
        assert!(Metadata::parse(&full).is_ok());
        for room in [room + 1, MAX_METADATA as usize, 1 << 20] {
            assert!(none.with(&name, &"v".repeat(room)).is_err(), "{room}");
        }
        let metadata = Metadata::parse(&full).unwrap();
        assert!(metadata.with("other", "v").is_err());
        for name in ["", "a b", "a=b", "é", &"n".repeat(MAX_NAME + 1)] {
            assert!(none.with(name, "v").is_err(), "{name}");
        }
    }
}
