//! Experiments, and the figures of the documents.

mod balanced_tinyset;
mod baselines;
mod plots;
mod summaries;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Run the experiments and draw the figures of the documents
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Draw the figures of the documents, from theory and measurement
    Plots {
        /// Directory of the figures
        #[arg(long, default_value = "docs/img")]
        directory: PathBuf,
    },
    /// Compare summaries of multilevel tables with the fast hash table of
    /// Song et al.
    Summaries {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Measure the structures of other papers beside their formulas and
    /// published sizes
    Baselines {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Measure TinySets under multilevel placement
    BalancedTinyset {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Plots { directory } => plots::draw(&directory),
        Verb::Summaries { json } => summaries::run(json),
        Verb::Baselines { json } => baselines::run(json),
        Verb::BalancedTinyset { json } => balanced_tinyset::run(json),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tamis-lab: {error}");
            ExitCode::FAILURE
        }
    }
}
