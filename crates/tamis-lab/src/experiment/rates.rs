//! Fig. 5: rates of the schemes by memory.

use tamis::{Balanced, Blocked, Overflow};
use tamis_theory::balanced::{Lookup, list};
use tamis_theory::{block, blocked, multilevel, standard};

use super::{Experiment, Result, Setting};
use crate::report::{
    Axis, Chart, Corner, Finding, Outcome, Series, Table, row,
};
use crate::simulation::{Keys, Rate, Sample, mix, reduce, runs};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "rates",
    title: "False-positive rate by memory",
    source: "BBF 9.1, equation (9), Fig. 5",
    about: "Standard, blocked, SINGLE with a list of 0.5 % and MHT with \
        a = 1.2 and d = 3, at the paper's number of probes (bits per key \
        times ln 2) and at the best one. Marks are the library's filters: \
        their rate follows from the bits that are set.",
    seconds: [1.8, 0.2],
    traced: false,
    run,
};

const BUDGET: f64 = 1.2;
const CHOICES: u32 = 3;
const NAMES: [&str; 4] = ["standard", "blocked", "SINGLE", "MHT"];

fn printed_probes(bits_per_key: f64) -> u32 {
    ((bits_per_key * std::f64::consts::LN_2).round() as u32).clamp(1, 32)
}

fn schemes() -> Result<[list::Scheme; 2]> {
    let least = multilevel::boundary(BUDGET, CHOICES)?.overflow_fraction;
    let single = list::Scheme::Single { overflow_fraction: least };
    let many =
        list::Scheme::Multilevel { access_budget: BUDGET, choices: CHOICES };
    Ok([single, many])
}

/// Rates of all four, with `probes` or with the best number for each, and
/// the reads of an absent key of the last.
fn rates(
    bits: u32,
    beta: f64,
    probes: Option<u32>,
) -> Result<([f64; 4], f64)> {
    let [single, many] = schemes()?.map(|scheme| match probes {
        Some(k) => list::predict(bits, beta, scheme, Lookup::Plain, k),
        None => list::best(bits, beta, scheme, Lookup::Plain),
    });
    let (single, many) = (single?, many?);
    let [classic, blocked] = match probes {
        Some(k) => {
            [standard::predict(beta, k)?, blocked::predict(bits, beta, k)?]
        }
        None => [standard::best(beta)?, blocked::best(bits, beta)?],
    };
    let rates = [classic.fpr, blocked.fpr, single.summed.fpr, many.summed.fpr];
    Ok((rates, many.prediction.reads_miss))
}

fn run(setting: &Setting) -> Result<Outcome> {
    let mut outcome = Outcome {
        parameters: vec![
            ("a, d", format!("{BUDGET}, {CHOICES}")),
            ("keys of a measured filter", "about 100 000".to_owned()),
        ],
        ..Outcome::default()
    };
    let mut table = Table::new(
        "",
        &[
            "block bits",
            "bits per key",
            "probes",
            "standard",
            "blocked",
            "SINGLE",
            "MHT",
            "reads of a miss, MHT",
        ],
    );
    let mut never_smaller = true;
    let mut crossing = [f64::NAN; 2];
    for (number, bits) in [256, 512].into_iter().enumerate() {
        let mut lines: [Vec<(f64, f64)>; 4] = Default::default();
        for step in 4..=20 {
            let beta = f64::from(step) * 2.0;
            let k = printed_probes(beta);
            let (at_k, reads) = rates(bits, beta, Some(k))?;
            table.push(row![
                bits, beta, k, at_k[0], at_k[1], at_k[2], at_k[3], reads
            ]);
            for (line, rate) in lines.iter_mut().zip(at_k) {
                line.push((beta, rate));
            }
            let (best, reads) = rates(bits, beta, None)?;
            table.push(row![
                bits, beta, "best", best[0], best[1], best[2], best[3], reads
            ]);
            never_smaller &= best[1..].iter().all(|rate| *rate > best[0]);
        }
        // The first memory at which balancing pays.
        let pays = |beta: f64| -> Result<bool> {
            let (at, _) = rates(bits, beta, Some(printed_probes(beta)))?;
            Ok(at[3] < at[1])
        };
        for step in 100..=240 {
            let beta = f64::from(step) / 10.0;
            if pays(beta)? {
                crossing[number] = beta;
                break;
            }
        }
        let mut series: Vec<Series> = lines
            .into_iter()
            .enumerate()
            .map(|(i, line)| Series::line(NAMES[i], i, line))
            .collect();
        series.extend(measured(&mut outcome, setting, bits)?);
        outcome.charts.push(Chart {
            suffix: if bits == 256 { "" } else { "512" },
            title: format!(
                "Rates with blocks of {bits} bits, k = bits per key times \
                 ln 2 (Fig. 5)"
            ),
            x: Axis::linear("bits per key"),
            y: Axis::log("false-positive rate"),
            legend: Corner::LowerLeft,
            series,
        });
    }
    outcome.tables.push(table);
    outcome.findings.push(
        Finding::new(
            &["T-034"],
            "blocked and balanced filters have a higher rate than a standard \
             one of the same memory, each at its best k, 34 sizes",
        )
        .holds(never_smaller),
    );
    outcome.findings.push(
        Finding::new(
            &["B-046"],
            "bits per key below which MHT is worse than blocked, 256 bits",
        )
        .ours(crossing[0])
        .holds(crossing[0] > 8.0)
        .check("with 512 bits as well", crossing[1] > 8.0),
    );
    quoted(&mut outcome)?;
    blocks(&mut outcome, setting)?;
    Ok(outcome)
}

