//! `tamis theory fpr`: what a filter of given geometry does.

use serde::Serialize;
use tamis_theory::balanced::{Lookup, list};
use tamis_theory::tinyset::{Block, two_level::TwoLevel};
use tamis_theory::{MAX_PROBES, Prediction, blocked, split, standard};

use super::plot::{self, Axis, Curve, Legend, Look};
use super::tinyset::{Facts, Tinyset, Use};
use super::{Answer, Plot, Show, digits, threshold};
use crate::failure::{Failure, Outcome, Result};

/// Section 9.1: false-positive rate and reads of a filter
///
/// The rate of a block is exact, E[(X/B)^k] over the X bits set in it, and
/// averaged over the block loads. The paper's own approximation of a block
/// with i keys, (1-e^{-ki/B})^k, is printed beside it.
///
/// A block of a balanced filter (single, sequential, multilevel) spends
/// ceil(log2(k0+2)) bits on a counter, and T on remembering refusals. The
/// scheme works at the boundary of its optimality region (Theorems 3 to 5).
/// Rate and reads of a non-member are the paper's sums E(P) FPR and
/// E(P) = 1+F+...+F^(d-1), F the chance that a block makes it go on; those
/// of a lookup that stops at the first "maybe" follow, and those where the
/// coin p is a hash of the key (without tracking bits). The overflow list is
/// not counted in beta.
///
/// tinyset keeps fingerprints that share the bits of their block. Its rate is
/// exact too, 1-prod(1-p) over the entries of a block; the paper adds up p
/// (its Section 4.3). With --cap and --ratio, full blocks move a chain of
/// keys to a second level, which beta includes.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The kind of filter
    #[arg(long)]
    scheme: Scheme,

    /// B: bits of a block, a power of two except for tinyset (bloom has no
    /// blocks)
    #[arg(long, value_name = "B", default_value_t = 512)]
    block_bits: u32,

    /// beta: memory per key
    #[arg(
        long,
        value_name = "BETA",
        allow_negative_numbers = true,
        required_unless_present = "load"
    )]
    bits_per_key: Option<f64>,

    /// r: keys per block instead of beta, for tinyset
    #[arg(
        long,
        value_name = "R",
        allow_negative_numbers = true,
        conflicts_with = "bits_per_key"
    )]
    load: Option<f64>,

    /// k: bits set per key [default: the best number]
    #[arg(long, value_name = "K")]
    probes: Option<u32>,

    /// a: average blocks read per insertion, for sequential and multilevel
    /// [default: 1.2]
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    access_budget: Option<f64>,

    /// d: blocks proposed per key, for sequential and multilevel
    /// [default: 3]
    #[arg(long, value_name = "D")]
    choices: Option<u32>,

    /// gamma: share of keys in the list, for single [default: 0.005]
    #[arg(long, value_name = "G", allow_negative_numbers = true)]
    overflow: Option<f64>,

    /// Bits of each block that remember refusals, for balanced filters
    /// [default: 0]
    #[arg(long, value_name = "T")]
    tracking_bits: Option<u32>,

    /// L: chains of a block, for tinyset [default: B/8]
    #[arg(long, value_name = "L")]
    chains: Option<u32>,

    /// Keys can be removed, for tinyset: the paper's padded form. What
    /// `build --removable` makes is shown beside it.
    #[arg(long, conflicts_with = "cap")]
    removable: bool,

    /// C: keys that a block keeps to itself, for tinyset
    #[arg(long, value_name = "C", requires = "ratio")]
    cap: Option<u32>,

    /// Blocks for each block of the second level, for tinyset
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        requires = "cap"
    )]
    ratio: Option<f64>,

    /// Keys replaced at random since it was filled, in multiples of all
    #[arg(
        long,
        value_name = "X",
        allow_negative_numbers = true,
        requires = "removable"
    )]
    replaced: Option<f64>,

    /// Times it was doubled when filled, and filled up again
    #[arg(long, value_name = "G", requires = "removable")]
    doublings: Option<u32>,

    #[command(flatten)]
    show: Show,

    #[command(flatten)]
    plot: Plot,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Scheme {
    /// The classic filter: probes anywhere
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

impl Scheme {
    fn name(self) -> &'static str {
        match self {
            Scheme::Bloom => "bloom",
            Scheme::Blocked => "blocked",
            Scheme::Split => "split",
            Scheme::Single => "single",
            Scheme::Sequential => "sequential",
            Scheme::Multilevel => "multilevel",
            Scheme::Tinyset => "tinyset",
        }
    }
}

