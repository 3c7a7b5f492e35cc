//! Counting habits of wording that hide a thing's name.
//!
//! Counts per 1000 words, over the comments of all tracked Rust files and
//! over all tracked Markdown documents. Code blocks, code spans and
//! addresses are left out, as are licences and the changelog.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::run::Result;
use crate::source::{Source, read, tracked};

/// A habit, its phrases, and how frequent it may be.
struct Habit {
    name: &'static str,
    /// Phrases of one or two words, in lower case.
    phrases: &'static [&'static str],
    /// Whether a phrase counts only where a sentence begins.
    opening: bool,
    /// Largest number of hits per 1000 words.
    limit: f64,
}

/// Well-kept Rust libraries have between 0 and 0.4 of each per 1000 words,
/// and up to 0.8 of `way`.
const HABITS: [Habit; 6] = [
    Habit {
        name: "speaking",
        phrases: &[
            "say", "says", "said", "saying", "tell", "tells", "told",
            "telling", "ask", "asks", "asked", "asking",
        ],
        opening: false,
        limit: 0.5,
    },
    Habit {
        name: "what",
        phrases: &[
            "what is",
            "what are",
            "what was",
            "what were",
            "what it",
            "what they",
            "what the",
            "what a",
            "what an",
        ],
        opening: false,
        limit: 0.5,
    },
    Habit {
        // Without `how many`, which is often the right question.
        name: "many",
        phrases: &["so many", "as many", "that many"],
        opening: false,
        limit: 0.5,
    },
    Habit {
        // `2-way` is one word, and no hit.
        name: "way",
        phrases: &["way", "ways"],
        opening: false,
        limit: 0.8,
    },
    Habit {
        name: "known",
        phrases: &[
            "is known",
            "are known",
            "knows",
            "nobody",
            "somebody",
            "whoever",
            "anyone",
        ],
        opening: false,
        limit: 0.5,
    },
    Habit {
        name: "there",
        phrases: &["there is", "there are"],
        opening: true,
        limit: 0.5,
    },
];

/// Files shown as the worst.
const WORST: usize = 12;

/// A word of prose.
#[derive(Debug, PartialEq)]
struct Word {
    line: usize,
    /// In lower case; empty for a code span.
    text: String,
    /// Whether a sentence begins with it.
    opening: bool,
}

/// A phrase that was found.
struct Hit {
    habit: usize,
    line: usize,
    phrase: &'static str,
}

/// A file's words and hits.
struct File {
    path: String,
    words: usize,
    hits: Vec<Hit>,
}

/// Prints the counts, and fails if a habit is above its limit. `list` prints
/// every hit instead, or those of one habit.
pub(crate) fn prose(list: Option<&str>) -> Result {
    let mut files = Vec::new();
    for path in tracked(".", &[".rs", ".md"])? {
        let name = path.rsplit('/').next().unwrap_or(&path);
        if name.starts_with("LICENSE") || name == "CHANGELOG.md" {
            continue;
        }
        let text = read(&path)?;
        let words = match path.ends_with(".rs") {
            true => words(&Source::parse(&text).comments),
            false => words(&markdown(&text)),
        };
        files.push(File { path, words: words.len(), hits: hits(&words) });
    }
    let (report, exceeded) = match list {
        Some(name) => (listed(&files, name)?, Vec::new()),
        None => table(&files),
    };
    // A closed pipe is no failure.
    let _ = std::io::stdout().write_all(report.as_bytes());
    match exceeded.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "above the limit: {}. Show them: cargo xtask prose --list {}",
            exceeded.join(", "),
            exceeded[0]
        )),
    }
}

/// The counts of all habits, the worst files, and the habits above their
/// limit.
fn table(files: &[File]) -> (String, Vec<&'static str>) {
    let words: usize = files.iter().map(|file| file.words).sum();
    let per_1000 =
        |hits: usize, words: usize| 1000.0 * hits as f64 / words.max(1) as f64;
    let mut exceeded = Vec::new();
    let mut text = format!(
        "{words} words in {} files\n\n{:<10}{:>8}{:>10}{:>8}\n",
        files.len(),
        "habit",
        "count",
        "per 1000",
        "limit"
    );
    for (i, habit) in HABITS.iter().enumerate() {
        let all = files.iter().flat_map(|file| &file.hits);
        let count = all.filter(|hit| hit.habit == i).count();
        let rate = per_1000(count, words);
        let ok = rate <= habit.limit;
        if !ok {
            exceeded.push(habit.name);
        }
        let _ = writeln!(
            text,
            "{:<10}{count:>8}{rate:>10.2}{:>8}  {}",
            habit.name,
            habit.limit,
            if ok { "ok" } else { "NOT" }
        );
    }
    let mut worst: Vec<&File> = files.iter().collect();
    worst.sort_by_key(|file| std::cmp::Reverse(file.hits.len()));
    let _ = writeln!(text, "\nmost hits{:>9}{:>10}", "", "per 1000");
    for file in worst.iter().take(WORST).filter(|f| !f.hits.is_empty()) {
        let count = file.hits.len();
        let rate = per_1000(count, file.words);
        let _ = writeln!(text, "{count:>18}{rate:>10.2}  {}", file.path);
    }
    (text, exceeded)
}

