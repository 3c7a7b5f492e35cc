//! A lexer for Rust source: comments, code without comments and strings,
//! and code without tests.

use std::process::Command;

use crate::run::{Result, root};

/// A source text whose comments and code are apart.
pub(crate) struct Source {
    /// Line comments: line number from 1, and the text after the slashes.
    pub(crate) comments: Vec<(usize, String)>,
    /// The source with comments and the contents of literals blanked.
    /// Newlines stay, so line numbers do.
    pub(crate) code: String,
}

impl Source {
    pub(crate) fn parse(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut comments = Vec::new();
        let mut code = String::with_capacity(text.len());
        let (mut line, mut i) = (1, 0);
        while i < chars.len() {
            let end = token_end(&chars, i);
            let token: String = chars[i..end].iter().collect();
            if token.starts_with("//") {
                let text = token.trim_start_matches(['/', '!']);
                comments.push((line, text.to_owned()));
            }
            let blank = token.starts_with("//")
                || token.starts_with("/*")
                || end > i + 1 && token.ends_with(['"', '#', '\'']);
            code.extend(token.chars().map(|c| match (blank, c) {
                (true, c) if c != '\n' => ' ',
                _ => c,
            }));
            line += token.matches('\n').count();
            i = end;
        }
        Self { comments, code }
    }

    /// [`Source::code`] with the items under `#[cfg(test)]` and
    /// `#[cfg(all(test, ..))]` blanked.
    pub(crate) fn without_tests(&self) -> String {
        let mut code = self.code.clone();
        for attribute in ["#[cfg(test)]", "#[cfg(all(test"] {
            while let Some(start) = code.find(attribute) {
                let end = start + item_length(&code[start..]);
                let blank = |c| if c == '\n' { '\n' } else { ' ' };
                let item: String =
                    code[start..end].chars().map(blank).collect();
                code.replace_range(start..end, &item);
            }
        }
        code
    }
}

/// End of the comment, literal, identifier or single character at `i`.
fn token_end(chars: &[char], i: usize) -> usize {
    let at = |j: usize| chars.get(j).copied().unwrap_or('\0');
    let find = |from: usize, last: &dyn Fn(usize) -> bool| {
        (from..chars.len()).find(|&j| last(j)).map_or(chars.len(), |j| j + 1)
    };
    match (at(i), at(i + 1)) {
        ('/', '/') => {
            let newline = (i..chars.len()).find(|&j| chars[j] == '\n');
            newline.unwrap_or(chars.len())
        }
        ('/', '*') => find(i + 3, &|j| chars[j - 1] == '*' && chars[j] == '/'),
        ('"', _) => string_end(chars, i),
        // A lifetime has no closing quote behind its first character.
        ('\'', '\\') => find(i + 3, &|j| chars[j] == '\''),
        ('\'', _) if at(i + 2) == '\'' => i + 3,
        (c, _) if c.is_alphanumeric() || c == '_' => {
            let mut end = i + 1;
            while at(end).is_alphanumeric() || at(end) == '_' {
                end += 1;
            }
            let prefix: String = chars[i..end].iter().collect();
            let mut hashes = 0;
            while at(end + hashes) == '#' {
                hashes += 1;
            }
            match (prefix.as_str(), at(end + hashes)) {
                ("r" | "br" | "cr", '"') => {
                    let closes = |j: usize| {
                        j > end + 2 * hashes
                            && chars[j - hashes] == '"'
                            && chars[j + 1 - hashes..=j]
                                .iter()
                                .all(|&c| c == '#')
                    };
                    find(end + hashes + 1, &closes)
                }
                ("b" | "c", '"') => string_end(chars, end),
                _ => end,
            }
        }
        _ => i + 1,
    }
}

/// End of the string literal whose opening quote is at `i`.
fn string_end(chars: &[char], i: usize) -> usize {
    let mut j = i + 1;
    while j < chars.len() && chars[j] != '"' {
        j += if chars[j] == '\\' { 2 } else { 1 };
    }
    (j + 1).min(chars.len())
}

/// Length of the attributed item that `code` begins with: up to the first
/// semicolon, or the closing brace of its body.
fn item_length(code: &str) -> usize {
    let mut depth = 0_i32;
    for (i, c) in code.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ => {}
        }
        if depth < 0 || depth == 0 && matches!(c, ';' | '}') {
            return i + usize::from(depth == 0);
        }
    }
    code.len()
}

/// Paths of the tracked files that end in one of `ends`, relative to the
/// root of the repository.
pub(crate) fn tracked(under: &str, ends: &[&str]) -> Result<Vec<String>> {
    let output = Command::new("git")
        .current_dir(root())
        .args(["ls-files", "--", under])
        .output()
        .map_err(|error| format!("`git ls-files` cannot be run: {error}"))?;
    if !output.status.success() {
        return Err("`git ls-files` failed: not a Git checkout?".into());
    }
    let list = String::from_utf8_lossy(&output.stdout);
    let wanted = |path: &&str| {
        ends.iter().any(|end| path.ends_with(end))
            && root().join(path).exists()
    };
    Ok(list.lines().filter(wanted).map(str::to_owned).collect())
}

/// Text of a file named relative to the root of the repository.
pub(crate) fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(root().join(path))
        .map_err(|error| format!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::Source;

    fn code(text: &str) -> String {
        let code = Source::parse(text).code;
        code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_have_their_line_and_no_slashes() {
        let text = "//! Head\n\nfn f() {} // tail\n    /// Doc\n";
        let comments = Source::parse(text).comments;
        let expected = [(1, " Head"), (3, " tail"), (4, " Doc")];
        assert_eq!(comments, expected.map(|(n, s)| (n, s.to_owned())));
    }

    #[test]
    fn literals_hide_comments() {
        for literal in [
            r#""a // b""#,
            r#""a \" // b""#,
            r##"r"a \""##,
            r###"r#"a " // b"#"###,
            r#"b"// b""#,
            "'\"'",
            r"'\''",
        ] {
            let source = Source::parse(&format!("f({literal}); // c\n"));
            assert_eq!(source.comments, [(1, " c".to_owned())], "{literal}");
            assert_eq!(code(&format!("f({literal})")), "f( )", "{literal}");
        }
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        assert_eq!(code("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
        assert_eq!(code("let r#type = 1;"), "let r#type = 1;");
        assert_eq!(code("a /* b\nc */ d"), "a d");
    }

    #[test]
    fn tests_are_blanked_and_lines_stay() {
        let text = "a;\n#[cfg(test)]\nmod tests {\n fn f() {}\n}\nb;\n\
                    #[cfg(all(test, loom))]\nmod more;\nc;\n";
        let code = Source::parse(text).without_tests();
        assert_eq!(code.lines().count(), text.lines().count());
        let words: Vec<_> = code.split_whitespace().collect();
        assert_eq!(words, ["a;", "b;", "c;"]);
    }
}
