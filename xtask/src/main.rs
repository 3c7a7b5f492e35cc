//! `cargo xtask VERB`: the developer commands of the repository.
//!
//! No dependencies, because this is compiled before anything else.

mod api;
mod arch;
mod browser;
mod debian;
mod demo;
mod deny;
mod explorer;
mod instructions;
mod layers;
mod msrv;
mod prose;
mod python;
mod run;
mod sanitize;
mod size;
mod source;
mod thread_sanitizer;
mod tools;

use std::path::Path;
use std::process::ExitCode;

use instructions::Action;
use run::{Cargo, Result, step};

const USAGE: &str = "\
cargo xtask VERB

  demo   build a filter from the key list in data/, query it, show its numbers
  test   all checks of CI: format, wording, layers, lints, tests, fuzz targets,
         docs, public items, no_std, loom, instruction counts, MSRV,
         the Python package
  python [PYTEST-ARGUMENTS] the Python package: builds the wheel in a virtual
         environment, runs its tests, type checks and examples
  python-free-threaded  the same in Python 3.14 without a GIL (python3.14t)
  datafusion  the SQL functions for DataFusion: lints and tests, which need
         Rust 1.94
  slow   tests that need minutes and gigabytes
  bench  [OPTIONS] measure all filters, their peers and the memory's limit;
         --quick takes 5 minutes
  bench  layouts: compare two layouts of the fingerprint block
  bench  window: batched loads with extra instructions between them
  bench  tables [OPTIONS]: multilevel tables with every summary
  bench  python [OPTIONS]: the Python package beside its peers; --spark: joins
         beside Spark's own filter
  bench  adapter [OPTIONS]: filters opened at each lookup of a storage engine
  bench  throughput [OPTIONS]: building on all cores, and `tamis query`
  bench  store [OPTIONS]: tamis-store beside redb, fjall, LMDB and, with the
         packages librocksdb-dev and libclang-dev, RocksDB
  instructions  [--check | --update] count instructions of the hot paths
  instructions  aarch64: those of 64-bit Arm, with NEON and without
  plots  redraw the figures of the documents
  api    [--update]  compare the public items with the public-api.txt of each
         crate, or write these files
  arch   [aarch64 | s390x | i686 | armv7 | wasm32] test the library on other
         processors, with qemu-user and Node
  browser  open the explorer and the report in headless Chromium
  explorer [--check]  build the WebAssembly and the page of tamis explore, or
         check that the committed ones are the build of the sources
  deny   licences, sources and duplicate versions of the dependencies
  fuzz   [SECONDS] run the fuzz targets (default 120 s each)
  loom   check the lock-free insertion in every interleaving
  msrv   compile with the oldest supported Rust
  layers check that modules of the library use only those in lower layers
  mutants [FILES]  change the code of some files and see that a test fails
  sanitize [SECONDS] fuzz targets under AddressSanitizer (default 30 s each),
         tests with threads under ThreadSanitizer, AVX2 paths under valgrind
  size   bytes of machine code, lines of source, public items, the cost of
         the library as a dependency
  prose  [--list [HABIT]] count unclear wording in comments and documents
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["demo"] => demo::demo(),
        ["test"] => test(),
        ["python", ref arguments @ ..] => python::python(arguments),
        ["python-free-threaded"] => python::free_threaded(),
        ["datafusion"] => datafusion(),
        ["slow"] => slow(),
        ["bench", ref options @ ..] => bench(options),
        ["instructions"] | ["instructions", "--check"] => {
            instructions::instructions(Action::Check)
        }
        ["instructions", "--update"] => {
            instructions::instructions(Action::Update)
        }
        ["instructions", "aarch64"] => arch::instructions(),
        ["plots"] => {
            Cargo::new("run --quiet --release -p tamis-lab -- plots").run()
        }
        ["api"] => api::api(false),
        ["api", "--update"] => api::api(true),
        ["deny"] => deny::deny(),
        ["mutants", ref files @ ..] => sanitize::mutants(files),
        ["sanitize"] => sanitize::sanitize("30"),
        ["sanitize", seconds] => sanitize::sanitize(seconds),
        ["arch", ref names @ ..] => arch::arch(names),
        ["browser"] => browser::browser(),
        ["explorer"] => explorer::explorer(),
        ["explorer", "--check"] => explorer::check(),
        ["loom"] => loom(),
        ["msrv"] => msrv::msrv(),
        ["layers"] => layers::layers(),
        ["size"] => size::size(),
        ["prose"] => prose::prose(None),
        ["prose", "--list"] => prose::prose(Some("")),
        ["prose", "--list", habit] => prose::prose(Some(habit)),
        ["fuzz"] => fuzz("120"),
        ["fuzz", seconds] => fuzz(seconds),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn test() -> Result {
    step("format");
    Cargo::new("fmt --all --check").run()?;
    step("wording");
    prose::prose(None)?;
    step("layers");
    layers::layers()?;
    // With serde, which adds code and removes none.
    let all = "--workspace --features tamis/serde";
    step("lints");
    Cargo::new(&format!("clippy {all} --all-targets -- -D warnings")).run()?;
    step("tests");
    Cargo::new(&format!("test {all}")).run()?;
    step("fuzz targets compile, and pass their seeds");
    let manifest = "--manifest-path fuzz/Cargo.toml --target-dir target";
    Cargo::new(&format!("check --quiet {manifest}")).run()?;
    Cargo::new(&format!("test --quiet {manifest} --no-default-features"))
        .run()?;
    step("documentation");
    Cargo::new("doc --workspace --no-deps")
        .env("RUSTDOCFLAGS", "-D warnings")
        .run()?;
    api::api(false)?;
    if deny::is_installed() {
        deny::deny()?;
    } else {
        println!("SKIPPED: `cargo xtask deny` compiles cargo-deny");
    }
    // The workspace turns features on that hide code without a use.
    for features in ["", "--no-default-features"] {
        step(&format!("library alone {features}"));
        Cargo::new(&format!("clippy -p tamis {features} -- -D warnings"))
            .run()?;
    }
    loom()?;
    explorer::check()?;
    instructions::instructions(Action::Check)?;
    msrv::msrv()?;
    python::python(&[])
}

