//! Counting the instructions of hot paths with callgrind.
//!
//! Unlike times, counts are the same on a busy and on an idle machine, so
//! the check is strict. They belong to one compiler and one instruction set:
//! under another one they are printed and not checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Cargo, Result, root, run, step, unpack_packages};

/// Committed counts.
const FILE: &str = "bench/instructions.json";

/// Largest accepted growth of a path, as a factor.
const TOLERANCE: f64 = 1.03;

/// Use of the new counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Compare with the committed counts.
    Check,
    /// Replace the committed counts.
    Update,
}

/// Instructions per operation, with the compiler and the backend they
/// depend on; and bytes of code.
#[derive(Default)]
struct Counts {
    rustc: String,
    backend: String,
    /// Instructions by path, and bytes of machine code by function, named
    /// [`CODE`] and the function.
    paths: BTreeMap<String, f64>,
}

/// Callgrind does not emulate AVX-512. Of its functions the emitted code is
/// measured instead, summed over the kernels: code that is no longer inlined,
/// or no longer in vectors, changes its size.
const CODE: &str = "code bytes of ";

/// The functions of `crate::dispatch` and the outlined loops, by the end of
/// their demangled names.
const MEASURED: [(&str, &str); 5] = [
    ("avx512 contains", "::dispatch::avx512::contains"),
    ("avx512 contains_batch", "::dispatch::avx512::contains_batch"),
    ("avx512 insert", "::dispatch::avx512::insert"),
    ("avx512 insert_batch", "::dispatch::avx512::insert_batch"),
    (
        "avx512 outlined",
        "<tamis::arch::x86::Avx512 as tamis::arch::Token>::call_outlined::run",
    ),
];

/// Bytes of machine code of [`MEASURED`], from `nm -S --demangle`.
fn code_bytes(symbols: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    // Identical functions share an address.
    let mut seen = BTreeSet::new();
    for line in symbols.lines() {
        let fields: Vec<&str> = line.splitn(4, ' ').collect();
        let [address, bytes, "t" | "T", name] = fields[..] else { continue };
        let measured = MEASURED.iter().find(|(_, end)| name.ends_with(end));
        let (Some((name, _)), Ok(bytes)) =
            (measured, u32::from_str_radix(bytes, 16))
        else {
            continue;
        };
        if seen.insert(address) {
            *sums.entry(format!("{CODE}{name}")).or_insert(0.0) +=
                f64::from(bytes);
        }
    }
    sums
}

pub(crate) fn instructions(action: Action) -> Result {
    step("instruction counts");
    let Some(valgrind) = Valgrind::find() else {
        println!(
            "SKIPPED: valgrind is not installed and cannot be downloaded \
             (apt-get install valgrind)"
        );
        return Ok(());
    };
    Cargo::new("build --release -p tamis-instructions").run()?;
    let counts = count(&valgrind)?;
    let path = root().join(FILE);
    match action {
        Action::Check => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("{FILE}: {error}"))?;
            check(&Counts::parse(&text), &counts)
        }
        Action::Update => {
            println!("{FILE} written");
            std::fs::write(path, counts.to_json())
                .map_err(|error| format!("{FILE}: {error}"))
        }
    }
}

/// Prints both counts. Fails if a path has grown, is new or is missing.
fn check(before: &Counts, now: &Counts) -> Result {
    let comparable =
        before.rustc == now.rustc && before.backend == now.backend;
    let mut grown = Vec::new();
    println!("{:<36}{:>10}{:>10}", "per operation", "committed", "now");
    for (path, &count) in &now.paths {
        let Some(&old) = before.paths.get(path) else {
            println!("{path:<36}{:>10}{count:>10.1}", "-");
            grown.push(path.as_str());
            continue;
        };
        println!("{path:<36}{old:>10.1}{count:>10.1}");
        if count > old * TOLERANCE {
            grown.push(path);
        }
    }
    let gone = before.paths.keys().filter(|p| !now.paths.contains_key(*p));
    grown.extend(gone.map(String::as_str));
    match (comparable, grown.is_empty()) {
        (false, _) => {
            println!(
                "not checked: the committed counts are of {} ({}), these of \
                 {} ({})",
                before.rustc, before.backend, now.rustc, now.backend
            );
            Ok(())
        }
        (true, true) => Ok(()),
        (true, false) => Err(format!(
            "hot paths that have grown by more than 3 %, are new or are \
             missing: {}. To accept the new counts: cargo xtask \
             instructions --update",
            grown.join(", ")
        )),
    }
}

/// Runs the paths under callgrind.
fn count(valgrind: &Valgrind) -> Result<Counts> {
    let place = root().join("target/instructions");
    let failed = |error: std::io::Error| error.to_string();
    // Parts of an earlier run would be read as parts of this one.
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place).map_err(failed)?;
    let output = valgrind
        .command()
        .args(["--quiet", "--tool=callgrind"])
        .arg("--dump-before=tamis_instructions::mark")
        .arg(format!("--callgrind-out-file={}", place.join("part").display()))
        .arg(root().join("target/release/tamis-instructions"))
        .output()
        .map_err(failed)?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("callgrind failed: {why}"));
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    let after = |word: &str| {
        let mut lines = stdout.lines();
        lines.find_map(|line| line.strip_prefix(word)).unwrap_or_default()
    };
    let operations: f64 = after("operations ").parse().unwrap_or(f64::NAN);
    let mut counts = Counts {
        rustc: rustc_version()?,
        backend: after("backend ").to_owned(),
        paths: BTreeMap::new(),
    };
    let paths = stdout.lines().filter_map(|line| line.strip_prefix("path "));
    for (i, path) in paths.enumerate() {
        // Odd parts are the code between paths.
        let part = place.join(format!("part.{}", 2 * i + 2));
        let total = total(&part)?;
        let per_operation = total / operations;
        // Paths with the same name keep the minimum.
        let least = counts.paths.entry(path.to_owned()).or_insert(f64::MAX);
        *least = least.min(per_operation);
    }
    let program = root().join("target/release/tamis-instructions");
    let mut nm = Command::new("nm");
    nm.args(["-S", "--demangle"]).arg(program);
    let symbols = nm.output().map_err(|error| format!("nm: {error}"))?;
    counts.paths.extend(code_bytes(&String::from_utf8_lossy(&symbols.stdout)));
    Ok(counts)
}

