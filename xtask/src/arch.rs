//! Tests of the library on other processors.
//!
//! Debian 12's Rust 1.85 with the standard library of each target is fetched
//! and unpacked below `target/`. The linkers, C libraries and qemu-user are
//! the machine's own.

use std::path::Path;
use std::process::Command;

use crate::debian::{Package, unpacked};
use crate::explorer;
use crate::run::{Cargo, Result, root, run, step};

const COMPILER: [Package; 4] = [
    (
        "pool/main/r/rustc-web/rustc-web_1.85.0+dfsg3-1~deb12u3_amd64.deb",
        "ef797a56697a0b6a82c1d704119ccaa85ab3486ccf805472de46c31971346702",
    ),
    (
        "pool/main/r/rustc-web/libstd-rust-web-dev_1.85.0+dfsg3-1~deb12u3_amd64.deb",
        "5360a1aa03979ccc4cc91dd3d9bad1d5ff30f36d615ed01e2c5209c5e8ece21b",
    ),
    (
        "pool/main/r/rustc-web/libstd-rust-web-1.85_1.85.0+dfsg3-1~deb12u3_amd64.deb",
        "c8b03bff73b2990b2a3e56b0cfb100eb4c70a9331f4232dc9783c9e50b1038be",
    ),
    (
        "pool/main/l/llvm-toolchain-19/libllvm19_19.1.7-3~deb12u1_amd64.deb",
        "6edf3a8b28495cdba883d9760e0dca1a81983fc497a5f989dc64d0d96d23b4aa",
    ),
];

/// A processor that qemu-user or this machine runs.
struct Arch {
    name: &'static str,
    target: &'static str,
    library: Package,
    linker: &'static str,
    /// Program and arguments that start a test.
    runner: &'static str,
}

const ARCHS: [Arch; 4] = [
    Arch {
        name: "aarch64",
        target: "aarch64-unknown-linux-gnu",
        library: (
            "pool/main/r/rustc-web/libstd-rust-web-dev_1.85.0+dfsg3-1~deb12u3_arm64.deb",
            "55e965bf1d9c31734b347387a5f3e0a4e66c748cc620e3af45460792fff30b0d",
        ),
        linker: "aarch64-linux-gnu-gcc",
        runner: "qemu-aarch64 -L /usr/aarch64-linux-gnu",
    },
    Arch {
        name: "s390x",
        target: "s390x-unknown-linux-gnu",
        library: (
            "pool/main/r/rustc-web/libstd-rust-web-dev_1.85.0+dfsg3-1~deb12u3_s390x.deb",
            "31a07851b63b6990e920f01e2510b6c32e914761d07a8e1b7b55d8fa643debca",
        ),
        linker: "s390x-linux-gnu-gcc",
        runner: "qemu-s390x -L /usr/s390x-linux-gnu",
    },
    Arch {
        name: "i686",
        target: "i686-unknown-linux-gnu",
        library: (
            "pool/main/r/rustc-web/libstd-rust-web-dev_1.85.0+dfsg3-1~deb12u3_i386.deb",
            "70dcaaafcb38d1374c2900b0671c7ebcd7eda88135a373308f522f970aeb9e1f",
        ),
        linker: "i686-linux-gnu-gcc",
        runner: "/usr/i686-linux-gnu/lib/ld-linux.so.2 --library-path /usr/i686-linux-gnu/lib",
    },
    Arch {
        name: "armv7",
        target: "armv7-unknown-linux-gnueabihf",
        library: (
            "pool/main/r/rustc-web/libstd-rust-web-dev_1.85.0+dfsg3-1~deb12u3_armhf.deb",
            "8373e2107bea80feb3447f2f0d5f0cf2cbb73f7f32acc3dd5cb85e59ca888e49",
        ),
        linker: "arm-linux-gnueabihf-gcc",
        runner: "qemu-arm -L /usr/arm-linux-gnueabihf",
    },
];

/// Tests with few random cases: the kernels beside the reference, format,
/// histories, fingerprint blocks and tables.
const TESTS: &str = "--features table --lib --test format --test compact --test model \
                     --test tinyset --test chained --test multilevel";

/// Statistics of millions of keys, which take minutes under qemu and test the
/// theory, not the processor.
const SKIPPED: &str = "--skip exact_in_every_state --skip as_promised \
                       --skip costs_the_documented_rates \
                       --skip overload_raises --skip growth_costs_one_bit";

/// Runs the tests on the architectures named, or on all.
pub(crate) fn arch(names: &[&str]) -> Result {
    let known = |name: &&str| {
        *name == "wasm32" || ARCHS.iter().any(|arch| arch.name == *name)
    };
    if let Some(name) = names.iter().find(|name| !known(name)) {
        return Err(format!("unknown architecture {name}"));
    }
    let wanted = |name: &str| names.is_empty() || names.contains(&name);
    for arch in ARCHS.iter().filter(|arch| wanted(arch.name)) {
        arch.test()?;
    }
    if wanted("wasm32") {
        wasm32()?;
    }
    Ok(())
}

/// The 64-bit Arm of [`ARCHS`].
const AARCH64: &Arch = &ARCHS[0];

