//! `tamis theory bound`: Theorem 1.

use serde::Serialize;
use tamis_theory::bound::Bound;

use super::plot::{self, Axis, Curve, Legend, Look};
use super::{Answer, Plot, Show, digits, threshold};
use crate::failure::{Outcome, Result};

/// Theorem 1: the best balance any online scheme reaches
///
/// With a reads per key, r keys per block and a share gamma of the keys in
/// no block, no scheme ends with block loads of lower cost than P_LB of (4),
/// for any convex cost. Prints that distribution, its threshold k0 of (3)
/// (the largest with E(N-k0)^+ > (a-1+gamma) r, N Poisson of mean a r), the
/// admission p with which the schemes of Theorems 3 to 5 reach it, and e0
/// and p0 of (4). At a = 1-gamma no block ever refuses: k0 is infinite (null
/// in JSON) and P_LB is Poisson.
#[derive(clap::Args)]
pub(super) struct Args {
    /// a: average blocks read per insertion, at least 1-gamma
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    access_budget: f64,

    /// r: keys per block, those in no block included
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    load: f64,

    /// gamma: share of the keys in no block
    #[arg(
        long,
        value_name = "G",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    overflow: f64,

    #[command(flatten)]
    show: Show,

    #[command(flatten)]
    plot: Plot,
}

#[derive(Serialize)]
struct Report {
    threshold: Option<u32>,
    admission: f64,
    distribution: Vec<f64>,
    mean: f64,
    variance: f64,
    e0: f64,
    p0: f64,
}

impl Args {
    pub(super) fn run(&self) -> Result<Outcome> {
        let bound = Bound::new(self.access_budget, self.load, self.overflow)?;
        self.plot.write(|| self.draw(&bound))?;
        self.show.print(&Report {
            threshold: bound.threshold(),
            admission: bound.admission(),
            distribution: bound.distribution().as_slice().to_vec(),
            mean: bound.distribution().mean(),
            variance: bound.distribution().variance(),
            e0: bound.e0(),
            p0: bound.p0(),
        })
    }

    fn draw(&self, bound: &Bound) -> Result<String> {
        let name = format!(
            "bound: {} reads per key, {} in no block",
            self.access_budget, self.overflow
        );
        let mut curves = vec![Curve {
            name,
            look: Look::Stems,
            colour: plot::BLUE,
            points: visible(bound),
        }];
        if bound.threshold().is_some() {
            let one = Bound::new(1.0, self.load, 0.0)?;
            curves.push(Curve {
                name: "one read per key, never refused (Poisson)".into(),
                look: Look::Dots,
                colour: plot::GREY,
                points: visible(&one),
            });
        }
        let x = Axis::linear("keys in a block").with_margin(0.5);
        let y = Axis::linear("share of blocks").from(0.0);
        plot::draw(&x, &y, &curves, Legend::Above)
    }
}

/// The shares that can be seen in a picture.
fn visible(bound: &Bound) -> Vec<(f64, f64)> {
    let shares = bound.distribution().as_slice().iter().enumerate();
    shares
        .filter(|(_, share)| **share > 1e-5)
        .map(|(load, share)| (load as f64, *share))
        .collect()
}

impl Answer for Report {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            ("threshold k0", threshold(self.threshold)),
            ("admission p", digits(self.admission)),
            ("mean load", digits(self.mean)),
            ("variance of the load", digits(self.variance)),
            ("e0", digits(self.e0)),
            ("p0", digits(self.p0)),
        ];
        // The tail of a Poisson goes on to 1e-75.
        let seen = self.distribution.iter().enumerate();
        let seen = seen.filter(|(_, share)| **share >= 1e-9);
        for (n, (load, share)) in seen.enumerate() {
            let name = if n == 0 { "share of blocks with" } else { "" };
            rows.push((name, format!("{load:>5} keys  {}", digits(*share))));
        }
        rows
    }
}
