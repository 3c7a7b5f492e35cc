//! `tamis theory fpr`.

use serde::Serialize;
use tamis_theory::balanced::{Lookup, list};
use tamis_theory::tinyset::{Block, two_level::TwoLevel};
use tamis_theory::{MAX_PROBES, Prediction, blocked, split, standard};

use super::plot::{self, Axis, Curve, CurveStyle, Legend};
use super::tinyset::{AgingArgs, TinysetFields, TinysetModel};
use super::{PlotArgs, TheoryReport, digits, threshold};
use crate::failure::{Exit, Failure, Result};
use crate::report::JsonArgs;

/// Compute the false-positive rate and reads of a filter (Section 9.1)
///
/// The rate of a block is exact, E[(X/B)^k] over the X bits set in it, and
/// averaged over the block loads. The approximation of the paper for a block
/// with i keys, (1-e^{-ki/B})^k, is printed below it.
///
/// A block of a balanced filter (single, sequential, multilevel) has a
/// counter of ceil(log2(k0+2)) bits and T tracking bits, which record
/// refusals. The scheme works at the boundary of its optimality region
/// (Theorems 3 to 5). Rate and reads of a non-member are the sums of the
/// paper, E(P) FPR and E(P) = 1+F+...+F^(d-1), where F is the probability
/// that a block passes the lookup on. Two variants follow: a lookup that
/// stops at the first block that matches, and a lookup for which the coin p
/// is a hash of the key (without tracking bits). beta excludes the overflow
/// list.
///
/// tinyset stores fingerprints that share the bits of their block. Its rate
/// is 1-prod(1-p) over the entries of a block, which treats fingerprints as
/// independent; the paper sums p (its Section 4.3). With --cap and --ratio,
/// full blocks move a chain of keys to a second level, which beta includes.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Kind of filter
    #[arg(long)]
    scheme: FilterScheme,

    /// B: bits per block, a power of two except for tinyset; unused by bloom
    #[arg(long, value_name = "B", default_value_t = 512)]
    block_bits: u32,

    #[command(flatten)]
    memory: MemoryArgs,

    /// k: bits set per key, not for tinyset [default: the best number]
    #[arg(long, value_name = "K")]
    probes: Option<u32>,

    /// a: average blocks read per insertion, for sequential and multilevel
    /// [default: 1.2]
    #[arg(long, value_name = "A")]
    access_budget: Option<f64>,

    /// d: blocks proposed per key, for sequential and multilevel
    /// [default: 3]
    #[arg(long, value_name = "D")]
    choices: Option<u32>,

    /// gamma: share of keys in the overflow list, for single
    /// [default: 0.005]
    #[arg(long, value_name = "G")]
    overflow: Option<f64>,

    /// T: bits per block that record refusals, for single, sequential and
    /// multilevel [default: 0]
    #[arg(long, value_name = "T")]
    tracking_bits: Option<u32>,

    /// L: chains per block, for tinyset [default: B/8]
    #[arg(long, value_name = "L")]
    chains: Option<u32>,

    /// Filter with removals, in the padded form of the paper, for tinyset.
    /// The rate of `build --removable` is printed too
    #[arg(long, conflicts_with = "cap")]
    removable: bool,

    /// C: most keys of a first-level block, for tinyset of two levels
    #[arg(long, value_name = "C", requires = "ratio")]
    cap: Option<u32>,

    /// First-level blocks per second-level block, for tinyset of two levels
    #[arg(long, value_name = "N", requires = "cap")]
    ratio: Option<f64>,

    #[command(flatten)]
    aging: AgingArgs,

    #[command(flatten)]
    format: JsonArgs,

    #[command(flatten)]
    plot: PlotArgs,
}

/// Memory per key, given directly or as the load of a block.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct MemoryArgs {
    /// beta: memory in bits per key
    #[arg(long, value_name = "BETA")]
    bits_per_key: Option<f64>,

    /// r: keys per block, for tinyset
    #[arg(long, value_name = "R")]
    load: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum FilterScheme {
    /// Classic Bloom filter: probes anywhere
    Bloom,
    /// All probes in one block
    Blocked,
    /// Half of the probes in each of two blocks
    Split,
    /// Balanced: one block per key, Theorem 3
    Single,
    /// Balanced: d blocks of one array, Theorem 4
    Sequential,
    /// Balanced: one block in each of d levels, Theorem 5
    Multilevel,
    /// Fingerprints in one block
    Tinyset,
}

