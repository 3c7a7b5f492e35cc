//! Appendix B: the bound has the least cost of all removals, for any convex
//! cost.

use tamis_theory::block;
use tamis_theory::bound::Bound;

use super::{Experiment, Result, Setting};
use crate::report::{
    Axis, Chart, Corner, Finding, Outcome, Series, Table, row,
};
use crate::simulation::Keys;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "convexity",
    title: "The bound beside other feasible distributions",
    source: "BBF 4 and Appendix B.1",
    about: "Every feasible distribution of loads removes the same number of \
        keys from blocks with Poisson loads. 200 policies that remove keys \
        from blocks chosen by random weights are compared with the bound \
        under five convex costs.",
    seconds: [0.1, 0.1],
    traced: false,
    run,
};

const LOAD: f64 = 8.0;
const BUDGET: f64 = 1.2;
/// Loads that are followed; a larger one has a chance below 1e-30.
const MOST: usize = 64;
const NAMES: [&str; 5] = [
    "square",
    "excess over 8 keys",
    "exp(load / 3)",
    "rate of a 256-bit block",
    "exp(2 load): largest load",
];

fn run(setting: &Setting) -> Result<Outcome> {
    let policies = setting.size(200u64, 60);
    let rate = block::exact(256, 12, MOST as u32)?;
    let costs: [Box<dyn Fn(usize) -> f64>; 5] = [
        Box::new(|i| (i * i) as f64),
        Box::new(|i| i.saturating_sub(8) as f64),
        Box::new(|i| (i as f64 / 3.0).exp()),
        Box::new(|i| rate[i]),
        Box::new(|i| (2.0 * i as f64).exp()),
    ];
    let bound = Bound::new(BUDGET, LOAD, 0.0)?;
    let best = costs.each_ref().map(|phi| bound.distribution().cost(phi));
    let mut least = [f64::INFINITY; 5];
    let mut table =
        Table::new("", &["policy", "cost", "relative to the bound"]);
    let mut marks: [Vec<(f64, f64)>; 5] = Default::default();
    for policy in 0..policies {
        let shares = feasible(policy);
        for (i, phi) in costs.iter().enumerate() {
            let loads = shares.iter().enumerate();
            let cost: f64 = loads.map(|(load, share)| share * phi(load)).sum();
            let ratio = cost / best[i];
            least[i] = least[i].min(ratio);
            table.push(row![policy, NAMES[i], ratio]);
            marks[i].push((policy as f64, ratio));
        }
    }
    let mut outcome = Outcome {
        parameters: vec![
            ("a, r, gamma", format!("{BUDGET}, {LOAD}, 0")),
            ("policies", policies.to_string()),
        ],
        tables: vec![table],
        ..Outcome::default()
    };
    for (i, least) in least.into_iter().enumerate() {
        let claims: &[&str] =
            if i == 4 { &["B-021", "B-068"] } else { &["B-068"] };
        let quantity =
            format!("least cost of any policy over the bound's, {}", NAMES[i]);
        outcome.findings.push(
            Finding::new(claims, quantity).ours(least).holds(
                // Rounding of the sums.
                least.is_finite() && least >= 1.0 - 1e-9,
            ),
        );
    }
    let named = marks.into_iter().take(4).enumerate();
    outcome.charts.push(Chart {
        suffix: "",
        title: "Cost of each policy relative to the bound".into(),
        x: Axis::linear("policy"),
        y: Axis::log("cost, bound = 1"),
        legend: Corner::UpperRight,
        series: named
            .map(|(i, points)| Series::marks(NAMES[i], i, points))
            .collect(),
    });
    Ok(outcome)
}

/// Shares of blocks by load after a removal in small steps: blocks of load i
/// lose keys in proportion to their number and a random weight that grows
/// with the policy's number.
fn feasible(policy: u64) -> Vec<f64> {
    let mean = BUDGET * LOAD;
    let mut term = (-mean).exp();
    let mut shares = Vec::new();
    for i in 0..=MOST {
        shares.push(term);
        term *= mean / (i + 1) as f64;
    }
    let steepness = (policy % 20) as f64;
    let weights: Vec<f64> = (0..=MOST as u64)
        .map(|load| {
            let random = Keys::new(policy).member(load) as f64 / 2f64.powi(64);
            (load as f64 / mean).powf(steepness) * (0.05 + random)
        })
        .collect();
    let mut left = (BUDGET - 1.0) * LOAD;
    while left > 1e-12 {
        let chances = shares.iter().zip(&weights).skip(1);
        let total: f64 = chances.map(|(share, weight)| share * weight).sum();
        let step = left.min(0.01);
        for load in 1..shares.len() {
            let part = -(-step * weights[load] / total).exp_m1();
            let lost = part * shares[load];
            shares[load] -= lost;
            shares[load - 1] += lost;
            left -= lost;
        }
    }
    shares
}
