//! `tamis lab`.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{
    ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};
use tamis_lab::experiment::{self, Experiment, Setting};
use tamis_lab::report::Report;

use crate::failure::{Exit, Failure, Result};

/// Repeat the experiments of the papers behind tamis
///
/// Every claim of the papers is repeated or answered: `run all` writes CSV
/// and SVG files and a page, report.html, with the claim, our figure with
/// its interval, the deviation and a verdict.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis lab list
  tamis lab run all -o report              # within 20 minutes on two cores
  tamis lab run region trace -o report --quick
  tamis lab run trace -o report --trace backbone.pcapng")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// List the experiments
    List,
    Run(RunArgs),
}

/// Run experiments and write their files and report.html
///
/// Exit status 1 if a figure came out against the expectation.
#[derive(clap::Args)]
struct RunArgs {
    /// Experiments, or `all` [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Directory of the report
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Smaller sizes, with wider intervals: two minutes
    #[arg(long)]
    quick: bool,

    /// Packets of the experiment `trace`, instead of generated ones
    #[arg(long, value_name = "FILE.pcap|.pcapng")]
    trace: Option<PathBuf>,
}

/// Columns of the longest name of an experiment.
const WIDTH: usize = 16;

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        match &self.verb {
            Verb::List => list(),
            Verb::Run(args) => args.run(),
        }
    }
}

fn list() -> Result<Exit> {
    let mut out = std::io::stdout();
    for experiment in &experiment::ALL {
        let Experiment { name, title, source, .. } = experiment;
        writeln!(out, "{name:<WIDTH$} {title} ({source})")?;
    }
    writeln!(out)?;
    for (sign, paper) in experiment::PAPERS {
        writeln!(out, "{sign:<4} {paper}")?;
    }
    Ok(Exit::Success)
}

impl RunArgs {
    fn run(&self) -> Result<Exit> {
        let chosen = self.chosen()?;
        if self.trace.is_some() && !chosen.iter().any(|one| one.traced) {
            return Err(Failure::new(
                "--trace is read by the experiment trace, which is not among \
                 the names",
            ));
        }
        let setting = Setting { quick: self.quick, trace: self.trace.clone() };
        let mut report =
            Report::new(&self.output, self.quick).map_err(Failure::new)?;
        let mut schedule = Schedule::new(&chosen, self.quick);
        let mut unexpected = 0;
        for experiment in chosen {
            let bar = schedule.bar(experiment);
            let start = Instant::now();
            let count = report.run(experiment, &setting);
            bar.finish_and_clear();
            let count = count.map_err(Failure::new)?;
            unexpected += count.unexpected;
            schedule.ran(experiment);
            let (name, time) = (experiment.name, start.elapsed());
            let time = time.as_secs_f64();
            writeln!(
                std::io::stdout(),
                "{name:<WIDTH$} {count} ({time:.1} s)"
            )?;
        }
        let page = report.finish().map_err(Failure::new)?;
        writeln!(std::io::stdout(), "{}", page.display())?;
        Ok(Exit::success_if(unexpected == 0))
    }

    fn chosen(&self) -> Result<Vec<&'static Experiment>> {
        let all = self.names.iter().any(|name| name == "all");
        if all || self.names.is_empty() {
            return Ok(experiment::ALL.iter().collect());
        }
        let find = |name: &String| {
            experiment::find(name).ok_or_else(|| {
                Failure::new(format_args!(
                    "no experiment {name} (`tamis lab list` prints them)"
                ))
            })
        };
        let mut chosen: Vec<&Experiment> = Vec::new();
        for name in &self.names {
            let found = find(name)?;
            if !chosen.iter().any(|other| other.name == found.name) {
                chosen.push(found);
            }
        }
        Ok(chosen)
    }
}

/// Time left: that of the experiments to come, by the times they take on two
/// processors and the speed of this machine so far.
struct Schedule {
    quick: bool,
    start: Instant,
    done: f64,
    total: f64,
}

impl Schedule {
    fn new(chosen: &[&Experiment], quick: bool) -> Self {
        let total = chosen.iter().map(|each| seconds(each, quick)).sum();
        Self { quick, start: Instant::now(), done: 0.0, total }
    }

    fn ran(&mut self, experiment: &Experiment) {
        self.done += seconds(experiment, self.quick);
    }

    /// A bar that shows the share done and the time left.
    fn bar(&self, experiment: &Experiment) -> ProgressBar {
        let elapsed = self.start.elapsed();
        let slower = match self.done {
            0.0 => 1.0,
            done => elapsed.as_secs_f64() / done,
        };
        let left = (self.total - self.done) * slower;
        let left = Duration::from_secs_f64(left.max(0.0));
        let time_left =
            move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                let left = left.saturating_sub(state.elapsed()).as_secs();
                let _ =
                    write!(out, "about {}:{:02} left", left / 60, left % 60);
            };
        let bar = ProgressBar::with_draw_target(
            Some(self.total.ceil() as u64),
            ProgressDrawTarget::stderr(),
        );
        // The template is constant and valid.
        if let Ok(style) =
            ProgressStyle::with_template("{msg} {wide_bar} {left}")
        {
            bar.set_style(style.with_key("left", time_left));
        }
        bar.set_message(experiment.name);
        bar.set_position(self.done as u64);
        bar.enable_steady_tick(Duration::from_millis(500));
        bar
    }
}

fn seconds(experiment: &Experiment, quick: bool) -> f64 {
    experiment.seconds[usize::from(quick)]
}
