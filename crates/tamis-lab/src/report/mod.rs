//! Report of experiments: CSV, SVG and JSON files, and one page.
//!
//! ```
//! use tamis_lab::experiment::{Setting, find};
//! use tamis_lab::report::Report;
//!
//! let directory = tempfile::tempdir()?;
//! let mut report = Report::new(directory.path(), true)?;
//! report.run(find("region").unwrap(), &Setting::quick())?;
//! report.finish()?;
//! assert!(directory.path().join("report.html").exists());
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```

mod chart;
mod finding;
mod page;
mod table;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::experiment::{Experiment, Setting};

pub(crate) use chart::{Axis, Chart, Corner, Series};
pub use finding::{Finding, Limit, Verdict};
pub(crate) use table::{Cell, Table, row};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Results of one experiment.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Parameters beside the command.
    pub(crate) parameters: Vec<(&'static str, String)>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) charts: Vec<Chart>,
    /// Title and SVG of a drawing that is no chart; it precedes the charts.
    pub(crate) pictures: Vec<(String, String)>,
    pub(crate) tables: Vec<Table>,
}

/// An experiment that ran.
struct Entry {
    experiment: &'static Experiment,
    outcome: Outcome,
    charts: Vec<(String, String)>,
    elapsed: Duration,
    /// Repeats the experiment.
    command: String,
}

/// Writer of a report: the files of each experiment when it has run, the
/// page at the end.
pub struct Report {
    directory: PathBuf,
    quick: bool,
    entries: Vec<Entry>,
}

/// Findings of one experiment, by verdict.
///
/// ```
/// use tamis_lab::report::Count;
/// let count = Count { reproduced: 2, differs: 1, ..Count::default() };
/// assert_eq!(count.to_string(), "2 reproduced, 1 differ");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// [`Verdict::Reproduced`].
    pub reproduced: usize,
    /// [`Verdict::Differs`].
    pub differs: usize,
    /// [`Verdict::NotReproducible`].
    pub not_reproducible: usize,
    /// [`Verdict::Unexpected`].
    pub unexpected: usize,
}

impl Count {
    fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let mut count = Self::default();
        for finding in findings {
            *match finding.verdict() {
                Verdict::Reproduced => &mut count.reproduced,
                Verdict::Differs => &mut count.differs,
                Verdict::NotReproducible => &mut count.not_reproducible,
                Verdict::Unexpected => &mut count.unexpected,
            } += 1;
        }
        count
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} reproduced", self.reproduced)?;
        for (number, verdict) in [
            (self.differs, "differ"),
            (self.not_reproducible, "not reproducible"),
            (self.unexpected, "UNEXPECTED"),
        ] {
            if number > 0 {
                write!(f, ", {number} {verdict}")?;
            }
        }
        Ok(())
    }
}

