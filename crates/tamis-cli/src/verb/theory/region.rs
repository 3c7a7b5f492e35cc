//! `tamis theory region`: Theorems 4 and 5.

use serde::Serialize;
use tamis_theory::{multilevel, sequential};

use super::plot::{self, Axis, Curve, Legend, Look};
use super::{Answer, Plot, Show, digits, shares, threshold};
use crate::failure::{Outcome, Result};

/// Theorems 4 and 5: the least overflow at which a scheme is optimal
///
/// SEQUENTIAL proposes d blocks of one array (Theorem 4), MULTILEVEL one
/// block in each of d levels of shrinking size (Theorem 5); a key goes into
/// the first that takes it. Each reaches the bound of Theorem 1 if at least
/// a certain share gamma of the keys may stay in no block. Prints that
/// boundary of the optimality region, with the threshold h = k0 and the
/// admission p that reach it. For MULTILEVEL it is gamma = q^d where
/// 1+q+...+q^(d-1) = a, whatever the load, with level shares
/// alpha_j = q^(j-1)/a.
#[derive(clap::Args)]
pub(super) struct Args {
    /// How the blocks of a key are chosen
    #[arg(long)]
    scheme: Scheme,

    /// a: average blocks read per insertion, 1 to d
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    access_budget: f64,

    /// r: keys per block
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    load: f64,

    /// d: blocks proposed per key, at least 2
    #[arg(long, value_name = "D")]
    choices: u32,

    #[command(flatten)]
    show: Show,

    #[command(flatten)]
    plot: Plot,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Scheme {
    /// d blocks of one array, Theorem 4
    Sequential,
    /// One block in each of d levels, Theorem 5
    Multilevel,
}

#[derive(Serialize)]
struct Report {
    threshold: Option<u32>,
    admission: f64,
    overflow_fraction: f64,
    level_shares: Vec<f64>,
}

impl Args {
    pub(super) fn run(&self) -> Result<Outcome> {
        let report = self.boundary(self.scheme, self.access_budget)?;
        self.plot.write(|| self.draw(&report))?;
        self.show.print(&report)
    }

    fn boundary(
        &self,
        scheme: Scheme,
        access_budget: f64,
    ) -> tamis_theory::Result<Report> {
        let (load, choices) = (self.load, self.choices);
        match scheme {
            Scheme::Sequential => {
                let run = sequential::optimal(access_budget, load, choices)?;
                Ok(Report {
                    threshold: run.threshold,
                    admission: run.admission,
                    overflow_fraction: run.overflow_fraction,
                    level_shares: Vec::new(),
                })
            }
            Scheme::Multilevel => {
                let (levels, bound) =
                    multilevel::optimal(access_budget, load, choices)?;
                Ok(Report {
                    threshold: bound.threshold(),
                    admission: bound.admission(),
                    overflow_fraction: levels.overflow_fraction,
                    level_shares: levels.level_shares,
                })
            }
        }
    }

    fn draw(&self, here: &Report) -> Result<String> {
        /// Points of each curve.
        const STEPS: u32 = 40;
        // A curve needs some width, and all reads of d blocks are too many
        // for a sequential scheme.
        let most = self.access_budget.max(1.05);
        let most = most.min(f64::from(self.choices) - 1e-3);
        let curve = |name: &str, scheme, colour| -> Result<Curve> {
            // Nothing overflows at one read, which no log scale shows.
            let points = (1..=STEPS)
                .map(|step| {
                    let part = f64::from(step) / f64::from(STEPS);
                    let a = 1.0 + (most - 1.0) * part;
                    Ok((a, self.boundary(scheme, a)?.overflow_fraction))
                })
                .collect::<Result<_>>()?;
            Ok(Curve { name: name.into(), look: Look::Line, colour, points })
        };
        let flat = curve("sequential", Scheme::Sequential, plot::VERMILION)?;
        let levels = curve("multilevel", Scheme::Multilevel, plot::BLUE)?;
        let asked = Curve {
            name: format!("{} reads per key", self.access_budget),
            look: Look::Dots,
            colour: plot::GREY,
            points: vec![(self.access_budget, here.overflow_fraction)],
        };
        let x = Axis::linear("reads per insertion, a");
        let y = Axis::log("least share of keys in no block, gamma");
        plot::draw(&x, &y, &[flat, levels, asked], Legend::Below)
    }
}

impl Answer for Report {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            ("threshold h", threshold(self.threshold)),
            ("admission p", digits(self.admission)),
            ("overflow fraction gamma", digits(self.overflow_fraction)),
        ];
        if !self.level_shares.is_empty() {
            rows.push(("level shares alpha", shares(&self.level_shares)));
        }
        rows
    }
}