impl FilterScheme {
    fn name(self) -> &'static str {
        match self {
            FilterScheme::Bloom => "bloom",
            FilterScheme::Blocked => "blocked",
            FilterScheme::Split => "split",
            FilterScheme::Single => "single",
            FilterScheme::Sequential => "sequential",
            FilterScheme::Multilevel => "multilevel",
            FilterScheme::Tinyset => "tinyset",
        }
    }
}

/// Scheme with its parameters.
#[derive(Clone, Copy)]
enum FilterModel {
    Bloom,
    Blocked,
    Split,
    Balanced(list::Scheme, Lookup),
    Tinyset(TinysetModel),
}

#[derive(Serialize)]
struct FprReport {
    probes: u32,
    fpr: f64,
    fpr_paper_approximation: Option<f64>,
    reads_hit: f64,
    reads_miss: f64,
    overflow_fraction: f64,
    counter_bits: u32,
    threshold: Option<u32>,
    admission: Option<f64>,
    payload_bits: Option<u32>,
    list_reads: f64,
    #[serde(flatten)]
    balanced: Option<OtherLookups>,
    #[serde(flatten)]
    tinyset: Option<TinysetFields>,
}

/// Rates and reads of the lookup variants of balanced filters.
#[derive(Serialize)]
struct OtherLookups {
    fpr_first_match: f64,
    reads_miss_first_match: f64,
    fpr_coin: f64,
    reads_miss_coin: f64,
}

impl Args {
    pub(super) fn run(&self) -> Result<Exit> {
        let model = self.model()?;
        let report = self.report(model)?;
        self.plot.write(|| self.draw(model, &report))?;
        report.print(&self.format)
    }

    fn model(&self) -> Result<FilterModel> {
        use FilterScheme::{
            Blocked, Bloom, Multilevel, Sequential, Single, Split, Tinyset,
        };

        let scheme = self.scheme;
        let walks = matches!(scheme, Sequential | Multilevel);
        let refuses = walks || scheme == Single;
        let tiny = scheme == Tinyset;
        const WALKS: &str = "sequential and multilevel";
        const REFUSES: &str = "single, sequential and multilevel";
        const TINY: &str = "tinyset";
        const BITS: &str =
            "bloom, blocked, split, single, sequential and multilevel";
        let budget = self.access_budget.is_some();
        let tracking = self.tracking_bits.is_some();
        // An option without effect on the scheme is an error.
        for (given, fits, option, kinds) in [
            (budget, walks, "--access-budget", WALKS),
            (self.choices.is_some(), walks, "--choices", WALKS),
            (
                self.overflow.is_some(),
                scheme == Single,
                "--overflow",
                "single",
            ),
            (tracking, refuses, "--tracking-bits", REFUSES),
            (self.memory.load.is_some(), tiny, "--load", TINY),
            (self.chains.is_some(), tiny, "--chains", TINY),
            (self.removable, tiny, "--removable", TINY),
            (self.cap.is_some(), tiny, "--cap", TINY),
            (self.probes.is_some(), !tiny, "--probes", BITS),
        ] {
            if given && !fits {
                return Err(Failure::new(format_args!(
                    "{option} is for --scheme {kinds}, not {}",
                    scheme.name()
                )));
            }
        }
        let access_budget = self.access_budget.unwrap_or(1.2);
        let choices = self.choices.unwrap_or(3);
        let scheme = match scheme {
            Bloom => return Ok(FilterModel::Bloom),
            Blocked => return Ok(FilterModel::Blocked),
            Split => return Ok(FilterModel::Split),
            Tinyset => return Ok(FilterModel::Tinyset(self.tinyset())),
            Single => list::Scheme::Single {
                overflow_fraction: self.overflow.unwrap_or(0.005),
            },
            Sequential => list::Scheme::Sequential { access_budget, choices },
            Multilevel => list::Scheme::Multilevel { access_budget, choices },
        };
        let lookup = match self.tracking_bits {
            None | Some(0) => Lookup::Plain,
            Some(bits) => Lookup::Tracking(bits),
        };
        Ok(FilterModel::Balanced(scheme, lookup))
    }

    fn tinyset(&self) -> TinysetModel {
        let chains = self.chains.unwrap_or(self.block_bits / 8);
        let block = Block::new(self.block_bits, chains);
        match (self.cap, self.ratio) {
            (Some(cap), Some(ratio)) => {
                TinysetModel::Two(TwoLevel { block, cap, ratio })
            }
            // The form of the paper pads entries and has no flag bits.
            _ if self.removable => {
                TinysetModel::One(Block { wildcard: true, ..block })
            }
            _ => TinysetModel::One(block),
        }
    }

