//! The figures of the documents.

mod plots;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Draw the figures of the documents; `tamis lab` runs the experiments
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
}

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Plots { directory } => plots::draw(&directory),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tamis-lab: {error}");
            ExitCode::FAILURE
        }
    }
}
