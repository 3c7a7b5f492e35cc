//! Experiments and plots: what the documents show, drawn again on demand.

mod balanced_tinyset;
mod plots;
mod song;
mod summaries;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Draw and measure what the documents show.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Draw the pictures of the documents, from theory and measurement
    Plots {
        /// Where to put them
        #[arg(long, default_value = "docs/img")]
        directory: PathBuf,
    },
    /// Compare summaries of multilevel tables with the fast hash table
    Summaries {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Measure fingerprint blocks in levels that refuse keys
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
