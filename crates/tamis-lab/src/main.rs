//! Experiments and plots: what the documents show, drawn again on demand.

mod plots;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Draw what the documents show.
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
}

fn main() -> ExitCode {
    let Verb::Plots { directory } = Cli::parse().verb;
    match plots::draw(&directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tamis-lab: {error}");
            ExitCode::FAILURE
        }
    }
}
