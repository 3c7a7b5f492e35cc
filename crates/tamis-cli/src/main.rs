//! `tamis`: build, query and inspect filters from the shell.

mod failure;
mod fullness;
mod identity;
mod keys;
mod progress;
mod report;
mod verb;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use failure::{Exit, Failure};

/// Build, query and inspect set-membership filters.
///
/// A lookup answers "probably" or "certainly not" and reads about one cache
/// line. A filter finds every key it was built from. It wrongly answers
/// "probably" at the false-positive rate chosen when it is built.
#[derive(Parser)]
#[command(
    name = "tamis",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = "\
Examples:
  tamis build words.txt -o words.tamis --fpr 0.001
  tamis query words.tamis candidates.txt        # print the probable members
  tamis query words.tamis -v - < candidates.txt # print the certain non-members
  tamis info words.tamis
  tamis plan --items 1e9 --fpr 0.001            # compare kinds and memory

Exit status: 0 on success, 1 if query selected no key, remove removed none or
verify found damage, 2 on error."
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    // Boxed: it has by far the most options.
    Build(Box<verb::build::Args>),
    Query(verb::query::Args),
    Seen(verb::seen::Args),
    Add(verb::add::Args),
    Remove(verb::remove::Args),
    Merge(verb::merge::Args),
    Fold(verb::fold::Args),
    Grow(verb::grow::Args),
    Info(verb::info::Args),
    Verify(verb::verify::Args),
    Plan(verb::plan::Args),
    Explore(verb::explore::Args),
    Theory(verb::theory::Args),
    #[cfg(all(unix, feature = "store"))]
    Store(verb::store::Args),
    #[cfg(feature = "lab")]
    Lab(verb::lab::Args),
    Completions(verb::completions::Args),
    Man(verb::man::Args),
}

fn main() -> ExitCode {
    let result = match Cli::try_parse() {
        Ok(cli) => run(cli.verb),
        Err(message) => print(&message),
    };
    match result {
        Ok(Exit::Success) => ExitCode::SUCCESS,
        Ok(Exit::Negative) => ExitCode::from(1),
        Ok(Exit::Failure) => ExitCode::from(2),
        // A reader such as `head` may close the pipe early: not an error.
        Err(Failure::PipeClosed) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(2)
        }
    }
}

fn run(verb: Verb) -> failure::Result<Exit> {
    match verb {
        Verb::Build(args) => args.run(),
        Verb::Query(args) => args.run(),
        Verb::Seen(args) => args.run(),
        Verb::Add(args) => args.run(),
        Verb::Remove(args) => args.run(),
        Verb::Merge(args) => args.run(),
        Verb::Fold(args) => args.run(),
        Verb::Grow(args) => args.run(),
        Verb::Info(args) => args.run(),
        Verb::Verify(args) => args.run(),
        Verb::Plan(args) => args.run(),
        Verb::Explore(args) => args.run(),
        Verb::Theory(args) => args.run(),
        #[cfg(all(unix, feature = "store"))]
        Verb::Store(args) => args.run(),
        #[cfg(feature = "lab")]
        Verb::Lab(args) => args.run(),
        Verb::Completions(args) => args.run(Cli::command()),
        Verb::Man(args) => args.run(Cli::command()),
    }
}

/// Prints an error in the arguments to stderr, or the help text to stdout.
fn print(message: &clap::Error) -> failure::Result<Exit> {
    let printed = message.print();
    if message.use_stderr() {
        return Ok(Exit::Failure);
    }
    printed?;
    io::stdout().flush()?;
    Ok(Exit::Success)
}