/// Numbers of the text.
fn quoted(outcome: &mut Outcome) -> Result<()> {
    let mut push = |finding| outcome.findings.push(finding);
    push(
        Finding::new(&["B-001"], "best number of probes at 30 bits per key")
            .ours(standard::best(30.0)?.probes.into())
            .published(21.0, 0.0),
    );
    let classic = standard::predict(24.0, printed_probes(24.0))?;
    push(
        Finding::new(
            &["B-041", "B-048"],
            "bits read for a member of a standard filter at 24 bits per key",
        )
        .ours(classic.reads_hit)
        .published(17.0, 0.0),
    );
    let (at_k, reads) = rates(256, 40.0, Some(28))?;
    push(
        Finding::new(
            &["B-002", "B-003"],
            "blocked relative to MHT, 256 bits, 40 bits per key, k = 28",
        )
        .ours(at_k[1] / at_k[3])
        .at_least(100.0),
    );
    let (best, _) = rates(256, 40.0, None)?;
    push(
        Finding::new(
            &["B-002", "B-003", "B-047"],
            "blocked relative to MHT, each at its best k",
        )
        .ours(best[1] / best[3])
        .at_least(100.0)
        .differs(
            "k = bits per key times ln 2 suits balanced blocks and harms the \
             fullest blocks of the blocked filter; with the best k of each \
             one and a half orders remain",
        ),
    );
    push(
        Finding::new(
            &["B-047"],
            "MHT relative to standard, 256 bits, 40 bits per key, k = 28",
        )
        .ours(at_k[3] / at_k[0])
        .published(10.0, 10.0)
        .differs(
            "one order of magnitude holds up to 26 bits per key, and with \
             blocks of 512 bits; at the end of the range it is 47 times",
        ),
    );
    push(
        Finding::new(
            &["B-045"],
            "blocked relative to SINGLE at 40 bits per key",
        )
        .ours(at_k[1] / at_k[2])
        .holds(at_k[1] / at_k[2] < 1.5)
        .differs("slightly better up to 28 bits per key, 2.9 times at 40"),
    );
    push(
        Finding::new(
            &["B-042"],
            "blocks read for an absent key, MHT at 40 bits per key",
        )
        .ours(reads)
        .at_most(3.0, 0.0)
        .check("more than the 1.2 of a member", reads > 2.0),
    );
    let many = list::predict(256, 40.0, schemes()?[1], Lookup::Plain, 28)?;
    push(
        Finding::new(&["B-040"], "counter bits at 256 bits, 40 bits per key")
            .ours(many.counter_bits.into())
            .published(4.0, 0.0),
    );
    push(
        Finding::new(
            &["B-039"],
            "MHT at 40 bits per key: exact rate relative to the approximation",
        )
        .ours(many.summed.fpr / many.approximate_fpr)
        .published(1.0, 0.1)
        .differs(
            "the approximation replaces the number of set bits by its mean, \
             and the rate is convex in it",
        ),
    );
    Ok(())
}