/// Instructions of one part.
fn total(part: &Path) -> Result<f64> {
    let text = std::fs::read_to_string(part)
        .map_err(|error| format!("{}: {error}", part.display()))?;
    text.lines()
        .find_map(|line| line.strip_prefix("totals: "))
        .and_then(|total| total.trim().parse().ok())
        .ok_or_else(|| format!("{}: no totals", part.display()))
}

fn rustc_version() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let output = Command::new(rustc)
        .arg("--version")
        .output()
        .map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Counts {
    /// One entry per line, so that a changed count is one line of a diff.
    fn to_json(&self) -> String {
        let paths: Vec<String> = self
            .paths
            .iter()
            .map(|(path, count)| format!("    \"{path}\": {count:.2}"))
            .collect();
        format!(
            "{{\n  \"rustc\": \"{}\",\n  \"backend\": \"{}\",\n  \
             \"instructions per operation\": {{\n{}\n  }}\n}}\n",
            self.rustc,
            self.backend,
            paths.join(",\n")
        )
    }

    /// Parses the output of `to_json`.
    fn parse(text: &str) -> Self {
        let mut counts = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(": ") else { continue };
            let name = name.trim().trim_matches('"');
            let value = value.trim().trim_end_matches(',');
            match (name, value.parse()) {
                ("rustc", _) => counts.rustc = value.replace('"', ""),
                ("backend", _) => counts.backend = value.replace('"', ""),
                (_, Ok(count)) => {
                    counts.paths.insert(name.to_owned(), count);
                }
                _ => {}
            }
        }
        counts
    }
}

/// Valgrind, installed or unpacked below `target/`.
struct Valgrind {
    program: PathBuf,
    library: Option<PathBuf>,
}

impl Valgrind {
    fn find() -> Option<Self> {
        let installed = Self { program: "valgrind".into(), library: None };
        if installed.works() {
            return Some(installed);
        }
        let place = root().join("target/valgrind");
        let unpacked = Self {
            program: place.join("usr/bin/valgrind"),
            library: Some(place.join("usr/libexec/valgrind")),
        };
        if !unpacked.works() {
            unpack(&place).ok()?;
        }
        unpacked.works().then_some(unpacked)
    }

    fn works(&self) -> bool {
        let output = self.command().arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(library) = &self.library {
            command.env("VALGRIND_LIB", library);
        }
        command
    }
}

/// Unpacks Debian's package without installing it.
fn unpack(place: &Path) -> Result {
    std::fs::create_dir_all(place).map_err(|error| error.to_string())?;
    let download = || {
        let mut download = Command::new("apt-get");
        download.current_dir(place).args(["download", "--quiet", "valgrind"]);
        run(download)
    };
    if download().is_err() {
        // A fresh machine has no package lists.
        let mut update = Command::new("apt-get");
        update.args(["update", "--quiet"]);
        run(update)?;
        download()?;
    }
    unpack_packages(place)
}

#[cfg(test)]
mod tests {
    use super::{Counts, check, code_bytes};

    fn counts(path: &str, count: f64) -> Counts {
        Counts {
            rustc: "rustc 1.0 (a)".into(),
            backend: "avx2".into(),
            paths: [(path.into(), count)].into(),
        }
    }

    #[test]
    fn written_counts_are_read_back() {
        let read = Counts::parse(&counts("a hit", 12.5).to_json());
        assert_eq!(read.rustc, "rustc 1.0 (a)");
        assert_eq!(read.backend, "avx2");
        assert_eq!(read.paths["a hit"], 12.5);
        assert_eq!(read.paths.len(), 1);
    }

    #[test]
    fn code_is_summed_by_function() {
        let symbols = "\
0000000000001000 0000000000000010 t tamis::dispatch::avx512::insert
0000000000001000 0000000000000010 t tamis::dispatch::avx512::insert
0000000000002000 0000000000000020 t tamis::dispatch::avx512::insert
0000000000003000 0000000000000040 t tamis::dispatch::avx2::insert
0000000000004000 0000000000000080 t tamis::dispatch::avx512::insert_batch
                 U memcpy
";
        let sums = code_bytes(symbols);
        assert_eq!(sums["code bytes of avx512 insert"], 48.0);
        assert_eq!(sums["code bytes of avx512 insert_batch"], 128.0);
        assert_eq!(sums.len(), 2);
    }

    #[test]
    fn growth_new_paths_and_missing_paths_fail() {
        let old = counts("a", 100.0);
        assert!(check(&old, &counts("a", 102.9)).is_ok());
        assert!(check(&old, &counts("a", 50.0)).is_ok());
        assert!(check(&old, &counts("a", 103.1)).is_err());
        assert!(check(&old, &counts("b", 1.0)).is_err());
        let other = Counts { rustc: "2".into(), ..counts("a", 200.0) };
        assert!(check(&old, &other).is_ok());
    }
}
