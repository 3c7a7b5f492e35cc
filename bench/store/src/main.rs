//! `cargo xtask bench store`: tamis-store beside other key-value stores.
//!
//! Every measurement is a process of its own, so that processor time, memory
//! and reads are those of one engine; the engines take turns in each round.

mod child;
mod engine;
mod parent;
mod report;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use child::Job;
use parent::Settings;

/// Measure tamis-store beside redb, fjall, LMDB and RocksDB
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    child: Option<Child>,

    #[command(flatten)]
    settings: Settings,
}

#[derive(Subcommand)]
enum Child {
    /// Run one measurement and print it as JSON
    #[command(hide = true)]
    Child {
        engine: String,
        dir: PathBuf,
        job: Job,
        #[arg(long)]
        items: u64,
        #[arg(long)]
        operations: u64,
        #[arg(long)]
        round: u64,
        #[arg(long)]
        buffer: u64,
        #[arg(long)]
        cache: u64,
    },
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cli = Cli::parse();
    match cli.child {
        None => parent::run(&cli.settings),
        Some(Child::Child {
            engine,
            dir,
            job,
            items,
            operations,
            round,
            buffer,
            cache,
        }) => {
            let memory = engine::Memory { buffer, cache };
            let work = child::Work { job, items, operations, round };
            let figures = child::run(&engine, &dir, memory, work)?;
            println!("{}", serde_json::to_string(&figures)?);
            Ok(())
        }
    }
}