/// The lines with hits, of all habits if `name` is empty.
fn listed(files: &[File], name: &str) -> Result<String> {
    if !name.is_empty() && !HABITS.iter().any(|habit| habit.name == name) {
        let names = HABITS.map(|habit| habit.name).join(", ");
        return Err(format!("no habit {name}; the habits are {names}"));
    }
    let mut text = String::new();
    for file in files {
        for hit in &file.hits {
            let habit = HABITS[hit.habit].name;
            if name.is_empty() || name == habit {
                let Hit { line, phrase, .. } = hit;
                let path = &file.path;
                let _ = writeln!(text, "{path}:{line}: {habit}: {phrase}");
            }
        }
    }
    Ok(text)
}

/// The lines of a Markdown document, front to back.
fn markdown(text: &str) -> Vec<(usize, String)> {
    text.lines().enumerate().map(|(i, s)| (i + 1, s.to_owned())).collect()
}

/// The words of numbered lines of Markdown, without fenced code. A gap
/// between the numbers ends a sentence, as an empty line does.
fn words(lines: &[(usize, String)]) -> Vec<Word> {
    let mut words = Vec::new();
    let (mut fenced, mut code, mut opening, mut last) =
        (false, false, true, 0);
    for (line, text) in lines {
        let text = text.trim();
        let adjacent = *line == last + 1;
        last = *line;
        fenced &= adjacent;
        if text.starts_with("```") {
            fenced = !fenced;
        }
        if fenced || text.starts_with("```") {
            continue;
        }
        let item = text.starts_with(['-', '*', '#', '|', '>']);
        if text.is_empty() || item || !adjacent {
            (code, opening) = (false, true);
        }
        for piece in text.split_whitespace() {
            if !piece.contains("://") {
                let (line, code) = (*line, &mut code);
                add_words(piece, line, code, &mut opening, &mut words);
            }
        }
    }
    words
}

/// Adds the words of text without white space. `code` is whether it begins
/// in a code span.
fn add_words(
    piece: &str,
    line: usize,
    code: &mut bool,
    opening: &mut bool,
    words: &mut Vec<Word>,
) {
    let mut add = |text: &str, opening: &mut bool| {
        let text = text.trim_matches(['-', '\'', '_']).to_lowercase();
        words.push(Word { line, text, opening: *opening });
        *opening = false;
    };
    let mut word = String::new();
    // The space behind the piece ends its last word.
    for c in piece.chars().chain([' ']) {
        if !*code && (c.is_alphanumeric() || "-'_".contains(c)) {
            word.push(c);
            continue;
        }
        if word.contains(char::is_alphabetic) {
            add(&word, opening);
        }
        word.clear();
        match c {
            '`' => {
                if !*code {
                    add("", opening);
                }
                *code = !*code;
            }
            '.' | '!' | '?' | '|' if !*code => *opening = true,
            _ => {}
        }
    }
}

/// The phrases of all habits in a text.
fn hits(words: &[Word]) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let next = words.get(i + 1).filter(|next| !next.opening);
        for (index, habit) in HABITS.iter().enumerate() {
            let found = |phrase: &&&str| match phrase.split_once(' ') {
                None => word.text == **phrase,
                Some((first, second)) => {
                    word.text == first
                        && next.is_some_and(|next| next.text == second)
                }
            };
            if habit.opening && !word.opening {
                continue;
            }
            if let Some(&phrase) = habit.phrases.iter().find(found) {
                hits.push(Hit { habit: index, line: word.line, phrase });
            }
        }
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::{File, HABITS, hits, markdown, table, words};
    use crate::source::Source;

    /// Line, habit and phrase of every hit in a Rust source.
    fn in_rust(text: &str) -> Vec<(usize, &'static str, &'static str)> {
        let words = words(&Source::parse(text).comments);
        let named =
            |hit: super::Hit| (hit.line, HABITS[hit.habit].name, hit.phrase);
        hits(&words).into_iter().map(named).collect()
    }

    #[test]
    fn words_are_counted_without_code_and_addresses() {
        let text = "One, two `three four` 5 six-seven\n\
                    ```\neight\n```\n(https://a.b/c) nine";
        let words = words(&markdown(text));
        let texts: Vec<&str> = words.iter().map(|w| w.text.as_str()).collect();
        assert_eq!(texts, ["one", "two", "", "six-seven", "nine"]);
        assert_eq!(words[4].line, 5);
    }

    #[test]
    fn phrases_are_found_across_lines_and_not_across_sentences() {
        assert_eq!(
            in_rust("/// Holds What\n/// is left.\n"),
            [(1, "what", "what is")]
        );
        for text in [
            "// For what.\n// Is it?\n",
            "// what\n\n// is\n",
            "// what\n//\n// is\n",
            "// what `this` is\n",
            "// a 2-way cache, always\n",
            "fn says() { f(\"what is\") }\n",
            "/// ```\n/// // what is\n/// ```\n",
        ] {
            assert_eq!(in_rust(text), [], "{text}");
        }
    }

    #[test]
    fn there_is_counts_at_the_beginning_of_a_sentence() {
        assert_eq!(
            in_rust("// One. There are two, and there is more.\n"),
            [(1, "there", "there are")]
        );
        let words = words(&markdown("| a | There is b |\n- there is c\n"));
        assert_eq!(hits(&words).len(), 2);
    }

    #[test]
    fn the_table_compares_with_the_limits() {
        let file = |words| {
            let hits = hits(&super::words(&markdown("it says so")));
            File { path: "a.md".into(), words, hits }
        };
        assert_eq!(table(&[file(2001)]).1, [""; 0]);
        let (text, exceeded) = table(&[file(1999)]);
        assert_eq!(exceeded, ["speaking"]);
        assert!(text.contains("NOT") && text.contains("a.md"), "{text}");
    }
}
