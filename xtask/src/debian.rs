//! Compilers from Debian packages, unpacked below `target/`.
//!
//! Nothing is installed and no package list is read: each package is fetched
//! by its address and accepted by its checksum.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Result, root, run, unpack_packages};

/// A package of an archive: path below the mirror, and SHA-256.
pub(crate) type Package = (&'static str, &'static str);

const MIRROR: &str = "http://deb.debian.org/debian";
/// Part of apt; follows its proxy.
const DOWNLOADER: &str = "/usr/lib/apt/apt-helper";

/// Directory with the unpacked packages. `None`, with a message, if they
/// cannot be had.
pub(crate) fn unpacked(
    name: &str,
    packages: &[Package],
) -> Result<Option<PathBuf>> {
    let place = root().join("target").join(name);
    let done = place.join("unpacked");
    if done.exists() {
        return Ok(Some(place));
    }
    if !Path::new(DOWNLOADER).exists() {
        println!("no {DOWNLOADER}: packages cannot be fetched");
        return Ok(None);
    }
    std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
    for (path, checksum) in packages {
        let file = path.rsplit('/').next().unwrap_or(path);
        let mut download = Command::new(DOWNLOADER);
        download.current_dir(&place).args([
            "download-file",
            &format!("{MIRROR}/{path}"),
            &place.join(file).to_string_lossy(),
            &format!("SHA256:{checksum}"),
        ]);
        if let Err(failure) = run(download) {
            println!("{failure}");
            return Ok(None);
        }
    }
    unpack_packages(&place)?;
    for (path, _) in packages {
        let file = path.rsplit('/').next().unwrap_or(path);
        std::fs::remove_file(place.join(file))
            .map_err(|error| error.to_string())?;
    }
    std::fs::write(done, "").map_err(|error| error.to_string())?;
    Ok(Some(place))
}

/// Writes a program that starts `program` of the unpacked packages with their
/// own libraries, and returns its path.
pub(crate) fn wrapper(
    place: &Path,
    name: &str,
    program: &str,
    arguments: &str,
) -> Result<PathBuf> {
    let path = place.join(name);
    let place = place.display();
    let script = format!(
        "#!/bin/sh\nexec {place}/usr/lib64/ld-linux-x86-64.so.2 \
         --library-path {place}/usr/lib/x86_64-linux-gnu --argv0 {name} \
         {place}/{program} {arguments} \"$@\"\n"
    );
    std::fs::write(&path, script).map_err(|error| error.to_string())?;
    let mut executable = Command::new("chmod");
    executable.arg("+x").arg(&path);
    run(executable)?;
    Ok(path)
}