/// The scheme with all its numbers.
#[derive(Clone, Copy)]
enum Design {
    Bloom,
    Blocked,
    Split,
    Balanced(list::Scheme, Lookup),
    Tinyset(Tinyset),
}

#[derive(Serialize)]
struct Report {
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
    balanced: Option<Others>,
    #[serde(flatten)]
    tinyset: Option<Facts>,
}

/// Lookups other than the paper's, for the filters where they differ.
#[derive(Serialize)]
struct Others {
    fpr_first_match: f64,
    reads_miss_first_match: f64,
    fpr_coin: f64,
    reads_miss_coin: f64,
}

impl Args {
    pub(super) fn run(&self) -> Result<Outcome> {
        let design = self.design()?;
        let report = self.report(design)?;
        self.plot.write(|| self.draw(design, &report))?;
        self.show.print(&report)
    }

    fn design(&self) -> Result<Design> {
        use Scheme::{
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
        // A number that changes nothing was meant for something else.
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
            (self.load.is_some(), tiny, "--load", TINY),
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
            Bloom => return Ok(Design::Bloom),
            Blocked => return Ok(Design::Blocked),
            Split => return Ok(Design::Split),
            Tinyset => return Ok(Design::Tinyset(self.tinyset())),
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
        Ok(Design::Balanced(scheme, lookup))
    }

    fn tinyset(&self) -> Tinyset {
        let chains = self.chains.unwrap_or(self.block_bits / 8);
        let block = Block::new(self.block_bits, chains);
        match (self.cap, self.ratio) {
            (Some(cap), Some(ratio)) => {
                Tinyset::Two(TwoLevel { block, cap, ratio })
            }
            // The paper's form, which sets no bit aside and pads.
            _ if self.removable => {
                Tinyset::One(Block { wildcard: true, ..block })
            }
            _ => Tinyset::One(block),
        }
    }

    /// Bits per key, given or implied.
    fn beta(&self, design: Design) -> f64 {
        match (self.bits_per_key, self.load, design) {
            (Some(beta), _, _) => beta,
            // The two are inversely proportional.
            (None, Some(load), Design::Tinyset(tiny)) => tiny.load(load),
            // The arguments ask for one of the two.
            _ => f64::NAN,
        }
    }

    fn report(&self, design: Design) -> Result<Report> {
        let (bits, beta) = (self.block_bits, self.beta(design));
        let simple = |prediction: Prediction| Report {
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
        let (scheme, lookup) = match design {
            Design::Bloom => {
                let report = simple(self.standard(beta)?);
                return Ok(Report {
                    fpr_paper_approximation: Some(report.fpr),
                    payload_bits: None,
                    ..report
                });
            }
            Design::Blocked => {
                let report = simple(self.blocked(beta)?);
                // A balanced filter that refuses nothing.
                let none = list::Scheme::Single { overflow_fraction: 0.0 };
                let same = list::predict(
                    bits,
                    beta,
                    none,
                    Lookup::Plain,
                    report.probes,
                )?;
                return Ok(Report {
                    fpr_paper_approximation: Some(same.approximate_fpr),
                    ..report
                });
            }
            Design::Split => return Ok(simple(self.split(beta)?)),
            Design::Tinyset(tiny) => {
                let load = match self.load {
                    Some(load) => load,
                    None => tiny.checked_load(beta)?,
                };
                let prediction = tiny.predict(load)?;
                let Args { replaced, doublings, .. } = *self;
                let later = Use { replaced, doublings };
                let facts = tiny.facts(load, &prediction, later)?;
                return Ok(Report {
                    fpr_paper_approximation: facts.union(),
                    payload_bits: Some(tiny.array_bits()),
                    tinyset: Some(facts),
                    ..simple(prediction)
                });
            }
            Design::Balanced(scheme, lookup) => (scheme, lookup),
        };
        let listed = self.listed(beta, scheme, lookup)?;
        let probes = listed.summed.probes;
        let coin = list::predict(bits, beta, scheme, Lookup::Coin, probes)?;
        Ok(Report {
            fpr_paper_approximation: Some(listed.approximate_fpr),
            overflow_fraction: listed.overflow_fraction,
            counter_bits: listed.counter_bits,
            threshold: listed.threshold,
            admission: Some(listed.admission),
            payload_bits: Some(listed.payload_bits),
            list_reads: listed.summed_list_reads,
            balanced: Some(Others {
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
        // The best for a lookup that stops at the first "maybe" is next to
        // the best for the paper's sums, if not the same.
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

    fn draw(&self, design: Design, here: &Report) -> Result<String> {
        let beta = self.beta(design);
        let (least, most) = (beta.min(8.0), beta.max(40.0));
        // Every bit per key from 8 to 40.
        const STEPS: u32 = 32;
        let betas: Vec<f64> = (0..=STEPS)
            .map(|step| {
                let part = f64::from(step) / f64::from(STEPS);
                least + (most - least) * part
            })
            .collect();
        let name = |scheme: Scheme| match self.probes {
            _ if scheme == Scheme::Tinyset => scheme.name().into(),
            Some(probes) => format!("{}, {probes} probes", scheme.name()),
            None => format!("{}, best probes", scheme.name()),
        };
        let rate = |beta: f64| -> tamis_theory::Result<f64> {
            Ok(match design {
                Design::Bloom => self.standard(beta)?.fpr,
                Design::Blocked => self.blocked(beta)?.fpr,
                Design::Split => self.split(beta)?.fpr,
                Design::Balanced(scheme, lookup) => {
                    self.listed(beta, scheme, lookup)?.summed.fpr
                }
                Design::Tinyset(tiny) => tiny.predict(tiny.load(beta))?.fpr,
            })
        };
        // Counters grow where there is less memory, until they leave no
        // room: the curve begins where they do.
        let points = |rate: &dyn Fn(f64) -> tamis_theory::Result<f64>| {
            let known = |beta: &f64| Some((*beta, rate(*beta).ok()?));
            betas.iter().filter_map(known).collect::<Vec<_>>()
        };
        let mut curves = Vec::new();
        if self.scheme != Scheme::Blocked {
            curves.push(Curve {
                name: name(self.scheme),
                look: Look::Line,
                colour: plot::VERMILION,
                points: points(&rate),
            });
        }
        curves.push(Curve {
            name: name(Scheme::Blocked),
            look: Look::Line,
            colour: plot::BLUE,
            points: points(&|beta| Ok(self.blocked(beta)?.fpr)),
        });
        curves.push(Curve {
            name: format!("{} bits per key", digits(beta)),
            look: Look::Dots,
            colour: plot::GREY,
            points: vec![(beta, here.fpr)],
        });
        let x = Axis::linear("bits per key");
        let y = Axis::log("false-positive rate");
        plot::draw(&x, &y, &curves, Legend::Above)
    }
}

impl Answer for Report {
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
        if let Some(facts) = &self.tinyset {
            rows.extend(facts.rows());
        }
        let Some(others) = &self.balanced else { return rows };
        rows.extend([
            ("  that stops at a maybe", digits(others.reads_miss_first_match)),
            ("    false-positive rate", digits(others.fpr_first_match)),
            ("  that knows the coin", digits(others.reads_miss_coin)),
            ("    false-positive rate", digits(others.fpr_coin)),
            ("threshold h", threshold(self.threshold)),
            ("admission p", or_none(self.admission)),
            ("overflow fraction gamma", digits(self.overflow_fraction)),
            ("non-members that read the list", digits(self.list_reads)),
            ("counter bits of a block", self.counter_bits.to_string()),
        ]);
        if let Some(bits) = self.payload_bits {
            rows.push(("filter bits of a block", bits.to_string()));
        }
        rows
    }
}
