//! Checking that modules of the library use only modules in layers below.

use crate::run::Result;
use crate::source::{Source, read, tracked};

/// The library's sources.
const SOURCES: &str = "crates/tamis/src";

/// Top-level modules, highest layer first. A module may use those in lower
/// layers. The crate root re-exports them and is in no layer.
const LAYERS: [&[&str]; 8] = [
    &["inspect", "plan", "serde"],
    &["filter", "table"],
    &["dispatch", "overflow", "parallel", "placement_design", "summary"],
    &["block"],
    &["arch", "format", "memory", "placement", "search"],
    &["key"],
    &["named"],
    &["error"],
];

/// Uses within a layer: user, used, and the reason.
const EXCEPTIONS: [(&str, &str, &str); 1] = [(
    "memory",
    "placement",
    "the proof that an index needs no bounds check is the multiply-shift",
)];

/// A path into another top-level module.
#[derive(Debug, PartialEq)]
struct Use {
    line: usize,
    module: String,
}

pub(crate) fn layers() -> Result {
    let exports = exports(&read(&format!("{SOURCES}/lib.rs"))?);
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in tracked(SOURCES, &[".rs"])? {
        let Some(user) = module(&path) else { continue };
        for Use { line, module } in uses(&read(&path)?, &exports) {
            count += 1;
            if let Some(why) = objection(user, &module) {
                wrong.push(format!("{path}:{line}: {why}"));
            }
        }
    }
    for line in &wrong {
        println!("{line}");
    }
    println!("{count} uses of other modules, {} not allowed", wrong.len());
    match wrong.is_empty() {
        true => Ok(()),
        false => Err("a module uses one that is not in a lower layer; the \
                      layers are in xtask/src/layers.rs"
            .into()),
    }
}

/// Top-level module of a file, none for the crate root and for tests.
fn module(path: &str) -> Option<&str> {
    let inner = path.strip_prefix(SOURCES)?.strip_prefix('/')?;
    let mut names = inner.split('/').map(|name| name.trim_end_matches(".rs"));
    if names.clone().any(|name| name.starts_with("tests")) {
        return None;
    }
    names.next().filter(|&name| name != "lib")
}

/// The reason why `user` may not use `used`.
fn objection(user: &str, used: &str) -> Option<String> {
    let layer =
        |module: &str| LAYERS.iter().position(|layer| layer.contains(&module));
    let excepted = EXCEPTIONS.iter().any(|&(a, b, _)| (a, b) == (user, used));
    let (Some(upper), Some(lower)) = (layer(user), layer(used)) else {
        let module = if layer(user).is_none() { user } else { used };
        return Some(format!("module {module} is in no layer"));
    };
    match upper < lower || user == used || excepted {
        true => None,
        false if upper == lower => {
            Some(format!("{user} uses {used}, which is in the same layer"))
        }
        false => {
            Some(format!("{user} uses {used}, which is in a layer above"))
        }
    }
}

/// Names the crate root exports, each with its top-level module.
fn exports(root: &str) -> Vec<(String, String)> {
    let tokens = tokens(&Source::parse(root).code);
    let mut exports = Vec::new();
    for (i, (_, token)) in tokens.iter().enumerate() {
        if token == "use" {
            for path in tree(&tokens[i + 1..]).0 {
                if let [.., last] = &path[..] {
                    exports.push((last.clone(), path[0].clone()));
                }
            }
        }
    }
    exports
}

/// The modules that non-test code names by paths from the crate root.
/// Exported names stand for their modules.
fn uses(text: &str, exports: &[(String, String)]) -> Vec<Use> {
    let tokens = tokens(&Source::parse(text).without_tests());
    let mut uses = Vec::new();
    for (i, pair) in tokens.windows(2).enumerate() {
        let [(line, first), (_, second)] = pair else { continue };
        if first != "crate" || second != "::" {
            continue;
        }
        for path in tree(&tokens[i + 2..]).0 {
            let export = exports.iter().find(|(name, _)| *name == path[0]);
            let module = export.map_or(&path[0], |(_, module)| module);
            let found = Use { line: *line, module: module.clone() };
            if !uses.contains(&found) {
                uses.push(found);
            }
        }
    }
    uses
}

