//! Experiments, and the figures of the documents.

mod balanced_tinyset;
mod plots;

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
