//! The Python package: its environment, its wheel and its tests.

mod free_threaded;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Cargo, Result, root, run, step};

pub(crate) use free_threaded::free_threaded;

/// Packages of the tests, with their versions.
const REQUIREMENTS: &str = "python/requirements-test.txt";

/// Packages of the benchmark beside these.
const BENCH_REQUIREMENTS: &str = "python/requirements-bench.txt";

/// Builds the wheel in a virtual environment and runs its tests. `tests` are
/// the arguments of pytest.
pub(crate) fn python(tests: &[&str]) -> Result {
    step("Python environment");
    let environment = Environment::new()?;
    step("Python lints");
    run(environment.cargo("fmt --check"))?;
    run(environment.cargo("clippy --locked -- -D warnings"))?;
    step("Python wheel");
    environment.install_wheel()?;
    build_command_line()?;
    step("Python tests");
    let mut pytest = environment.program("pytest");
    pytest.arg("-q").args(tests).env("TAMIS_BIN", command_line());
    run(pytest)?;
    step("Python types and format");
    for words in [
        "mypy",
        "pyright --warnings",
        "ruff check source tests bench",
        "ruff format --check source tests bench",
    ] {
        let mut words = words.split_whitespace();
        let mut check = environment.program(words.next().unwrap_or_default());
        check.args(words);
        run(check)?;
    }
    Ok(())
}

/// Compiles `tamis` in the profile of the tests, in which `cargo test` has
/// compiled it.
fn build_command_line() -> Result {
    Cargo::new("build --quiet -p tamis-cli --profile test").run()
}

fn command_line() -> PathBuf {
    root().join("target/debug/tamis")
}

/// Runs the benchmark of the package.
pub(crate) fn bench(options: &[&str]) -> Result {
    step("Python wheel");
    let environment = Environment::new()?;
    environment.install(&["-r", BENCH_REQUIREMENTS])?;
    environment.install_wheel()?;
    step("rate of the Rust library");
    Cargo::new("build --release -p tamis --example column_rate").run()?;
    step("measuring");
    let mut bench = environment.program("python");
    bench
        .arg("bench/run.py")
        .args(options)
        .env("TAMIS_RUST", root().join("target/release/examples/column_rate"));
    run(bench)
}

/// A virtual environment with the packages of the tests.
struct Environment {
    place: PathBuf,
}

impl Environment {
    /// Creates it, or again if the list of packages has changed.
    fn new() -> Result<Self> {
        let place = root().join("target/python-env");
        let stamp = place.join("requirements-test.txt");
        let wanted = read(&root().join(REQUIREMENTS))?;
        let environment = Self { place };
        if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            return Ok(environment);
        }
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv", "--clear"]).arg(&environment.place);
        run(venv)?;
        environment.install(&["-r", REQUIREMENTS])?;
        fs::write(&stamp, wanted).map_err(|error| error.to_string())?;
        Ok(environment)
    }

    /// Runs `pip install` with these arguments, in the root of the repository.
    fn install(&self, arguments: &[&str]) -> Result {
        let mut install = self.program("python");
        install
            .current_dir(root())
            .args(["-m", "pip", "install", "--quiet", "--no-deps"])
            .arg("--disable-pip-version-check")
            .args(arguments);
        run(install)
    }

    /// A program of the environment, run in `python/`.
    fn program(&self, name: &str) -> Command {
        self.activated(Command::new(self.place.join("bin").join(name)))
    }

    /// A command of cargo for the extension module. Runs in its folder, where
    /// cargo finds its `.cargo/config.toml`.
    fn cargo(&self, words: &str) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
        let mut command = self.activated(Command::new(cargo));
        command
            .args(words.split_whitespace())
            .env("CARGO_TARGET_DIR", root().join("target/python"));
        command
    }

    /// Runs a command in `python/`, as if the environment were activated.
    fn activated(&self, mut command: Command) -> Command {
        let bin = self.place.join("bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths =
            std::iter::once(bin.clone()).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(paths).unwrap_or(path);
        command
            .current_dir(root().join("python"))
            .env("PATH", path)
            .env("VIRTUAL_ENV", &self.place)
            .env_remove("PYTHONPATH");
        command
    }

    fn install_wheel(&self) -> Result {
        let wheels = root().join("target/wheels");
        // Of other versions, perhaps.
        let _ = fs::remove_dir_all(&wheels);
        run(self.maturin(&wheels))?;
        let wheel = wheel_in(&wheels)?;
        self.install(&["--force-reinstall", &wheel.to_string_lossy()])
    }

    /// Builds the wheel into a directory.
    fn maturin(&self, wheels: &Path) -> Command {
        let mut build = self.program("maturin");
        build
            .args(["build", "--quiet", "--release", "--locked", "--out"])
            .arg(wheels)
            .env("CARGO_TARGET_DIR", root().join("target/python"));
        build
    }
}

/// The only wheel in a directory.
fn wheel_in(wheels: &Path) -> Result<PathBuf> {
    fs::read_dir(wheels)
        .map_err(|error| error.to_string())?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension() == Some(OsStr::new("whl")))
        .ok_or("maturin built no wheel".into())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path)
        .map_err(|error| format!("{}: {error}", path.display()))
}