/// Identifiers, `::` and single characters, each with its line.
fn tokens(code: &str) -> Vec<(usize, String)> {
    let mut tokens: Vec<(usize, String)> = Vec::new();
    let of_name = |c: char| c.is_alphanumeric() || c == '_';
    for (i, line) in code.lines().enumerate() {
        let mut previous = ' ';
        for c in line.chars() {
            let joins =
                of_name(previous) && of_name(c) || previous == ':' && c == ':';
            match tokens.last_mut() {
                Some((_, token)) if joins => token.push(c),
                _ if c.is_whitespace() => {}
                _ => tokens.push((i + 1, c.into())),
            }
            previous = c;
        }
    }
    tokens
}

/// Paths of the use tree that the tokens begin with, and its length.
fn tree(tokens: &[(usize, String)]) -> (Vec<Vec<String>>, usize) {
    let token = |i: usize| tokens.get(i).map_or("", |(_, token)| token);
    let mut path: Vec<String> = Vec::new();
    let mut i = 0;
    loop {
        if token(i) != "{" {
            path.push(token(i).to_owned());
            if token(i + 1) == "::" {
                i += 2;
                continue;
            }
            return (vec![path], i + 1);
        }
        let mut paths = Vec::new();
        i += 1;
        while !matches!(token(i), "}" | "") {
            let (inner, length) = tree(&tokens[i..]);
            let whole = |tail| [path.clone(), tail].concat();
            paths.extend(inner.into_iter().map(whole));
            i += length;
            // `as NAME` and the comma.
            while !matches!(token(i), "}" | "" | ",") {
                i += 1;
            }
            i += usize::from(token(i) == ",");
        }
        return (paths, i + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::{exports, module, objection, uses};

    fn modules(text: &str) -> Vec<String> {
        let exports = exports("pub use error::{Error, Result};\n");
        uses(text, &exports).into_iter().map(|found| found.module).collect()
    }

    #[test]
    fn use_trees_and_paths_name_modules() {
        let text = "use crate::{\n  a::{self, b::C}, d as e,\n  f::*,\n};\n\
                    use crate::g::{H, I};\n\
                    pub(crate) fn j() -> crate::Result<k::L> { crate::m() }";
        assert_eq!(modules(text), ["a", "d", "f", "g", "error", "m"]);
    }

    #[test]
    fn comments_strings_and_tests_use_nothing() {
        let text = "// crate::a\nfn f() { \"crate::b\"; }\n\
                    #[cfg(test)]\nmod tests { use crate::c; }\n";
        assert_eq!(modules(text), [""; 0]);
    }

    #[test]
    fn lines_are_those_of_the_path() {
        let found =
            uses("\nuse crate::{a,\n b};\n\nfn f(x: crate::a::X) {}", &[]);
        let lines: Vec<_> = found.iter().map(|found| found.line).collect();
        assert_eq!(lines, [2, 2, 5]);
    }

    #[test]
    fn files_belong_to_top_level_modules() {
        let of = |path: &str| module(path).map(str::to_owned);
        assert_eq!(of("crates/tamis/src/lib.rs"), None);
        assert_eq!(of("crates/tamis/src/key.rs").as_deref(), Some("key"));
        assert_eq!(of("crates/tamis/src/a/b/c.rs").as_deref(), Some("a"));
        assert_eq!(of("crates/tamis/src/a/tests/c.rs"), None);
    }

    #[test]
    fn lower_layers_and_the_own_module_are_allowed() {
        assert_eq!(objection("filter", "key"), None);
        assert_eq!(objection("filter", "filter"), None);
        assert_eq!(objection("key", "error"), None);
        for (user, used) in
            [("filter", "table"), ("key", "filter"), ("key", "new")]
        {
            assert!(objection(user, used).is_some(), "{user} {used}");
        }
    }
}