/// Filters of the library, beside their curves.
fn measured(
    outcome: &mut Outcome,
    setting: &Setting,
    bits: u32,
) -> Result<Vec<Series>> {
    let blocks: u64 = setting.size(8192, 4096);
    let [.., many] = schemes()?;
    let mut marks = [Vec::new(), Vec::new()];
    for beta in [8.0, 16.0, 24.0, 32.0] {
        let items = (blocks * u64::from(bits)) as f64 / beta;
        let keys: Vec<u64> = Keys::new(5).members(items as u64).collect();
        let k = printed_probes(beta);
        let builder = Blocked::builder().block_bits(bits).items(items as u64);
        let mut plain = builder.bits_per_key(beta).probes(k).build()?;
        plain.insert_batch(&keys);
        let builder = Balanced::builder().block_bits(bits).items(items as u64);
        let mut listed = builder
            .bits_per_key(beta)
            .access_budget(BUDGET)
            .choices(CHOICES)
            .overflow(Overflow::List)
            .probes(k)
            .build()?;
        // As in the paper, without a lookup of the key before it.
        let hasher = *listed.hasher();
        for key in &keys {
            listed.insert_distinct_hash(hasher.hash(key));
        }
        marks[0].push((beta, plain.stats().expected_fpr));
        marks[1].push((beta, listed.stats().expected_fpr));
        if beta != 8.0 {
            continue;
        }
        // Rates high enough to count.
        let strangers: Vec<u64> =
            Keys::new(5).strangers(setting.size(4_000_000, 500_000)).collect();
        let count = |found: Vec<bool>| Rate {
            hits: found.iter().filter(|found| **found).count() as u64,
            trials: strangers.len() as u64,
        };
        let mut found = vec![false; strangers.len()];
        plain.contains_batch(&strangers, &mut found);
        let theory = blocked::predict(bits, beta, k)?.fpr;
        let quantity = format!("rate of blocked, {bits} bits, 8 bits per key");
        outcome.findings.push(
            Finding::new(&["B-005", "B-043"], quantity)
                .rate(count(found))
                .predicted_within(theory, 0.05),
        );
        let mut found = vec![false; strangers.len()];
        listed.contains_batch(&strangers, &mut found);
        let theory = list::predict(bits, beta, many, Lookup::Coin, k)?;
        let quantity = format!("rate of MHT, {bits} bits, 8 bits per key");
        outcome.findings.push(
            Finding::new(&["B-010", "B-043"], quantity)
                .rate(count(found))
                .predicted_within(theory.prediction.fpr, 0.05),
        );
    }
    let [plain, listed] = marks;
    Ok(vec![
        Series::marks("blocked, built", 1, plain),
        Series::marks("MHT, built", 3, listed),
    ])
}

/// Equation (9) beside bits thrown at random.
fn blocks(outcome: &mut Outcome, setting: &Setting) -> Result<()> {
    const BITS: u32 = 256;
    const PROBES: u32 = 7;
    const ITEMS: u32 = 30;
    let blocks: u64 = setting.size(200_000, 40_000);
    let rates = runs(blocks, |number| {
        let mut set = [false; BITS as usize];
        for throw in 0..u64::from(ITEMS * PROBES) {
            let place = reduce(mix(Keys::new(9).member(number), throw), 256);
            set[place as usize] = true;
        }
        let count = set.iter().filter(|bit| **bit).count();
        (count as f64 / f64::from(BITS)).powi(PROBES as i32)
    });
    let exact = block::exact(BITS, PROBES, ITEMS)?[ITEMS as usize];
    outcome.findings.push(
        Finding::new(
            &["B-039"],
            "mean rate of 256-bit blocks with 30 keys of 7 bits",
        )
        .mean(&Sample::new(rates))
        .predicted(exact),
    );
    Ok(())
}
