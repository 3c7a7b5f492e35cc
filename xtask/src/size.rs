//! Sizes: machine code of the command line, source lines and public items of
//! the library, and its cost as a dependency.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::run::{Cargo, Result, root, step};
use crate::source::{Source, read, tracked};

pub(crate) fn size() -> Result {
    step("sizes");
    // With symbols, which are counted and then stripped.
    Cargo::new("build --quiet --profile dist -p tamis-cli")
        .env("CARGO_PROFILE_DIST_STRIP", "false")
        .run()?;
    Cargo::new("doc --quiet -p tamis --no-deps").run()?;
    let binary = root().join("target/dist/tamis");
    let stripped = root().join("target/tamis-stripped");
    let [binary, stripped] =
        [binary, stripped].map(|path| path.to_string_lossy().into_owned());
    output("strip", &["-o", &stripped, &binary])?;
    let file = std::fs::metadata(&stripped).map_err(|e| e.to_string())?;
    let sections = output("size", &["-A", &stripped])?;
    let (all, own) =
        code_bytes(&output("nm", &["-S", "--demangle", &binary])?);
    println!("\n{:>9}  bytes of the stripped executable `tamis`", file.len());
    println!("{:>9}  bytes of its .text section", section(&sections, ".text"));
    println!("{all:>9}  bytes of its functions");
    println!("{own:>9}  bytes of those, functions of the library crate");
    println!("{:>9}  code lines of the library, without tests", lines()?);
    let items = public_items(&read("target/doc/tamis/all.html")?);
    println!("{items:>9}  public items of the library");
    let cost = Dependency::measure()?;
    println!("{:>9}  crates of a program that depends on it", cost.crates);
    match cost.user_seconds {
        Some(seconds) => {
            println!("{seconds:>9.1}  CPU seconds (user) of its clean build");
        }
        None => println!("        ?  CPU seconds: /proc/self/stat is missing"),
    }
    println!("{:>9}  bytes of that program, stripped", cost.bytes);
    Ok(())
}

/// Items in rustdoc's list of all items, without its table of contents.
fn public_items(html: &str) -> usize {
    let lists = html.split("<ul class=\"all-items\">").skip(1);
    lists
        .filter_map(|list| list.split("</ul>").next())
        .map(|list| list.matches("<li>").count())
        .sum()
}

/// The smallest program with a filter.
const PROGRAM: &str = "\
fn main() -> Result<(), tamis::Error> {
    let builder = tamis::Blocked::builder().items(1000).fpr(0.01);
    let mut filter = builder.build()?;
    filter.insert(\"apple\");
    println!(\"{}\", filter.contains(\"apple\"));
    Ok(())
}
";

/// The cost of the library, with default features, to a program.
struct Dependency {
    /// The library and the crates it depends on, also for its build.
    crates: usize,
    user_seconds: Option<f64>,
    bytes: u64,
}

impl Dependency {
    /// Builds [`PROGRAM`] with the versions of the repository's lock file.
    fn measure() -> Result<Self> {
        let place = root().join("target/dependency");
        let text = |error: std::io::Error| error.to_string();
        if place.exists() {
            std::fs::remove_dir_all(&place).map_err(text)?;
        }
        std::fs::create_dir_all(place.join("src")).map_err(text)?;
        let library = root().join("crates/tamis");
        let manifest = format!(
            "[package]\nname = \"program\"\nversion = \"0.0.0\"\n\
             edition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
             tamis = {{ path = {library:?} }}\n"
        );
        std::fs::write(place.join("Cargo.toml"), manifest).map_err(text)?;
        std::fs::write(place.join("src/main.rs"), PROGRAM).map_err(text)?;
        let lock = root().join("Cargo.lock");
        std::fs::copy(lock, place.join("Cargo.lock")).map_err(text)?;

        let before = user_seconds_of_children();
        cargo(&place, "build --quiet --release --target-dir target")?;
        let user_seconds = before
            .and_then(|before| Some(user_seconds_of_children()? - before));
        let tree = cargo(&place, "tree --edges normal,build --prefix none")?;
        let program = place.join("target/release/program");
        let stripped = place.join("target/stripped");
        let paths = [&stripped, &program].map(|path| path.to_string_lossy());
        output("strip", &["-o", &paths[0], &paths[1]])?;
        let bytes = std::fs::metadata(&stripped).map_err(text)?.len();
        Ok(Self { crates: crates(&tree) - 1, user_seconds, bytes })
    }
}

/// Different crates in the output of `cargo tree --prefix none`.
fn crates(tree: &str) -> usize {
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    lines.filter(|line| !line.is_empty()).collect::<BTreeSet<_>>().len()
}

/// The output of a cargo command in another package.
fn cargo(place: &Path, words: &str) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(place).args(words.split_whitespace());
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// CPU time in user mode of all children that have ended, from Linux'
/// `/proc/self/stat`.
fn user_seconds_of_children() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Field 16 (cutime), in hundredths of a second; the name, field 2, may
    // contain spaces.
    let fields = stat.rsplit(')').next()?;
    let ticks = fields.split_whitespace().nth(13)?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}

fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output
        .map_err(|error| format!("`{program}` cannot be run: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("`{program}` failed: {}", output.status)),
    }
}

/// Bytes of a section, from `size -A`.
fn section(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().map(str::split_whitespace);
    let words = lines
        .find_map(|mut words| (words.next() == Some(name)).then_some(words));
    words.and_then(|mut words| words.next()?.parse().ok()).unwrap_or(0)
}

/// First words of paths in the program `tamis`, whose crate has the name of
/// the library.
const PROGRAM_PATHS: [&str; 9] = [
    "Cli", "failure", "fullness", "identity", "keys", "main", "progress",
    "report", "verb",
];

/// Bytes of all functions, and of those whose path or `impl` type is in the
/// library `tamis`, from `nm -S --demangle`.
fn code_bytes(text: &str) -> (u64, u64) {
    // Identical functions may share an address.
    let mut functions = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(4, ' ').collect();
        let [address, bytes, "t" | "T", name] = fields[..] else { continue };
        let Ok(bytes) = u64::from_str_radix(bytes, 16) else { continue };
        let path = name.trim_start_matches('<').strip_prefix("tamis::");
        let own = path.is_some_and(|path| {
            let end = path.find(|c: char| !c.is_alphanumeric() && c != '_');
            !PROGRAM_PATHS.contains(&&path[..end.unwrap_or(path.len())])
        });
        functions.insert(address, (bytes, own));
    }
    let sum = |(all, of_tamis): (u64, u64), &(bytes, own): &(u64, bool)| {
        (all + bytes, of_tamis + if own { bytes } else { 0 })
    };
    functions.values().fold((0, 0), sum)
}

/// Lines of the library with code, tests left out.
fn lines() -> Result<usize> {
    let mut count = 0;
    for path in tracked("crates/tamis/src", &[".rs"])? {
        if !path.contains("/tests") {
            let code = Source::parse(&read(&path)?).without_tests();
            count +=
                code.lines().filter(|line| !line.trim().is_empty()).count();
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::{code_bytes, crates, public_items, section};

    #[test]
    fn crates_are_counted_once() {
        let tree = "program v0.0.0 (/p)\ntamis v0.1.0 (/t)\nlibm v0.2.1\n\
                    tamis-theory v0.1.0 (/t)\nlibm v0.2.1 (*)\n";
        assert_eq!(crates(tree), 4);
    }

    #[test]
    fn the_table_of_contents_is_not_counted() {
        let html = "<ul><li>Structs</li></ul><ul class=\"all-items\">\
                    <li>A</li><li>B</li></ul><ul class=\"all-items\">\
                    <li>f</li></ul>";
        assert_eq!(public_items(html), 3);
    }

    #[test]
    fn functions_are_summed_once_an_address() {
        let text = "0000000000001000 0000000000000010 t tamis::key::hash\n\
                    0000000000001000 0000000000000010 t core::ptr::drop\n\
                    0000000000002000 0000000000000020 T main\n\
                    0000000000003000 0000000000000001 t <tamis::Bloom as \
                    core::fmt::Debug>::fmt\n\
                    0000000000005000 0000000000000002 t tamis::verb::add::run\n\
                    0000000000004000 0000000000000008 r tamis::TABLE\n\
                    U memcpy\n";
        assert_eq!(code_bytes(text), (0x33, 1));
    }

    #[test]
    fn sections_are_found_by_name() {
        assert_eq!(section("tamis:\n.text  1234  56\n", ".text"), 1234);
    }
}
