//! Building the WebAssembly and the page of `tamis explore`.

use std::path::PathBuf;

use crate::debian::{Package, unpacked, wrapper};
use crate::run::{Cargo, Result, root, step};

/// Debian 13's Rust 1.85.1 with its target wasm32, its linker, and the
/// libraries of both.
const COMPILER: [Package; 20] = [
    (
        "pool/main/r/rustc/rustc_1.85.1+dfsg1-1+deb13u1_amd64.deb",
        "8dc8db527ef0e4e64c1361281c123c461b768c148d5308f841ef47c7b90b19d4",
    ),
    (
        "pool/main/r/rustc/libstd-rust-dev_1.85.1+dfsg1-1+deb13u1_amd64.deb",
        "f10847d21f156e700c16fede486e404d078183197187406b4b512ccc92468adb",
    ),
    (
        "pool/main/r/rustc/libstd-rust-1.85_1.85.1+dfsg1-1+deb13u1_amd64.deb",
        "880a7ccc84ac9ed5964379ff2f2c2de2763dc87cb2c812963cefb44008306587",
    ),
    (
        "pool/main/r/rustc/libstd-rust-dev-wasm32_1.85.1+dfsg1-1+deb13u1_all.deb",
        "e8848b038d5760d59a8cb5ad8427d2e4617a97d2b7963926cb5cba4b8d1db70b",
    ),
    (
        "pool/main/l/llvm-toolchain-19/libllvm19_19.1.7-3+b1_amd64.deb",
        "db0d614d61345ca710fb73e75105f1ec6e38898fa7b3aa99fa7eb7d8b0a11d57",
    ),
    (
        "pool/main/l/llvm-toolchain-19/lld-19_19.1.7-3+b1_amd64.deb",
        "756a805e8811d527dd2b5417f016c9342b8631fa9c1ddcd56265c13ae33bf3a4",
    ),
    (
        "pool/main/g/glibc/libc6_2.41-12+deb13u4_amd64.deb",
        "967aa62605721081c3eb2a17650611a792aa802d76a6511d1840242623d204c9",
    ),
    (
        "pool/main/g/gcc-14/libgcc-s1_14.2.0-19_amd64.deb",
        "3c71917b490d1a17aed43196a2787a256ecf060526cdb20216a74bedc061b150",
    ),
    (
        "pool/main/g/gcc-14/libstdc++6_14.2.0-19_amd64.deb",
        "ab1fa05837aa7a92aae748fd07a18a35f7d18bb4a71c4724fe2bbf0e32089de0",
    ),
    (
        "pool/main/libz/libzstd/libzstd1_1.5.7+dfsg-1_amd64.deb",
        "2f6a2aeacfc925eba8b00ac9139bc4bfccf8cacb09eb93de067074b26948eef9",
    ),
    (
        "pool/main/z/zlib/zlib1g_1.3.dfsg+really1.3.1-1+b1_amd64.deb",
        "015be740d6236ad114582dea500c1d907f29e16d6db00566ca32fb68d71ac90d",
    ),
    (
        "pool/main/libx/libxml2/libxml2_2.12.7+dfsg+really2.9.14-2.1+deb13u3_amd64.deb",
        "e0c6b63ce4602a036a526f60fe5e6c1586710688058d98fc1001b9b3147b7efd",
    ),
    (
        "pool/main/libe/libedit/libedit2_3.1-20250104-1_amd64.deb",
        "b002ea172b9c1e34a67bc497c523c67bb74c3f0a4e98113cb083990a1f1d3bfe",
    ),
    (
        "pool/main/libf/libffi/libffi8_3.4.8-2_amd64.deb",
        "0ebdc340de33333639c3c63874cd4b15ac2e83dfa1ef3053b7eefaf4919f4f68",
    ),
    (
        "pool/main/z/z3/libz3-4_4.13.3-1_amd64.deb",
        "71383373523ef62d47eccf660cf6535c3febcbb3f88e54cb7a43124014b57359",
    ),
    (
        "pool/main/n/ncurses/libtinfo6_6.5+20250216-2_amd64.deb",
        "8b9f6a7983e9418564e48a627518de4c03917b56efe68d7f3e93bd8fffa1cc10",
    ),
    (
        "pool/main/libb/libbsd/libbsd0_0.12.2-2_amd64.deb",
        "e5a85986fa6bec3307ab1bc860736b478b331882bc45e17675a7bdf88eecb43a",
    ),
    (
        "pool/main/libm/libmd/libmd0_1.1.0-2+b1_amd64.deb",
        "7244ec3839b61fac0c1884fe08aaa040f26e8f1f35f1f5d3482eacefd30d1b44",
    ),
    (
        "pool/main/x/xz-utils/liblzma5_5.8.1-1+deb13u1_amd64.deb",
        "1cfcc6e0dc36f438a79b6e2189facdb9d150b08f57d190a60e01c98075c7f896",
    ),
    (
        "pool/main/i/icu/libicu76_76.1-4_amd64.deb",
        "c1bf762996de9ecba9b9d871e4928a8090f023a3e9e7fa3240b3d90f892a01dc",
    ),
];

