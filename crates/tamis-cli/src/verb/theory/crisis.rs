//! `tamis theory crisis`: how full the levels of a hash table get.

use serde::Serialize;
use tamis_theory::crisis::{self, Occupancy};

use super::{Answer, Show, digits, shares};
use crate::failure::{Outcome, Result};
use crate::verb::parse_items;

/// Multilevel hash tables: the chance that an item finds no room
///
/// A table has d levels of m_1, ..., m_d buckets of H entries; an item goes
/// to the first level whose bucket for it has room. Prints the exact chance
/// that N items lead to a crisis, where all buckets of some item are full,
/// the estimate that takes every level at its average (L_d, hundreds of times
/// too low when the last levels are tiny), and the mean number of items in
/// each level. With --churn also what remains after items were replaced for
/// long: Erlang's loss formula.
///
/// Symbols are those of Kirsch and Mitzenmacher, "Simple Summaries for
/// Hashing with Multiple Choices".
#[derive(clap::Args)]
pub(super) struct Args {
    /// n: items in the table
    #[arg(long, value_name = "N", value_parser = parse_items)]
    items: u64,

    /// m_1,...,m_d: buckets of each level
    #[arg(
        long,
        value_name = "M,M,...",
        value_delimiter = ',',
        required = true
    )]
    levels: Vec<u64>,

    /// h: entries of a bucket
    #[arg(long, value_name = "H", default_value_t = 1)]
    bucket: u32,

    /// Also for a table whose items are replaced for ever
    #[arg(long)]
    churn: bool,

    #[command(flatten)]
    show: Show,
}

#[derive(Serialize)]
struct Report {
    crisis: f64,
    heuristic: f64,
    level_items: Vec<f64>,
    #[serde(flatten)]
    churn: Option<Churn>,
}

#[derive(Serialize)]
struct Churn {
    crises_per_turnover: f64,
    churn_level_items: Vec<f64>,
}

impl Args {
    pub(super) fn run(&self) -> Result<Outcome> {
        let Self { items, ref levels, bucket, .. } = *self;
        let table = Occupancy::new(items, levels, bucket)?;
        let averages = crisis::heuristic(items, levels, bucket)?;
        let churn = self
            .churn
            .then(|| crisis::churn(items, levels, bucket))
            .transpose()?;
        self.show.print(&Report {
            crisis: table.crisis(),
            heuristic: averages.last().copied().unwrap_or(0.0),
            level_items: table.level_items(),
            churn: churn.map(|used| Churn {
                crises_per_turnover: used.crises_per_turnover,
                churn_level_items: used.level_items(),
            }),
        })
    }
}

impl Answer for Report {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            ("chance of a crisis", digits(self.crisis)),
            ("heuristic L_d", digits(self.heuristic)),
            ("items in each level N_j", shares(&self.level_items)),
        ];
        if let Some(churn) = &self.churn {
            let crises = digits(churn.crises_per_turnover);
            rows.push(("crises per turnover, churn", crises));
            let items = shares(&churn.churn_level_items);
            rows.push(("items in each level, churn", items));
        }
        rows
    }
}
