//! The pictures of the documents.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;
use tamis_theory::{Prediction, blocked, split, standard};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A kind of filter in a picture.
struct Curve {
    name: &'static str,
    colour: RGBColor,
    at: fn(f64) -> tamis_theory::Result<Prediction>,
}

/// Colours that people with any kind of colour vision tell apart (Okabe and
/// Ito's palette).
const BLUE: RGBColor = RGBColor(0, 114, 178);
const VERMILION: RGBColor = RGBColor(213, 94, 0);
const GREY: RGBColor = RGBColor(120, 120, 120);

const CURVES: [Curve; 3] = [
    Curve {
        name: "blocked: 1 line a miss, 1 a hit",
        colour: BLUE,
        at: |bits| blocked::best(512, bits),
    },
    Curve {
        name: "split: 1.2 to 1.003 lines a miss, 2 a hit",
        colour: VERMILION,
        at: |bits| split::best(512, bits),
    },
    Curve {
        name: "bloom: 2 lines a miss, 6 to 17 a hit",
        colour: GREY,
        at: standard::best,
    },
];

pub(crate) fn draw(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    let path = directory.join("fpr-by-bits.svg");
    fpr_by_bits(&path)?;
    println!("{}", path.display());
    Ok(())
}

fn fpr_by_bits(path: &Path) -> Result<()> {
    let root = SVGBackend::new(path, (760, 440)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(70)
        .build_cartesian_2d(6.0..26.0, (3e-6..0.1).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("bits per key")
        .y_desc("false-positive rate")
        .x_labels(11)
        .y_label_formatter(&percent)
        .light_line_style(WHITE)
        .label_style(("sans-serif", 14))
        .axis_desc_style(("sans-serif", 15))
        .draw()?;
    for curve in &CURVES {
        let points = (24..=104)
            .map(|step| {
                let bits = f64::from(step) / 4.0;
                (curve.at)(bits).map(|design| (bits, design.fpr))
            })
            .collect::<tamis_theory::Result<Vec<_>>>()?;
        chart
            .draw_series(LineSeries::new(
                points,
                curve.colour.stroke_width(2),
            ))?
            .label(curve.name)
            .legend(|(x, y)| {
                PathElement::new(
                    vec![(x, y), (x + 24, y)],
                    curve.colour.stroke_width(2),
                )
            });
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE)
        .border_style(GREY)
        .label_font(("sans-serif", 14))
        .legend_area_size(34)
        .draw()?;
    root.present()?;
    Ok(())
}

fn percent(rate: &f64) -> String {
    let percent = rate * 100.0;
    format!("{percent} %")
}