    /// Bits per key, given or computed from the load.
    fn beta(&self, model: FilterModel) -> f64 {
        match (self.memory.bits_per_key, self.memory.load, model) {
            (Some(beta), _, _) => beta,
            // Load and bits per key are inversely proportional.
            (None, Some(load), FilterModel::Tinyset(tiny)) => tiny.load(load),
            // clap requires one of the two, `model` tinyset for a load.
            _ => f64::NAN,
        }
    }

    fn report(&self, model: FilterModel) -> Result<FprReport> {
        let (bits, beta) = (self.block_bits, self.beta(model));
        let simple = |prediction: Prediction| FprReport {
            probes: prediction.probes,
            fpr: prediction.fpr,
            fpr_paper_approximation: None,
            reads_hit: prediction.reads_hit,
            reads_miss: prediction.reads_miss,
            overflow_fraction: 0.0,
            counter_bits: 0,
            threshold: None,
            admission: None,
            payload_bits: Some(bits),
            list_reads: 0.0,
            balanced: None,
            tinyset: None,
        };
        let (scheme, lookup) = match model {
            FilterModel::Bloom => {
                let report = simple(self.standard(beta)?);
                return Ok(FprReport {
                    fpr_paper_approximation: Some(report.fpr),
                    payload_bits: None,
                    ..report
                });
            }
            FilterModel::Blocked => {
                let report = simple(self.blocked(beta)?);
                // A blocked filter is a balanced one that refuses no key.
                let none = list::Scheme::Single { overflow_fraction: 0.0 };
                let same = list::predict(
                    bits,
                    beta,
                    none,
                    Lookup::Plain,
                    report.probes,
                )?;
                return Ok(FprReport {
                    fpr_paper_approximation: Some(same.approximate_fpr),
                    ..report
                });
            }
            FilterModel::Split => return Ok(simple(self.split(beta)?)),
            FilterModel::Tinyset(tiny) => {
                let load = match self.memory.load {
                    Some(load) => load,
                    None => tiny.checked_load(beta)?,
                };
                let prediction = tiny.predict(load)?;
                let fields = tiny.fields(load, &prediction, self.aging)?;
                return Ok(FprReport {
                    fpr_paper_approximation: fields.union(),
                    payload_bits: Some(tiny.array_bits()),
                    tinyset: Some(fields),
                    ..simple(prediction)
                });
            }
            FilterModel::Balanced(scheme, lookup) => (scheme, lookup),
        };
        let listed = self.listed(beta, scheme, lookup)?;
        let probes = listed.summed.probes;
        let coin = list::predict(bits, beta, scheme, Lookup::Coin, probes)?;
        Ok(FprReport {
            fpr_paper_approximation: Some(listed.approximate_fpr),
            overflow_fraction: listed.overflow_fraction,
            counter_bits: listed.counter_bits,
            threshold: listed.threshold,
            admission: Some(listed.admission),
            payload_bits: Some(listed.payload_bits),
            list_reads: listed.summed_list_reads,
            balanced: Some(OtherLookups {
                fpr_first_match: listed.prediction.fpr,
                reads_miss_first_match: listed.prediction.reads_miss,
                fpr_coin: coin.summed.fpr,
                reads_miss_coin: coin.summed.reads_miss,
            }),
            ..simple(listed.summed)
        })
    }

    fn standard(&self, beta: f64) -> tamis_theory::Result<Prediction> {
        match self.probes {
            Some(probes) => standard::predict(beta, probes),
            None => standard::best(beta),
        }
    }

    fn blocked(&self, beta: f64) -> tamis_theory::Result<Prediction> {
        match self.probes {
            Some(probes) => blocked::predict(self.block_bits, beta, probes),
            None => blocked::best(self.block_bits, beta),
        }
    }

    fn split(&self, beta: f64) -> tamis_theory::Result<Prediction> {
        match self.probes {
            Some(probes) => split::predict(self.block_bits, beta, probes),
            None => split::best(self.block_bits, beta),
        }
    }