/// Counts the instructions of the hot paths on 64-bit Arm, with NEON and by
/// the portable operations. qemu counts all that are executed.
pub(crate) fn instructions() -> Result {
    step("instructions of hot paths on aarch64");
    let plugin = root().join("target/count.so");
    let mut compile = Command::new("cc");
    compile
        .current_dir(root())
        .args(["-O2", "-shared", "-fPIC", "-o"])
        .arg(&plugin)
        .arg("xtask/qemu/count.c");
    run(compile)?;
    let mut counts = Vec::new();
    for (name, flags) in [("neon", ""), ("scalar", "--cfg tamis_scalar")] {
        let target = format!("target/arch-{name}");
        let words = "build --release -p tamis-instructions --target-dir";
        let Some(cargo) = AARCH64.cargo(&format!("{words} {target}"))? else {
            return Ok(());
        };
        let quiet = "-A unreachable_pub";
        cargo.env("RUSTFLAGS", &format!("{quiet} {flags}")).run()?;
        let program =
            format!("{target}/{}/release/tamis-instructions", AARCH64.target);
        counts.push(AARCH64.count(&plugin, &root().join(program))?);
    }
    println!("{:<36}{:>10}{:>10}", "per operation", "neon", "scalar");
    for ((path, neon), (_, scalar)) in counts[0].iter().zip(&counts[1]) {
        println!("{path:<36}{neon:>10.1}{scalar:>10.1}");
    }
    Ok(())
}

impl Arch {
    /// Instructions per operation of each path of `tamis-instructions`; paths
    /// with the same name have the minimum.
    fn count(
        &self,
        plugin: &Path,
        program: &Path,
    ) -> Result<Vec<(String, f64)>> {
        let failed = |error: std::io::Error| error.to_string();
        let nm = self.linker.replace("gcc", "nm");
        let symbols =
            Command::new(nm).arg(program).output().map_err(failed)?;
        let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
        let mark = symbols
            .lines()
            .find(|line| line.contains("tamis_instructions4mark"))
            .and_then(|line| line.split(' ').next())
            .ok_or("no function `mark`")?;
        let log = root().join("target/count.log");
        let mut words = self.runner.split(' ');
        let output = Command::new(words.next().unwrap_or_default())
            .args(words)
            .arg("-plugin")
            .arg(format!("{},mark={mark}", plugin.display()))
            .args(["-d", "plugin", "-D"])
            .arg(&log)
            .arg(program)
            .output()
            .map_err(failed)?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{} failed: {why}", program.display()));
        }
        let log = std::fs::read_to_string(log).map_err(failed)?;
        // Every second part is the code between paths.
        let parts = log.lines().skip(1).step_by(2);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let operations = stdout
            .lines()
            .find_map(|line| line.strip_prefix("operations "))
            .and_then(|number| number.parse::<f64>().ok())
            .ok_or("no number of operations")?;
        let paths = stdout.lines().filter_map(|l| l.strip_prefix("path "));
        let mut counts: Vec<(String, f64)> = Vec::new();
        for (path, part) in paths.zip(parts) {
            let part: f64 = part.parse().map_err(|_| "not a count")?;
            let count = part / operations;
            match counts.last_mut() {
                Some((last, least)) if last == path => {
                    *least = least.min(count);
                }
                _ => counts.push((path.to_owned(), count)),
            }
        }
        Ok(counts)
    }

    /// Cargo with the compiler, linker and runner of this architecture.
    /// `None`, with a message, if one is missing.
    fn cargo(&self, words: &str) -> Result<Option<Cargo>> {
        let runner = self.runner.split(' ').next().unwrap_or_default();
        for program in [self.linker, runner] {
            if Command::new(program).arg("--version").output().is_err() {
                println!(
                    "SKIPPED: no {program} (apt-get install qemu-user \
                     gcc-aarch64-linux-gnu gcc-s390x-linux-gnu \
                     gcc-i686-linux-gnu gcc-arm-linux-gnueabihf)"
                );
                return Ok(None);
            }
        }
        let packages: Vec<Package> =
            COMPILER.iter().copied().chain([self.library]).collect();
        let name = format!("rustc-{}", self.name);
        let Some(place) = unpacked(&name, &packages)? else {
            println!("SKIPPED: no compiler for {}", self.name);
            return Ok(None);
        };
        let variable = self.target.to_uppercase().replace('-', "_");
        let setting = |end: &str| format!("CARGO_TARGET_{variable}_{end}");
        let path = |inner: &str| place.join(inner).display().to_string();
        let cargo = Cargo::new(words)
            .args(&["--target", self.target])
            .env("RUSTC", &path("usr/bin/rustc"))
            .env("LD_LIBRARY_PATH", &path("usr/lib/x86_64-linux-gnu"))
            .env(&setting("LINKER"), self.linker)
            .env(&setting("RUNNER"), self.runner)
            // Rust 1.85 does not count a bound of a public trait as a use.
            .env("RUSTFLAGS", "-A unreachable_pub");
        Ok(Some(cargo))
    }

    fn test(&self) -> Result {
        step(&format!("library on {}", self.name));
        let words = "test -p tamis --target-dir target/arch";
        let Some(cargo) = self.cargo(words)? else { return Ok(()) };
        cargo
            .words(TESTS)
            .words("--")
            .words(SKIPPED)
            .env("PROPTEST_CASES", "16")
            // Compiling at 3 costs more than the tests save under qemu.
            .env("CARGO_PROFILE_TEST_OPT_LEVEL", "1")
            .run()
    }
}

/// Opens all golden files in Node and encodes them again, and fills filters of
/// every kind: with plain instructions and with vectors.
fn wasm32() -> Result {
    for features in ["", "+simd128"] {
        step(&format!("golden files in WebAssembly {features}"));
        let words = "rustc --quiet -p tamis-golden --crate-type cdylib";
        let module =
            explorer::webassembly(words, "tamis_golden.wasm", features)?;
        let Some(module) = module else {
            println!("SKIPPED: no compiler for WebAssembly");
            return Ok(());
        };
        let mut node = Command::new("node");
        node.current_dir(root())
            .arg("xtask/golden/golden.mjs")
            .arg(module)
            .arg("crates/tamis/tests/golden/v1");
        run(node)?;
    }
    Ok(())
}
