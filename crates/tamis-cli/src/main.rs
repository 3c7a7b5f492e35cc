//! `tamis`: build, query and inspect filters from the shell.

mod failure;
mod keys;
mod progress;
mod report;
mod verb;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::{Failure, Outcome};

/// Set membership for about one cache line a lookup.
///
/// A filter answers "certainly not" or "probably": it never misses a key it
/// was built from, and wrongly says "probably" at a rate you choose.
#[derive(Parser)]
#[command(
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = "\
Examples:
  tamis build words.txt -o words.tamis --fpr 0.001
  tamis query words.tamis candidates.txt        # print the probable members
  tamis query words.tamis -v - < candidates.txt # print the certain non-members
  tamis info words.tamis
  tamis plan --items 1e9 --fpr 0.001            # which kind, how much memory

Exit status: 0 done (for query: some key matched), 1 no key matched or the
file is damaged (verify), 2 error."
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Build(verb::build::Args),
    Query(verb::query::Args),
    Add(verb::add::Args),
    Remove(verb::remove::Args),
    Merge(verb::merge::Args),
    Fold(verb::fold::Args),
    Grow(verb::grow::Args),
    Info(verb::info::Args),
    Verify(verb::verify::Args),
    Plan(verb::plan::Args),
    Theory(verb::theory::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Build(args) => args.run(),
        Verb::Query(args) => args.run(),
        Verb::Add(args) => args.run(),
        Verb::Remove(args) => args.run(),
        Verb::Merge(args) => args.run(),
        Verb::Fold(args) => args.run(),
        Verb::Grow(args) => args.run(),
        Verb::Info(args) => args.run(),
        Verb::Verify(args) => args.run(),
        Verb::Plan(args) => args.run(),
        Verb::Theory(args) => args.run(),
    };
    match result {
        Ok(Outcome::Yes) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        // Whoever reads our output has heard enough: not an error.
        Err(Failure::PipeClosed) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            ExitCode::from(2)
        }
    }
}