impl Report {
    /// A report in `directory`, which is created if it does not exist.
    ///
    /// ```
    /// let directory = tempfile::tempdir()?;
    /// tamis_lab::report::Report::new(directory.path().join("new"), true)?;
    /// assert!(directory.path().join("new").is_dir());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn new(directory: impl Into<PathBuf>, quick: bool) -> Result<Self> {
        let directory = directory.into();
        fs::create_dir_all(&directory)
            .map_err(|error| named(&directory, &error))?;
        Ok(Self { directory, quick, entries: Vec::new() })
    }

    /// Runs `experiment` and writes its CSV and SVG files.
    ///
    /// ```
    /// use tamis_lab::experiment::{Setting, find};
    /// use tamis_lab::report::Report;
    ///
    /// let directory = tempfile::tempdir()?;
    /// let mut report = Report::new(directory.path(), true)?;
    /// let count = report.run(find("region").unwrap(), &Setting::quick())?;
    /// assert_eq!(count.unexpected, 0);
    /// assert!(directory.path().join("region.csv").exists());
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn run(
        &mut self,
        experiment: &'static Experiment,
        setting: &Setting,
    ) -> Result<Count> {
        let start = Instant::now();
        let outcome = (experiment.run)(setting)
            .map_err(|error| format!("{}: {error}", experiment.name))?;
        let elapsed = start.elapsed();
        let name = |suffix: &str, extension: &str| match suffix {
            "" => format!("{}.{extension}", experiment.name),
            _ => format!("{}-{suffix}.{extension}", experiment.name),
        };
        for table in &outcome.tables {
            self.write(&name(table.suffix, "csv"), &table.csv())?;
        }
        let mut charts = Vec::new();
        for (title, svg) in &outcome.pictures {
            self.write(&name("", "svg"), svg)?;
            charts.push((title.clone(), svg.clone()));
        }
        for chart in &outcome.charts {
            let (file, svg) = (name(chart.suffix, "svg"), chart.svg()?);
            self.write(&file, &svg)?;
            charts.push((chart.title.clone(), svg));
        }
        let count = Count::of(&outcome.findings);
        let command = command(experiment, setting);
        self.entries.push(Entry {
            experiment,
            outcome,
            charts,
            elapsed,
            command,
        });
        Ok(count)
    }

    /// Findings of all experiments so far.
    ///
    /// ```
    /// let directory = tempfile::tempdir()?;
    /// let report = tamis_lab::report::Report::new(directory.path(), true)?;
    /// assert_eq!(report.findings().count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn findings(&self) -> impl Iterator<Item = (&'static str, &Finding)> {
        self.entries.iter().flat_map(|entry| {
            let findings = entry.outcome.findings.iter();
            findings.map(|finding| (entry.experiment.name, finding))
        })
    }

    /// Writes `report.html` and `report.json`; returns the path of the page.
    ///
    /// ```
    /// let directory = tempfile::tempdir()?;
    /// let report = tamis_lab::report::Report::new(directory.path(), true)?;
    /// let page = std::fs::read_to_string(report.finish()?)?;
    /// assert!(page.contains("</html>"));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn finish(&self) -> Result<PathBuf> {
        self.write("report.json", &self.json()?)?;
        self.write("report.html", &page::html(self))
    }

    fn json(&self) -> Result<String> {
        let experiments = self.entries.iter().map(|entry| {
            let findings = entry.outcome.findings.iter();
            let findings = findings.map(|finding| {
                json!({
                    "verdict": finding.verdict(),
                    "finding": finding,
                })
            });
            let parameters = entry.outcome.parameters.iter();
            json!({
                "name": entry.experiment.name,
                "title": entry.experiment.title,
                "source": entry.experiment.source,
                "command": entry.command,
                "seconds": entry.elapsed.as_secs_f64(),
                "parameters": parameters
                    .map(|(name, value)| ((*name).to_owned(), json!(value)))
                    .collect::<serde_json::Map<_, _>>(),
                "findings": findings.collect::<Vec<_>>(),
            })
        });
        let all = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "quick": self.quick,
            "experiments": experiments.collect::<Vec<_>>(),
            "claims": crate::claims::all()?,
        });
        Ok(serde_json::to_string_pretty(&all)? + "\n")
    }

    /// Replaces a file as a whole.
    fn write(&self, file: &str, text: &str) -> Result<PathBuf> {
        let path = self.directory.join(file);
        let new = self.directory.join(format!(".{file}.part"));
        let write = || {
            fs::write(&new, text)?;
            fs::rename(&new, &path)
        };
        write().map_err(|error| named(&path, &error))?;
        Ok(path)
    }
}

fn command(experiment: &Experiment, setting: &Setting) -> String {
    let mut command = format!("tamis lab run {} -o DIR", experiment.name);
    if setting.quick {
        command += " --quick";
    }
    if let Some(path) = setting.trace.as_ref().filter(|_| experiment.traced) {
        command += &format!(" --trace {}", path.display());
    }
    command
}

fn named(path: &Path, error: &std::io::Error) -> Box<dyn Error + Send + Sync> {
    format!("{}: {error}", path.display()).into()
}

/// A number of four digits: 0.0123, 1.23e-7, 123 456.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() || value == value.trunc() && value.abs() < 1e7 {
        return value.to_string();
    }
    if (1e-3..1e7).contains(&value.abs()) {
        let decimals = 3 - value.abs().log10().floor() as i32;
        let text = format!("{value:.*}", decimals.max(0) as usize);
        return match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').into(),
            false => text,
        };
    }
    let text = format!("{value:.3e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => digits,
    };
    format!("{digits}e{power}")
}

/// Text with the characters of markup escaped.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_repeats_an_experiment() {
        let setting =
            Setting { quick: true, trace: Some(PathBuf::from("a.pcap")) };
        let of =
            |name| command(crate::experiment::find(name).unwrap(), &setting);
        let traced = "tamis lab run trace -o DIR --quick --trace a.pcap";
        assert_eq!(of("trace"), traced);
        assert_eq!(of("bound"), "tamis lab run bound -o DIR --quick");
    }

    #[test]
    fn numbers_have_four_digits() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (0.012_345_6, "0.01235"),
            (12.0 / 7.0, "1.714"),
            (1e-7, "1e-7"),
            (3.456_78e-5, "3.457e-5"),
            (-2.5, "-2.5"),
            (65_536.0, "65536"),
            (f64::INFINITY, "inf"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }
}
