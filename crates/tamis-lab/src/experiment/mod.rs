//! Experiments: the claims of the papers, repeated.
//!
//! ```
//! let names: Vec<_> =
//!     tamis_lab::experiment::ALL.iter().map(|each| each.name).collect();
//! assert!(names.contains(&"bound"));
//! ```

mod balanced_tinyset;
mod bound;
mod budget;
mod churn;
mod convexity;
mod crisis;
mod deletions;
mod forty;
mod largest;
mod lines;
mod memory;
mod misnamed;
mod overload;
mod partition;
mod picture;
mod rates;
mod region;
mod rivals;
mod single;
mod speed;
mod summaries;
mod tail;
mod trace;
mod variance;

use std::error::Error;
use std::path::PathBuf;

use crate::report::Outcome;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// One experiment.
///
/// ```
/// let region = tamis_lab::experiment::find("region").unwrap();
/// assert_eq!(region.source, "BBF 8, Fig. 4");
/// ```
pub struct Experiment {
    /// Name on the command line and of its files.
    pub name: &'static str,
    /// Heading.
    pub title: &'static str,
    /// Paper, section, figure.
    pub source: &'static str,
    /// Claim and method.
    pub about: &'static str,
    /// Seconds on two processors, in full and with quick sizes, for the time
    /// left.
    pub seconds: [f64; 2],
    /// Reads the capture of [`Setting::trace`].
    pub traced: bool,
    pub(crate) run: fn(&Setting) -> Result<Outcome>,
}

/// All experiments, in the order of the papers.
pub static ALL: [Experiment; 24] = [
    picture::EXPERIMENT,
    bound::EXPERIMENT,
    convexity::EXPERIMENT,
    single::EXPERIMENT,
    region::EXPERIMENT,
    rates::EXPERIMENT,
    trace::EXPERIMENT,
    budget::EXPERIMENT,
    partition::EXPERIMENT,
    variance::EXPERIMENT,
    largest::EXPERIMENT,
    memory::EXPERIMENT,
    speed::EXPERIMENT,
    rivals::EXPERIMENT,
    forty::EXPERIMENT,
    lines::EXPERIMENT,
    overload::EXPERIMENT,
    churn::EXPERIMENT,
    tail::EXPERIMENT,
    balanced_tinyset::EXPERIMENT,
    crisis::EXPERIMENT,
    summaries::EXPERIMENT,
    deletions::EXPERIMENT,
    misnamed::EXPERIMENT,
];

/// Papers, by their signs in [`Experiment::source`].
pub const PAPERS: [(&str, &str); 4] = [
    (
        "BBF",
        "Kanizo, Hay and Keslassy, Access-Efficient Balanced Bloom Filters",
    ),
    (
        "TS",
        "Einziger and Friedman, TinySet: An Access Efficient Self Adjusting \
         Bloom Filter Construction",
    ),
    (
        "SUM",
        "Kirsch and Mitzenmacher, Simple Summaries for Hashing with Multiple \
         Choices",
    ),
    ("MHT", "Broder and Karlin, Multilevel Adaptive Hashing"),
];

/// The experiment `name`.
///
/// ```
/// assert!(tamis_lab::experiment::find("none").is_none());
/// ```
pub fn find(name: &str) -> Option<&'static Experiment> {
    ALL.iter().find(|experiment| experiment.name == name)
}

/// Sizes and inputs of experiments.
///
/// ```
/// use tamis_lab::experiment::Setting;
/// assert!(Setting::quick().quick);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Setting {
    /// Smaller sizes, with wider intervals.
    pub quick: bool,
    /// Capture of packets, instead of the generated one.
    pub trace: Option<PathBuf>,
}

impl Setting {
    /// Quick sizes and the generated capture.
    ///
    /// ```
    /// use tamis_lab::experiment::Setting;
    /// assert!(Setting::quick().trace.is_none());
    /// ```
    pub fn quick() -> Self {
        Self { quick: true, trace: None }
    }

    /// `full`, or `quick` for quick sizes.
    fn size<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}
