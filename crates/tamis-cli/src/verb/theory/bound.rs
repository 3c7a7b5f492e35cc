//! `tamis theory bound`.

use serde::Serialize;
use tamis_theory::bound::Bound;

use super::plot::{self, Axis, Curve, CurveStyle, Legend};
use super::{BalanceArgs, PlotArgs, TheoryReport, digits, threshold};
use crate::failure::{Exit, Result};
use crate::report::JsonArgs;

/// Compute the best balance of any online scheme (Theorem 1)
///
/// With a reads per key, r keys per block and a share gamma of the keys in no
/// block, the block loads of every scheme cost at least as much as P_LB of
/// (4), for any convex cost. Prints P_LB, its threshold k0 of (3) (the
/// largest with E(N-k0)^+ > (a-1+gamma) r, N Poisson of mean a r), the
/// admission p with which the schemes of Theorems 3 to 5 reach it, and e0 and
/// p0 of (4). a is at least 1-gamma. At a = 1-gamma no block refuses a key:
/// k0 is infinite (null in JSON) and P_LB is Poisson.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    balance: BalanceArgs,

    /// gamma: share of the keys in no block
    #[arg(long, value_name = "G", default_value_t = 0.0)]
    overflow: f64,

    #[command(flatten)]
    format: JsonArgs,

    #[command(flatten)]
    plot: PlotArgs,
}

#[derive(Serialize)]
struct BoundReport {
    threshold: Option<u32>,
    admission: f64,
    distribution: Vec<f64>,
    mean: f64,
    variance: f64,
    e0: f64,
    p0: f64,
}

impl Args {
    pub(super) fn run(&self) -> Result<Exit> {
        let BalanceArgs { access_budget, load } = self.balance;
        let bound = Bound::new(access_budget, load, self.overflow)?;
        self.plot.write(|| self.draw(&bound))?;
        let report = BoundReport {
            threshold: bound.threshold(),
            admission: bound.admission(),
            distribution: bound.distribution().as_slice().to_vec(),
            mean: bound.distribution().mean(),
            variance: bound.distribution().variance(),
            e0: bound.e0(),
            p0: bound.p0(),
        };
        report.print(&self.format)
    }

    fn draw(&self, bound: &Bound) -> Result<String> {
        let name = format!(
            "bound: {} reads per key, {} in no block",
            self.balance.access_budget, self.overflow
        );
        let mut curves = vec![Curve {
            name,
            style: CurveStyle::Stems,
            colour: plot::BLUE,
            points: visible(bound),
        }];
        if bound.threshold().is_some() {
            let one = Bound::new(1.0, self.balance.load, 0.0)?;
            curves.push(Curve {
                name: "one read per key, no refusals (Poisson)".into(),
                style: CurveStyle::Dots,
                colour: plot::GREY,
                points: visible(&one),
            });
        }
        let x = Axis::linear("keys in a block").with_margin(0.5);
        let y = Axis::linear("share of blocks").from(0.0);
        plot::draw(&x, &y, &curves, Legend::Above)
    }
}

/// Points of the distribution large enough to be visible in a plot.
fn visible(bound: &Bound) -> Vec<(f64, f64)> {
    let shares = bound.distribution().as_slice().iter().enumerate();
    shares
        .filter(|(_, share)| **share > 1e-5)
        .map(|(load, share)| (load as f64, *share))
        .collect()
}

impl TheoryReport for BoundReport {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            ("threshold k0", threshold(self.threshold)),
            ("admission p", digits(self.admission)),
            ("mean load", digits(self.mean)),
            ("variance of the load", digits(self.variance)),
            ("e0", digits(self.e0)),
            ("p0", digits(self.p0)),
        ];
        // The tail below 1e-9 is left out; it extends to 1e-75.
        let loads = self.distribution.iter().enumerate();
        let loads = loads.filter(|(_, share)| **share >= 1e-9);
        for (n, (load, share)) in loads.enumerate() {
            let name = if n == 0 { "share of blocks with" } else { "" };
            rows.push((name, format!("{load:>5} keys  {}", digits(*share))));
        }
        rows
    }
}
