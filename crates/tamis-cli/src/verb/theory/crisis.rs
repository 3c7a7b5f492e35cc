//! `tamis theory crisis`.

use serde::Serialize;
use tamis_theory::crisis::{self, Occupancy};

use super::{TableArgs, TheoryReport, digits, digits_list};
use crate::failure::{Exit, Failure, Result};
use crate::report::JsonArgs;

/// Compute the probability that a multilevel hash table overflows
///
/// A table has d levels of m_1, ..., m_d buckets of H entries. An item goes
/// to the first level whose bucket for it has a free entry; a crisis is an
/// item whose d buckets are all full. Prints the exact probability of a
/// crisis with N items, the estimate L_d that assumes every level at its
/// average load (hundreds of times too low when the last levels are tiny),
/// and the mean number of items per level. With --churn also prints crises
/// per turnover and mean level loads in the steady state of random
/// replacement, by Erlang's loss formula. With --quota Q also prints them for
/// the paper's lazy deletion, in which removed items keep their entries until
/// Q N of them cause a rebuild.
///
/// Symbols are those of Kirsch and Mitzenmacher, "Simple Summaries for
/// Hashing with Multiple Choices".
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    table: TableArgs,

    /// m_1,...,m_d: buckets of each level
    #[arg(
        long,
        value_name = "M,M,...",
        value_delimiter = ',',
        required = true
    )]
    levels: Vec<u64>,

    /// Also compute the steady state of random replacement
    #[arg(long)]
    churn: bool,

    /// Removed items that keep their entries until a rebuild, as a share of N
    #[arg(long, value_name = "Q")]
    quota: Option<f64>,

    #[command(flatten)]
    format: JsonArgs,
}

#[derive(Serialize)]
struct CrisisReport {
    crisis: f64,
    heuristic: f64,
    level_items: Vec<f64>,
    #[serde(flatten)]
    churn: Option<ChurnFields>,
    #[serde(flatten)]
    lazy: Option<LazyFields>,
}

#[derive(Serialize)]
struct LazyFields {
    crisis_per_rebuild: f64,
    lazy_crises_per_turnover: f64,
    lazy_level_slots: Vec<f64>,
}

#[derive(Serialize)]
struct ChurnFields {
    crises_per_turnover: f64,
    churn_level_items: Vec<f64>,
}

impl Args {
    pub(super) fn run(&self) -> Result<Exit> {
        let (TableArgs { items, bucket }, levels) = (self.table, &self.levels);
        let table = Occupancy::new(items, levels, bucket)?;
        let averages = crisis::heuristic(items, levels, bucket)?;
        let churn = self
            .churn
            .then(|| crisis::churn(items, levels, bucket))
            .transpose()?;
        let lazy = match self.quota {
            None => None,
            Some(share) if (0.0..=100.0).contains(&share) => {
                // Items are at most 10^10.
                let quota = (share * items as f64) as u64;
                Some(crisis::lazy(items, levels, bucket, quota)?)
            }
            Some(_) => {
                return Err(Failure::new("--quota: expected 0 to 100"));
            }
        };
        let report = CrisisReport {
            crisis: table.crisis(),
            heuristic: averages.last().copied().unwrap_or(0.0),
            level_items: table.level_items(),
            churn: churn.map(|used| ChurnFields {
                crises_per_turnover: used.crises_per_turnover,
                churn_level_items: used.level_items(),
            }),
            lazy: lazy.map(|lazy| LazyFields {
                crisis_per_rebuild: lazy.crisis_per_rebuild,
                lazy_crises_per_turnover: lazy.crises_per_turnover,
                lazy_level_slots: lazy.level_slots,
            }),
        };
        report.print(&self.format)
    }
}

impl TheoryReport for CrisisReport {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            ("probability of a crisis", digits(self.crisis)),
            ("estimate L_d from averages", digits(self.heuristic)),
            ("items per level N_j", digits_list(&self.level_items)),
        ];
        if let Some(churn) = &self.churn {
            let crises = digits(churn.crises_per_turnover);
            rows.push(("crises per turnover, churn", crises));
            let items = digits_list(&churn.churn_level_items);
            rows.push(("items per level, churn", items));
        }
        if let Some(lazy) = &self.lazy {
            let crisis = digits(lazy.crisis_per_rebuild);
            rows.push(("probability of a crisis per rebuild, lazy", crisis));
            let crises = digits(lazy.lazy_crises_per_turnover);
            rows.push(("crises per turnover, lazy", crises));
            let slots = digits_list(&lazy.lazy_level_slots);
            rows.push(("slots per level before a rebuild, lazy", slots));
        }
        rows
    }
}
