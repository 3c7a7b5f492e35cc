//! Figures of the documents.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use tamis::{Balanced, Blocked, FilterMut, Split, Stats};
use tamis_lab::picture;
use tamis_theory::balanced::{Lookup, list};
use tamis_theory::{blocked, split};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Okabe and Ito's palette, distinguishable with any kind of colour vision.
const BLUE: RGBColor = RGBColor(0, 114, 178);
const VERMILION: RGBColor = RGBColor(213, 94, 0);
const GREY: RGBColor = RGBColor(120, 120, 120);

/// False positives of a measured rate: their deviation is 3 %, less than a
/// dot.
const FALSE_POSITIVES: f64 = 1000.0;

pub(crate) fn draw(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    let path = directory.join("bits-and-lines.svg");
    let series = picture::measure(FALSE_POSITIVES, 0.0)
        .map_err(|error| error as Box<dyn Error>)?;
    std::fs::write(&path, picture::draw(&series)?)?;
    println!("{}", path.display());
    let path = directory.join("balanced.svg");
    balanced(&path)?;
    println!("{}", path.display());
    Ok(())
}

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<RangedCoordf64, LogCoord<f64>>,
>;

fn canvas(path: &Path) -> Result<Canvas<'_>> {
    let root = SVGBackend::new(path, (760, 440)).into_drawing_area();
    root.fill(&WHITE)?;
    Ok(root)
}

/// A chart of bits per key and a logarithmic axis.
fn chart<'a, 'b>(
    root: &'a Canvas<'b>,
    bits: Range<f64>,
    rates: Range<f64>,
    y_desc: &str,
    y_label: &dyn Fn(&f64) -> String,
) -> Result<Chart<'a, 'b>> {
    let labels = ((bits.end - bits.start) / 2.0) as usize + 1;
    let mut chart = ChartBuilder::on(root)
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(70)
        .build_cartesian_2d(bits, rates.log_scale())?;
    chart
        .configure_mesh()
        .x_desc("bits per key")
        .y_desc(y_desc)
        .x_labels(labels)
        .y_label_formatter(y_label)
        .light_line_style(WHITE)
        .label_style(("sans-serif", 14))
        .axis_desc_style(("sans-serif", 15))
        .draw()?;
    Ok(chart)
}

fn legend<'a, 'b: 'a>(
    chart: &mut Chart<'a, 'b>,
    at: SeriesLabelPosition,
) -> Result<()> {
    chart
        .configure_series_labels()
        .position(at)
        .background_style(WHITE)
        .border_style(GREY)
        .label_font(("sans-serif", 14))
        .legend_area_size(34)
        .draw()?;
    Ok(())
}

/// Keys in each measured filter: enough for one run, few enough to draw
/// within seconds.
const KEYS: u32 = 300_000;
/// Bits per key at which filters are measured.
const MEASURED: [f64; 7] = [10.0, 14.0, 18.0, 22.0, 26.0, 32.0, 38.0];

/// A kind of filter, predicted and measured.
struct Rival {
    name: &'static str,
    colour: RGBColor,
    predicted: fn(f64) -> Result<f64>,
    measured: fn(f64) -> Result<f64>,
}

fn measure<F: FilterMut>(mut filter: F) -> Stats {
    let keys: Vec<u32> = (0..KEYS).collect();
    filter.insert_batch(&keys);
    filter.stats()
}

const RIVALS: [Rival; 3] = [
    Rival {
        name: "the paper's balanced filter: a = 1.2, d = 3, list",
        colour: GREY,
        predicted: |bits| {
            let scheme = PAPER;
            let design = list::best(512, bits, scheme, Lookup::Coin)?;
            Ok(design.prediction.fpr)
        },
        measured: |bits| {
            let builder = Balanced::builder().items(KEYS.into());
            let filter = builder.bits_per_key(bits).choices(3).build()?;
            Ok(measure(filter).expected_fpr)
        },
    },
    Rival {
        name: "split",
        colour: VERMILION,
        predicted: |bits| Ok(split::best(512, bits)?.fpr),
        measured: |bits| {
            let builder = Split::builder().items(KEYS.into());
            Ok(measure(builder.bits_per_key(bits).build()?).expected_fpr)
        },
    },
    Rival {
        name: "balanced: at most 1.25 lines a miss",
        colour: BLUE,
        predicted: |bits| {
            Ok(Balanced::builder().bits_per_key(bits).predict()?.fpr)
        },
        measured: |bits| {
            let builder = Balanced::builder().items(KEYS.into());
            Ok(measure(builder.bits_per_key(bits).build()?).expected_fpr)
        },
    },
];

const PAPER: list::Scheme =
    list::Scheme::Multilevel { access_budget: 1.2, choices: 3 };

/// Rates relative to blocked.
fn balanced(path: &Path) -> Result<()> {
    let root = canvas(path)?;
    let what = "false-positive rate, blocked = 1";
    let number = |rate: &f64| rate.to_string();
    let mut chart = chart(&root, 8.0..40.0, 0.01..4.0, what, &number)?;
    chart.draw_series(LineSeries::new(
        [(8.0, 1.0), (40.0, 1.0)],
        BLACK.stroke_width(1),
    ))?;
    for rival in &RIVALS {
        let mut line = Vec::new();
        for step in 4..=20 {
            let bits = f64::from(step) * 2.0;
            let plain = blocked::best(512, bits)?.fpr;
            line.push((bits, (rival.predicted)(bits)? / plain));
        }
        let style = rival.colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(line, style))?
            .label(rival.name)
            .legend(move |(x, y)| {
                PathElement::new(vec![(x, y), (x + 24, y)], style)
            });
        let mut marks = Vec::new();
        for bits in MEASURED {
            let builder = Blocked::builder().items(KEYS.into());
            let plain = measure(builder.bits_per_key(bits).build()?);
            let rate = (rival.measured)(bits)? / plain.expected_fpr;
            marks.push(Circle::new((bits, rate), 4, rival.colour.filled()));
        }
        chart.draw_series(marks)?;
    }
    legend(&mut chart, SeriesLabelPosition::LowerLeft)?;
    root.present()?;
    Ok(())
}