const MODULE: &str = "crates/tamis-explorer/explorer.wasm";
const TARGET: &str = "wasm32-unknown-unknown";

/// Builds the module and the published page again.
pub(crate) fn explorer() -> Result {
    let built = build()?.ok_or("no compiler for WebAssembly")?;
    let bytes = std::fs::read(&built).map_err(|error| error.to_string())?;
    println!("{MODULE}: {} bytes", bytes.len());
    std::fs::write(root().join(MODULE), bytes)
        .map_err(|error| error.to_string())?;
    Cargo::new("test --quiet -p tamis-explorer --test page")
        .env("TAMIS_WRITE_PAGE", "1")
        .run()
}

/// Fails if the committed module is not the build of the present sources.
pub(crate) fn check() -> Result {
    let Some(built) = build()? else {
        println!("SKIPPED: no compiler for WebAssembly, {MODULE} not checked");
        return Ok(());
    };
    let read = |path: PathBuf| {
        std::fs::read(&path).map_err(|error| error.to_string())
    };
    match read(built)? == read(root().join(MODULE))? {
        true => Ok(()),
        false => Err(format!(
            "{MODULE} is not the build of the present sources (cargo xtask \
             explorer builds it)"
        )),
    }
}

fn build() -> Result<Option<PathBuf>> {
    step("WebAssembly of the explorer");
    let words = "rustc --quiet --locked -p tamis-explorer --crate-type cdylib";
    webassembly(words, "tamis_explorer.wasm", "")
}

/// Runs cargo for WebAssembly and returns the path of `file`. `None`, with a
/// message, without a compiler.
pub(crate) fn webassembly(
    words: &str,
    file: &str,
    features: &str,
) -> Result<Option<PathBuf>> {
    let Some(place) = unpacked("wasm-rustc", &COMPILER)? else {
        return Ok(None);
    };
    let rustc = wrapper(
        &place,
        "rustc",
        "usr/bin/rustc",
        &format!("--sysroot {}/usr", place.display()),
    )?;
    let linker = wrapper(&place, "wasm-ld", "usr/lib/llvm-19/bin/lld", "")?;
    // The bytes depend on no directory of this machine.
    let root = root();
    let mut flags = format!(
        "--remap-path-prefix={}=.\x1f--remap-path-prefix={}=cargo",
        root.display(),
        cargo_home()?.display()
    );
    if !features.is_empty() {
        flags += &format!("\x1f-Ctarget-feature={features}");
    }
    let rustc = rustc.to_string_lossy();
    let linker = linker.to_string_lossy();
    let settings = [
        ("RUSTC", rustc.as_ref()),
        ("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker.as_ref()),
        ("CARGO_ENCODED_RUSTFLAGS", &flags),
        ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1"),
        ("CARGO_PROFILE_RELEASE_DEBUG", "0"),
        ("CARGO_PROFILE_RELEASE_LTO", "fat"),
        ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s"),
        ("CARGO_PROFILE_RELEASE_STRIP", "symbols"),
    ];
    let cargo = Cargo::new(words).words("--release --target-dir target/wasm");
    let cargo = cargo.args(&["--target", TARGET]);
    let set =
        |cargo: Cargo, (name, value): &(&str, &str)| cargo.env(name, value);
    settings.iter().fold(cargo, set).run()?;
    let path = format!("target/wasm/{TARGET}/release/{file}");
    Ok(Some(root.join(path)))
}

/// Directory of the sources that cargo downloads.
fn cargo_home() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let default = || {
        std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"))
    };
    home.or_else(default).ok_or_else(|| "no home directory".into())
}
