//! Validation of the single filter: items whose level is misnamed.

use tamis::KeyHasher;
use tamis::summary::{SummaryBuilder as _, TypeFilter};
use tamis::table::Multilevel;
use tamis_theory::crisis::Occupancy;
use tamis_theory::summary::type_filter;

use super::{Experiment, Result, Setting};
use crate::report::{
    Axis, Chart, Corner, Finding, Outcome, Series, Table, row,
};
use crate::simulation::{Keys, Rate, Sample, mix, reduce, runs};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "misnamed",
    title: "Single filter: failures and false positives",
    source: "SUM, single filter and experimental validation",
    about: "Tables of 2000 items with type filters too small to be right: \
        misnamed items per table beside the bound, in the library and in a \
        filter of single cells, with its cells in groups and without.",
    seconds: [3.0, 0.9],
    traced: false,
    run,
};

const ITEMS: u64 = 2000;
const LEVELS: [u64; 6] = [3800, 1300, 500, 300, 100, 40];

/// As many buckets, fewer of them in the first level.
const FLAT: [u64; 6] = [2800, 1600, 900, 440, 200, 100];

/// Misnamed items of tables of the library.
fn misnamed(
    levels: &[u64],
    cells: u64,
    probes: u32,
    builds: u64,
) -> Result<Sample> {
    let filter = TypeFilter::builder().cells(cells).probes(probes);
    let count = runs(builds, |build| -> Result<f64> {
        let hasher = KeyHasher::default();
        let builder =
            Multilevel::builder().hasher(hasher).items(ITEMS).levels(levels);
        let mut table = builder.build_with(&filter)?;
        for key in Keys::new(build).members(ITEMS) {
            table.insert(key, ()).map_err(|_| "a crisis")?;
        }
        Ok(table.audit() as f64)
    });
    Ok(Sample::new(count.into_iter().collect::<Result<_>>()?))
}

/// Absent items that a filter of plain cells does not recognise, with the
/// cells in one group per hash or all in one.
fn absent(grouped: bool, cells: u64, items: u64, runs_of: u64) -> Rate {
    let probes = 4;
    let queries = 10 * items;
    let hits = runs(runs_of, |run| {
        let keys = Keys::new(run);
        let place = |key: u64, probe: u64| {
            let hash = mix(key, probe);
            let group = cells / probes;
            match grouped {
                true => probe * group + reduce(hash, group),
                false => reduce(hash, cells),
            }
        };
        let mut set = vec![false; cells as usize];
        for key in keys.members(items) {
            (0..probes)
                .for_each(|probe| set[place(key, probe) as usize] = true);
        }
        let found = |key: &u64| {
            (0..probes).all(|probe| set[place(*key, probe) as usize])
        };
        keys.strangers(queries).filter(found).count() as u64
    });
    Rate { hits: hits.iter().sum(), trials: runs_of * queries }
}

