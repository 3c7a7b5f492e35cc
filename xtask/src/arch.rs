//! Tests of the library on other processors.
//!
//! Debian 12's Rust 1.85 with the standard library of each target is fetched
//! and unpacked below `target/`. The linkers, C libraries and qemu-user are
//! the machine's own.

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

impl Arch {
    fn test(&self) -> Result {
        step(&format!("library on {}", self.name));
        let runner = self.runner.split(' ').next().unwrap_or_default();
        for program in [self.linker, runner] {
            if Command::new(program).arg("--version").output().is_err() {
                println!(
                    "SKIPPED: no {program} (apt-get install qemu-user \
                     gcc-aarch64-linux-gnu gcc-s390x-linux-gnu \
                     gcc-i686-linux-gnu gcc-arm-linux-gnueabihf)"
                );
                return Ok(());
            }
        }
        let packages: Vec<Package> =
            COMPILER.iter().copied().chain([self.library]).collect();
        let name = format!("rustc-{}", self.name);
        let Some(place) = unpacked(&name, &packages)? else {
            println!("SKIPPED: no compiler for {}", self.name);
            return Ok(());
        };
        let variable = self.target.to_uppercase().replace('-', "_");
        let setting = |end: &str| format!("CARGO_TARGET_{variable}_{end}");
        let path = |inner: &str| place.join(inner).display().to_string();
        Cargo::new("test -p tamis --target-dir target/arch --target")
            .args(&[self.target])
            .words(TESTS)
            .env("RUSTC", &path("usr/bin/rustc"))
            .env("LD_LIBRARY_PATH", &path("usr/lib/x86_64-linux-gnu"))
            .env(&setting("LINKER"), self.linker)
            .env(&setting("RUNNER"), self.runner)
            .env("PROPTEST_CASES", "16")
            // Rust 1.85 does not count a bound of a public trait as a use.
            .env("RUSTFLAGS", "-A unreachable_pub")
            .run()
    }
}

/// Opens all golden files in Node and encodes them again.
fn wasm32() -> Result {
    step("golden files in WebAssembly");
    let words = "rustc --quiet -p tamis-golden --crate-type cdylib";
    let Some(module) = explorer::webassembly(words, "tamis_golden.wasm")?
    else {
        println!("SKIPPED: no compiler for WebAssembly");
        return Ok(());
    };
    let mut node = Command::new("node");
    node.current_dir(root())
        .arg("xtask/golden/golden.mjs")
        .arg(module)
        .arg("crates/tamis/tests/golden/v1");
    run(node)
}
