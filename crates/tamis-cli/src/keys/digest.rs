//! Digests of plain keys.

use md4::Md4;
use md5::Md5;
use sha1::Sha1;
use sha2::Sha256;
use sha2::digest::Digest as _;

/// Digest of a plain key, by which lists of breached passwords and of known
/// files are indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Digest {
    Sha1,
    Sha256,
    Md5,
    /// MD4 of the UTF-16 form, the password hash of Windows
    Ntlm,
}

impl Digest {
    /// Length in bytes.
    pub(super) fn len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Md5 | Self::Ntlm => 16,
        }
    }

    /// Writes the digest of `key` into `out`.
    pub(super) fn compute(
        self,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        out.clear();
        match self {
            Self::Sha1 => out.extend(Sha1::digest(key)),
            Self::Sha256 => out.extend(Sha256::digest(key)),
            Self::Md5 => out.extend(Md5::digest(key)),
            Self::Ntlm => {
                let text = std::str::from_utf8(key).map_err(|error| {
                    format!(
                        "expected UTF-8 for --digest ntlm, found another \
                         encoding at byte {} (convert it with iconv)",
                        error.valid_up_to() + 1
                    )
                })?;
                let mut hash = Md4::new();
                for unit in text.encode_utf16() {
                    hash.update(unit.to_le_bytes());
                }
                out.extend(hash.finalize());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are those of sha1sum, sha256sum, md5sum and of
    /// `iconv -t UTF-16LE | openssl md4`.
    #[test]
    fn digests_of_a_password() {
        let cases = [
            (Digest::Sha1, "5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8"),
            (
                Digest::Sha256,
                "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8",
            ),
            (Digest::Md5, "5f4dcc3b5aa765d61d8327deb882cf99"),
            (Digest::Ntlm, "8846f7eaee8fb117ad06bdd830b7586c"),
        ];
        let mut out = Vec::new();
        for (digest, expected) in cases {
            digest.compute(b"password", &mut out).unwrap();
            assert_eq!(hex::encode(&out), expected, "{digest:?}");
            assert_eq!(out.len(), digest.len());
        }
        assert!(Digest::Ntlm.compute(b"\xff", &mut out).is_err());
    }
}
