//! The Python package in an interpreter without a GIL, if the machine has one.

use std::process::Command;

use super::{Environment, wheel_in};
use crate::run::{Result, root, run, step};

/// The oldest interpreter for which PyO3 has a binding.
const PYTHON: &str = "python3.14t";

/// Packages of the tests that have wheels for free-threaded interpreters. The
/// versions are those of all tests.
const PACKAGES: [&str; 14] = [
    "hypothesis",
    "iniconfig",
    "numpy",
    "packaging",
    "pandas",
    "pluggy",
    "pyarrow",
    "Pygments",
    "pytest",
    "pytest-timeout",
    "python-dateutil",
    "sortedcontainers",
    "tqdm",
    "typing_extensions",
];

/// Tests without polars, Spark and the other engines.
const TESTS: [&str; 6] = [
    "tests/test_files.py",
    "tests/test_filters.py",
    "tests/test_keys.py",
    "tests/test_model.py",
    "tests/test_store.py",
    "tests/test_threads.py",
];

pub(crate) fn free_threaded() -> Result {
    step("Python without a GIL");
    if Command::new(PYTHON).arg("--version").output().is_err() {
        println!("SKIPPED: no {PYTHON}");
        return Ok(());
    }
    let place = root().join("target/python-free-threaded");
    let mut venv = Command::new(PYTHON);
    venv.args(["-m", "venv", "--clear"]).arg(&place);
    run(venv)?;
    let python = place.join("bin/python");
    let environment = Environment::new()?;
    // Its own pip: that of the environment may be older than its wheels.
    let install = |arguments: &[&str]| {
        let mut pip = Command::new(&python);
        pip.current_dir(root())
            .args(["-m", "pip", "install", "--quiet", "--no-deps"])
            .args(["--disable-pip-version-check", "--only-binary", ":all:"])
            .args(arguments);
        run(pip)
    };
    install(&[&["-c", super::REQUIREMENTS][..], &PACKAGES].concat())?;
    let wheels = root().join("target/wheels-free-threaded");
    let _ = std::fs::remove_dir_all(&wheels);
    let mut build = environment.maturin(&wheels);
    build.arg("--interpreter").arg(&python);
    run(build)?;
    let wheel = wheel_in(&wheels)?;
    install(&["--force-reinstall", &wheel.to_string_lossy()])?;
    super::build_command_line()?;
    let tests = |arguments: &[&str]| {
        let mut pytest = Command::new(&python);
        pytest
            .current_dir(root().join("python"))
            .args(["-m", "pytest", "-q"])
            .args(arguments)
            .env("TAMIS_BIN", super::command_line());
        run(pytest)
    };
    tests(&TESTS)?;
    // Without the tutorial, which shows polars.
    tests(&["tests/test_docs.py", "-k", "examples_hold"])
}