fn run(setting: &Setting) -> Result<Outcome> {
    let builds = setting.size(600, 150);
    let mut outcome = Outcome {
        parameters: vec![
            ("items", ITEMS.to_string()),
            ("levels", format!("{LEVELS:?}")),
            ("tables", builds.to_string()),
        ],
        ..Outcome::default()
    };
    let occupancy = Occupancy::new(ITEMS, &LEVELS, 1)?;
    let shape = Multilevel::builder().levels(&LEVELS).shape()?;
    let mut table = Table::new(
        "",
        &[
            "cells",
            "probes",
            "bound",
            "misnamed",
            "low",
            "high",
            "absent, theory",
        ],
    );
    let mut line = Vec::new();
    let mut marks = Vec::new();
    for (cells, probes) in [(5000, 4), (6000, 4), (8000, 4), (12_000, 5)] {
        // Rounded up to whole words.
        let filter = TypeFilter::builder().cells(cells).probes(probes);
        let cells = filter.build(&shape)?.cells();
        let theory = type_filter(&occupancy, cells, probes)?;
        let sample = misnamed(&LEVELS, cells, probes, builds)?;
        let [low, high] = sample.interval();
        table.push(row![
            cells,
            probes,
            theory.failure,
            sample.mean(),
            low,
            high,
            theory.false_positive,
        ]);
        line.push((cells as f64, theory.failure));
        marks.push((cells as f64, sample.mean(), [low.max(0.0), high]));
        outcome.findings.push(
            Finding::new(
                &["S-020", "S-033"],
                format!("misnamed items per table, {cells} cells"),
            )
            .mean(&sample)
            .predicted(theory.failure),
        );
    }
    let sized = TypeFilter::builder().cells(120_000).probes(24);
    let good = misnamed(&LEVELS, 120_000, 24, builds / 3)?;
    let predicted = sized.predict(&shape)?.failure;
    outcome.findings.push(
        Finding::new(
            &["S-002", "S-033"],
            "a filter of ordinary size: misnamed items, and crises, in all \
             tables",
        )
        .ours(good.mean() * (builds / 3) as f64)
        .published(0.0, 0.0)
        .check(
            "fewer than one in ten thousand tables is expected to have one",
            predicted < 1e-4,
        ),
    );
    let groups = absent(true, 8000, ITEMS, setting.size(200, 60));
    // In a large filter the difference is of order k/m.
    let small = [true, false]
        .map(|grouped| absent(grouped, 40, 8, setting.size(20_000, 8000)));
    let theory = type_filter(&occupancy, 8000, 4)?.false_positive;
    outcome.findings.push(
        Finding::new(
            &["S-019", "S-020"],
            "false positives with cells in groups, 8000 cells, 4 probes",
        )
        .rate(groups)
        .predicted_within(theory, 0.02),
    );
    outcome.findings.push(
        Finding::new(
            &["S-019"],
            "40 cells, 8 items: false positives without groups relative to \
             those with groups",
        )
        .ours(small[1].value() / small[0].value())
        .at_most(1.0, 0.0)
        .check(
            "the intervals are apart",
            small[1].interval()[1] < small[0].interval()[0],
        ),
    );
    outcome.findings.push(skew(builds)?);
    outcome.findings.push(size()?);
    outcome.tables.push(table);
    outcome.charts.push(Chart {
        suffix: "",
        title: "Misnamed items per table by the size of the filter".into(),
        x: Axis::linear("cells"),
        y: Axis::log("misnamed items"),
        legend: Corner::UpperRight,
        series: vec![
            Series::line("bound", 0, line),
            Series::measured("tables of the library", 1, &marks),
        ],
    });
    Ok(outcome)
}

/// A table of as many buckets with fewer of them in the first level.
fn skew(builds: u64) -> Result<Finding> {
    const CELLS: u64 = 8008;
    let flat = misnamed(&FLAT, CELLS, 4, builds)?;
    let skewed = misnamed(&LEVELS, CELLS, 4, builds)?;
    let theory = type_filter(&Occupancy::new(ITEMS, &FLAT, 1)?, CELLS, 4)?;
    Ok(Finding::new(
        &["S-024"],
        "misnamed items per table, 8008 cells, with 2800 of the 6040 buckets \
         in the first level instead of 3800",
    )
    .mean(&flat)
    .predicted(theory.failure)
    .check(
        "more than with 3800, and the intervals are apart",
        flat.interval()[0] > skewed.interval()[1],
    ))
}

/// The size of the single filter against n (log n + log 1/delta): constant
/// for tables of the same proportions.
fn size() -> Result<Finding> {
    let mut ratios = Vec::new();
    for items in [1000u64, 10_000, 100_000] {
        let levels = LEVELS.map(|size| size * items / ITEMS);
        let table = Occupancy::new(items, &levels, 1)?;
        let reaches = |cells: u64| -> Result<bool> {
            for probes in 4..60 {
                let failure = type_filter(&table, cells, probes)?.failure;
                if failure <= 1e-6 {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let (mut low, mut high) = (items, items * 200);
        while high - low > items / 100 {
            let middle = low + (high - low) / 2;
            match reaches(middle)? {
                true => high = middle,
                false => low = middle,
            }
        }
        let n = items as f64;
        ratios.push(high as f64 / (n * (n.ln() + 1e6f64.ln())));
    }
    let spread = ratios[2] / ratios[0];
    Ok(Finding::new(
        &["S-023"],
        "cells for 1e-6 failures over n (log n + log 1e6): 10^5 items \
         relative to 10^3",
    )
    .ours(spread)
    .published(1.0, 0.15))
}
