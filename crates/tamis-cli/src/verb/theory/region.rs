//! `tamis theory region`.

use serde::Serialize;
use tamis_theory::{multilevel, sequential};

use super::plot::{self, Axis, Curve, CurveStyle, Legend};
use super::{
    BalanceArgs, PlotArgs, TheoryReport, digits, digits_list, threshold,
};
use crate::failure::{Exit, Result};
use crate::report::JsonArgs;

/// Compute the least overflow at which a scheme is optimal (Theorems 4, 5)
///
/// SEQUENTIAL proposes d blocks of one array (Theorem 4), MULTILEVEL one
/// block in each of d levels of decreasing size (Theorem 5); a key goes into
/// the first block that accepts it. Each scheme reaches the bound of Theorem
/// 1 if at least a share gamma of the keys may be in no block. Prints the
/// smallest gamma, with the threshold h = k0 and the admission p that reach
/// it. For MULTILEVEL it is gamma = q^d where 1+q+...+q^(d-1) = a,
/// independent of the load, with level shares alpha_j = q^(j-1)/a. a is
/// from 1 to d.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Scheme that proposes blocks
    #[arg(long)]
    scheme: RegionScheme,

    #[command(flatten)]
    balance: BalanceArgs,

    /// d: blocks proposed per key, at least 2
    #[arg(long, value_name = "D")]
    choices: u32,

    #[command(flatten)]
    format: JsonArgs,

    #[command(flatten)]
    plot: PlotArgs,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum RegionScheme {
    /// d blocks of one array, Theorem 4
    Sequential,
    /// One block in each of d levels, Theorem 5
    Multilevel,
}

#[derive(Serialize)]
struct RegionReport {
    threshold: Option<u32>,
    admission: f64,
    overflow_fraction: f64,
    level_shares: Vec<f64>,
}

impl Args {
    pub(super) fn run(&self) -> Result<Exit> {
        let access_budget = self.balance.access_budget;
        let report = self.boundary(self.scheme, access_budget)?;
        self.plot.write(|| self.draw(&report))?;
        report.print(&self.format)
    }

    fn boundary(
        &self,
        scheme: RegionScheme,
        access_budget: f64,
    ) -> tamis_theory::Result<RegionReport> {
        let (load, choices) = (self.balance.load, self.choices);
        match scheme {
            RegionScheme::Sequential => {
                let run = sequential::optimal(access_budget, load, choices)?;
                Ok(RegionReport {
                    threshold: run.threshold,
                    admission: run.admission,
                    overflow_fraction: run.overflow_fraction,
                    level_shares: Vec::new(),
                })
            }
            RegionScheme::Multilevel => {
                let (levels, bound) =
                    multilevel::optimal(access_budget, load, choices)?;
                Ok(RegionReport {
                    threshold: bound.threshold(),
                    admission: bound.admission(),
                    overflow_fraction: levels.overflow_fraction,
                    level_shares: levels.level_shares,
                })
            }
        }
    }

    fn draw(&self, here: &RegionReport) -> Result<String> {
        /// Points of each curve.
        const STEPS: u32 = 40;
        // At least 1.05 for a visible curve. Below d: the sequential scheme
        // is undefined at a = d.
        let access_budget = self.balance.access_budget;
        let most = access_budget.max(1.05);
        let most = most.min(f64::from(self.choices) - 1e-3);
        let curve = |name: &str, scheme, colour| -> Result<Curve> {
            // From step 1: gamma is 0 at a = 1, which a log scale cannot
            // show.
            let points = (1..=STEPS)
                .map(|step| {
                    let part = f64::from(step) / f64::from(STEPS);
                    let a = 1.0 + (most - 1.0) * part;
                    Ok((a, self.boundary(scheme, a)?.overflow_fraction))
                })
                .collect::<Result<_>>()?;
            Ok(Curve {
                name: name.into(),
                style: CurveStyle::Line,
                colour,
                points,
            })
        };
        let flat =
            curve("sequential", RegionScheme::Sequential, plot::VERMILION)?;
        let levels =
            curve("multilevel", RegionScheme::Multilevel, plot::BLUE)?;
        let given = Curve {
            name: format!("{access_budget} reads per key"),
            style: CurveStyle::Dots,
            colour: plot::GREY,
            points: vec![(access_budget, here.overflow_fraction)],
        };
        let x = Axis::linear("reads per insertion, a");
        let y = Axis::log("least share of keys in no block, gamma");
        plot::draw(&x, &y, &[flat, levels, given], Legend::Below)
    }
}

impl TheoryReport for RegionReport {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            ("threshold h", threshold(self.threshold)),
            ("admission p", digits(self.admission)),
            ("overflow fraction gamma", digits(self.overflow_fraction)),
        ];
        if !self.level_shares.is_empty() {
            rows.push(("level shares alpha", digits_list(&self.level_shares)));
        }
        rows
    }
}