fn slow() -> Result {
    step("slow tests");
    Cargo::new(
        "test --release -p tamis --features slow-tests,table \
         --test statistics --test balanced --test tinyset --test on_disk \
         -- --nocapture hundreds_of_millions a_million_blocks \
         a_hundred_million a_million_present",
    )
    .run()?;
    Cargo::new(
        "test --release -p tamis-theory --lib --test multilevel_designs \
         -- --ignored",
    )
    .run()?;
    Cargo::new("test --release -p tamis-cli --test cli -- --ignored").run()?;
    Cargo::new("test --release -p tamis-lab --test experiments -- --ignored")
        .run()?;
    Cargo::new(
        "test --release -p tamis-store --tests -- --ignored --nocapture \
         --skip write_golden_files",
    )
    .run()?;
    python::free_threaded()?;
    datafusion()?;
    arch::arch(&[])?;
    deny::deny()?;
    sanitize::sanitize("30")?;
    // CI fixes the seed of the property tests; this run takes a new one.
    let now = std::time::UNIX_EPOCH.elapsed();
    let seed = now.map_err(|error| error.to_string())?.as_secs().to_string();
    step(&format!("tests with PROPTEST_RNG_SEED={seed}"));
    Cargo::new("test --release --workspace")
        .env("PROPTEST_RNG_SEED", &seed)
        .run()
}

/// Apart from `test`, because DataFusion takes minutes to compile.
fn datafusion() -> Result {
    step("DataFusion");
    let manifest = "--manifest-path integrations/datafusion/Cargo.toml";
    Cargo::new(&format!("fmt {manifest} --check")).run()?;
    Cargo::new(&format!("clippy --locked {manifest} --all-targets"))
        .words("-- -D warnings")
        .run()?;
    Cargo::new(&format!("test --locked {manifest}")).run()
}

fn bench(options: &[&str]) -> Result {
    if let ["python", options @ ..] = options {
        return python::bench(options);
    }
    if let ["store", options @ ..] = options {
        return bench_store(options);
    }
    step("compiling the benchmark with its peers");
    Cargo::new("build --release --manifest-path bench/Cargo.toml").run()?;
    step("measuring");
    let run = "run --quiet --release --manifest-path bench/Cargo.toml";
    match options {
        [tool @ ("layouts" | "window")] => {
            Cargo::new(&format!("{run} --bin {tool}")).run()
        }
        [tool @ ("tables" | "adapter"), options @ ..] => {
            Cargo::new(&format!("{run} --bin {tool} --")).args(options).run()
        }
        ["throughput", options @ ..] => {
            Cargo::new("build --release -p tamis-cli").run()?;
            let run = format!("{run} --bin throughput --");
            Cargo::new(&run).args(options).run()
        }
        _ => Cargo::new(&format!("{run} --")).args(options).run(),
    }
}

/// RocksDB takes part if the system has its library: compiling it takes half
/// an hour.
fn bench_store(options: &[&str]) -> Result {
    const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu";
    let has_rocksdb = Path::new(LIBRARY).join("librocksdb.so").exists();
    let features = match has_rocksdb {
        true => "--features rocksdb",
        false => {
            eprintln!("no RocksDB: install librocksdb-dev and libclang-dev");
            ""
        }
    };
    step("compiling the benchmark of the store with its peers");
    let run = format!(
        "run --quiet --release --manifest-path bench/store/Cargo.toml \
         {features} --"
    );
    Cargo::new(&run).env("ROCKSDB_LIB_DIR", LIBRARY).args(options).run()
}

/// loom replaces the atomics, which takes a separate build.
fn loom() -> Result {
    step("loom");
    Cargo::new("test -p tamis --lib --target-dir target/loom shared")
        .env("RUSTFLAGS", "--cfg loom")
        .run()
}

fn fuzz(seconds: &str) -> Result {
    // No sanitizer: coverage needs none, and stable Rust has none.
    sanitize::fuzz("-s none", seconds)
}