    fn listed(
        &self,
        beta: f64,
        scheme: list::Scheme,
        lookup: Lookup,
    ) -> tamis_theory::Result<list::Listed> {
        let at = |probes| {
            list::predict(self.block_bits, beta, scheme, lookup, probes)
        };
        if let Some(probes) = self.probes {
            return at(probes);
        }
        // `list::best` minimises the rate of a lookup that stops at the
        // first match. The minimum of the paper's sums is close to it.
        let mut best = list::best(self.block_bits, beta, scheme, lookup)?;
        for step in [-1, 1] {
            loop {
                let next = best.summed.probes.saturating_add_signed(step);
                if !(1..=MAX_PROBES).contains(&next) {
                    break;
                }
                let other = at(next)?;
                if other.summed.fpr >= best.summed.fpr {
                    break;
                }
                best = other;
            }
        }
        Ok(best)
    }

    fn draw(&self, model: FilterModel, here: &FprReport) -> Result<String> {
        let beta = self.beta(model);
        let (least, most) = (beta.min(8.0), beta.max(40.0));
        // One step per bit from 8 to 40.
        const STEPS: u32 = 32;
        let betas: Vec<f64> = (0..=STEPS)
            .map(|step| {
                let part = f64::from(step) / f64::from(STEPS);
                least + (most - least) * part
            })
            .collect();
        let name = |scheme: FilterScheme| match self.probes {
            _ if scheme == FilterScheme::Tinyset => scheme.name().into(),
            Some(probes) => format!("{}, {probes} probes", scheme.name()),
            None => format!("{}, best probes", scheme.name()),
        };
        let rate = |beta: f64| -> tamis_theory::Result<f64> {
            Ok(match model {
                FilterModel::Bloom => self.standard(beta)?.fpr,
                FilterModel::Blocked => self.blocked(beta)?.fpr,
                FilterModel::Split => self.split(beta)?.fpr,
                FilterModel::Balanced(scheme, lookup) => {
                    self.listed(beta, scheme, lookup)?.summed.fpr
                }
                FilterModel::Tinyset(tiny) => {
                    tiny.predict(tiny.load(beta))?.fpr
                }
            })
        };
        // Counters of balanced filters grow as memory shrinks and finally
        // fill the block. The curve begins where a design exists.
        let points = |rate: &dyn Fn(f64) -> tamis_theory::Result<f64>| {
            let point = |beta: &f64| Some((*beta, rate(*beta).ok()?));
            betas.iter().filter_map(point).collect::<Vec<_>>()
        };
        let mut curves = Vec::new();
        if self.scheme != FilterScheme::Blocked {
            curves.push(Curve {
                name: name(self.scheme),
                style: CurveStyle::Line,
                colour: plot::VERMILION,
                points: points(&rate),
            });
        }
        curves.push(Curve {
            name: name(FilterScheme::Blocked),
            style: CurveStyle::Line,
            colour: plot::BLUE,
            points: points(&|beta| Ok(self.blocked(beta)?.fpr)),
        });
        curves.push(Curve {
            name: format!("{} bits per key", digits(beta)),
            style: CurveStyle::Dots,
            colour: plot::GREY,
            points: vec![(beta, here.fpr)],
        });
        let x = Axis::linear("bits per key");
        let y = Axis::log("false-positive rate");
        plot::draw(&x, &y, &curves, Legend::Above)
    }
}

impl TheoryReport for FprReport {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let or_none =
            |value: Option<f64>| value.map_or_else(|| "-".into(), digits);
        let mut rows = Vec::new();
        if self.tinyset.is_none() {
            rows.push(("probes k", self.probes.to_string()));
        }
        rows.extend([
            ("false-positive rate", digits(self.fpr)),
            (
                "  by the paper's approximation",
                or_none(self.fpr_paper_approximation),
            ),
            ("reads of a member", digits(self.reads_hit)),
            ("reads of a non-member", digits(self.reads_miss)),
        ]);
        if let Some(fields) = &self.tinyset {
            rows.extend(fields.rows());
        }
        let Some(others) = &self.balanced else { return rows };
        rows.extend([
            (
                "  stopping at the first match",
                digits(others.reads_miss_first_match),
            ),
            ("    false-positive rate", digits(others.fpr_first_match)),
            ("  with the coin hashed", digits(others.reads_miss_coin)),
            ("    false-positive rate", digits(others.fpr_coin)),
            ("threshold h", threshold(self.threshold)),
            ("admission p", or_none(self.admission)),
            ("overflow fraction gamma", digits(self.overflow_fraction)),
            ("non-members reading the list", digits(self.list_reads)),
            ("counter bits per block", self.counter_bits.to_string()),
        ]);
        if let Some(bits) = self.payload_bits {
            rows.push(("filter bits per block", bits.to_string()));
        }
        rows
    }
}
