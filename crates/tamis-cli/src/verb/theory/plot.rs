//! Plots as SVG.

use std::error::Error;
use std::ops::Range;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::failure::{Failure, Result};

/// Colours of the Okabe-Ito palette, distinguishable with any colour vision.
pub(super) const BLUE: RGBColor = RGBColor(0, 114, 178);
pub(super) const VERMILION: RGBColor = RGBColor(213, 94, 0);
pub(super) const GREY: RGBColor = RGBColor(120, 120, 120);

pub(super) struct Curve {
    pub(super) name: String,
    pub(super) style: CurveStyle,
    pub(super) colour: RGBColor,
    pub(super) points: Vec<(f64, f64)>,
}

#[derive(Clone, Copy)]
pub(super) enum CurveStyle {
    Line,
    Dots,
    /// Dots on vertical lines, for distributions over integers.
    Stems,
}

/// Corner of the legend: above or below the curves, at the right.
#[derive(Clone, Copy)]
pub(super) enum Legend {
    Above,
    Below,
}

pub(super) struct Axis {
    title: &'static str,
    log: bool,
    from: Option<f64>,
    margin: f64,
}

impl Axis {
    pub(super) fn linear(title: &'static str) -> Self {
        Axis { title, log: false, from: None, margin: 0.0 }
    }

    pub(super) fn log(title: &'static str) -> Self {
        Axis { log: true, ..Self::linear(title) }
    }

    pub(super) fn from(self, from: f64) -> Self {
        Axis { from: Some(from), ..self }
    }

    pub(super) fn with_margin(self, margin: f64) -> Self {
        Axis { margin, ..self }
    }

    /// Range from the smallest to the largest of `values`, with a margin.
    fn range(&self, values: impl Iterator<Item = f64>) -> Range<f64> {
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            if !self.log || value > 0.0 {
                (least, most) = (least.min(value), most.max(value));
            }
        }
        if least > most {
            // No values; axes need a non-empty range.
            return 0.5..1.0;
        }
        if self.log {
            // Smaller values are clipped: 15 decades are enough.
            return least.max(1e-15 * most) / 1.5..most * 1.5;
        }
        let least = self.from.unwrap_or(least - self.margin);
        let room = self.from.map_or(0.0, |from| 0.05 * (most - from));
        least..most + self.margin + room
    }
}

/// Draws the curves; returns the SVG text.
pub(super) fn draw(
    x: &Axis,
    y: &Axis,
    curves: &[Curve],
    legend: Legend,
) -> Result<String> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let across = x.range(points().map(|point| point.0));
    let up = y.range(points().map(|point| point.1));
    let drawn = if y.log {
        let low = up.start;
        let scale = Scale { low, label: scientific };
        render(x, y, across, up.log_scale(), &scale, curves, legend)
    } else {
        let scale = Scale { low: 0.0, label: plain };
        render(x, y, across, up, &scale, curves, legend)
    };
    drawn.map_err(|error| {
        Failure::new(format_args!("cannot draw the curve: {error}"))
    })
}

/// Labels and lower end of the vertical axis.
struct Scale {
    low: f64,
    label: fn(&f64) -> String,
}

fn render<Y>(
    x: &Axis,
    y: &Axis,
    across: Range<f64>,
    up: Y,
    scale: &Scale,
    curves: &[Curve],
    legend: Legend,
) -> std::result::Result<String, Box<dyn Error>>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (760, 440));
    let root = root.into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(76)
        .build_cartesian_2d(across, up)?;
    chart
        .configure_mesh()
        .x_desc(x.title)
        .y_desc(y.title)
        .x_label_formatter(&plain)
        .y_label_formatter(&scale.label)
        .light_line_style(WHITE)
        .label_style(("sans-serif", 14))
        .axis_desc_style(("sans-serif", 15))
        .draw()?;
    for curve in curves {
        // Zero has no position on a log scale.
        let points: Vec<(f64, f64)> = curve
            .points
            .iter()
            .copied()
            .filter(|point| point.1 >= scale.low)
            .collect();
        let (thick, full) =
            (curve.colour.stroke_width(2), curve.colour.filled());
        let style = curve.style;
        if matches!(style, CurveStyle::Stems) {
            chart.draw_series(points.iter().map(|point| {
                PathElement::new(vec![(point.0, scale.low), *point], thick)
            }))?;
        }
        let series = if matches!(style, CurveStyle::Line) {
            chart.draw_series(LineSeries::new(points, thick))?
        } else {
            let dots = points.into_iter();
            chart.draw_series(dots.map(|point| Circle::new(point, 4, full)))?
        };
        series.label(&curve.name).legend(move |(x, y)| {
            let (from, to) = match style {
                CurveStyle::Line => ((x, y - 1), (x + 24, y + 1)),
                CurveStyle::Dots | CurveStyle::Stems => {
                    ((x + 9, y - 3), (x + 15, y + 3))
                }
            };
            Rectangle::new([from, to], full)
        });
    }
    chart
        .configure_series_labels()
        .position(match legend {
            Legend::Above => SeriesLabelPosition::UpperRight,
            Legend::Below => SeriesLabelPosition::LowerRight,
        })
        .background_style(WHITE)
        .border_style(GREY)
        .label_font(("sans-serif", 14))
        .legend_area_size(34)
        .draw()?;
    root.present()?;
    drop(chart);
    drop(root);
    Ok(svg)
}

/// Label with an exponent: 1e-7, not 0.00000009999999999999999.
fn scientific(value: &f64) -> String {
    let text = format!("{value:.3e}");
    let (number, power) = text.split_once('e').unwrap_or((&text, "0"));
    let number = number.trim_end_matches('0').trim_end_matches('.');
    format!("{number}e{power}")
}

/// Label with at most six decimals: 0.15, not 0.15000000000000002.
fn plain(value: &f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
