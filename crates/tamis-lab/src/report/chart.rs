//! Charts as SVG, in colours that follow the reader's light or dark scheme.

use std::error::Error;
use std::ops::Range;

use plotters::coord::ranged1d::{
    KeyPointHint, NoDefaultFormatting, ValueFormatter,
};
use plotters::prelude::*;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Okabe and Ito's palette, distinguishable with any kind of colour vision.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 120, 120),
];
const GRID: RGBColor = RGBColor(224, 224, 224);
/// Narrow enough that labels remain legible at the width of a phone.
const SIZE: (u32, u32) = (480, 340);

/// Rules that recolour a chart in a dark scheme: presentation attributes
/// yield to any style sheet.
const DARK: &str = "<style>@media screen and (prefers-color-scheme:dark){\
[fill=\"#FFFFFF\"]{fill:#16181c}[fill=\"#000000\"]{fill:#d7dae0}\
[stroke=\"#000000\"]{stroke:#9aa0aa}[stroke=\"#E0E0E0\"]{stroke:#33373f}\
[stroke=\"#0072B2\"]{stroke:#4aa3df}[fill=\"#0072B2\"]{fill:#4aa3df}\
}</style>";

/// A chart of one or more series.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    /// End of the file's name; empty for the first chart.
    pub(crate) suffix: &'static str,
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) legend: Corner,
    pub(crate) series: Vec<Series>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    pub(crate) label: &'static str,
    pub(crate) log: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Corner {
    UpperLeft,
    UpperRight,
    LowerLeft,
    LowerRight,
}

#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) style: Style,
    /// Index of the colour; series of one subject share it.
    pub(crate) colour: usize,
    pub(crate) points: Vec<(f64, f64)>,
    /// Ends of vertical bars, one per point, or empty.
    pub(crate) bars: Vec<[f64; 2]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Line,
    Marks,
}

impl Axis {
    pub(crate) fn linear(label: &'static str) -> Self {
        Self { label, log: false }
    }

    pub(crate) fn log(label: &'static str) -> Self {
        Self { label, log: true }
    }

    /// Position of `value`, none for zero on a logarithmic axis.
    fn place(self, value: f64) -> Option<f64> {
        let place = if self.log { value.log10() } else { value };
        place.is_finite().then_some(place)
    }
}

impl Series {
    pub(crate) fn line(
        name: impl Into<String>,
        colour: usize,
        points: Vec<(f64, f64)>,
    ) -> Self {
        let style = Style::Line;
        Self { name: name.into(), style, colour, points, bars: Vec::new() }
    }

    pub(crate) fn marks(
        name: impl Into<String>,
        colour: usize,
        points: Vec<(f64, f64)>,
    ) -> Self {
        Self { style: Style::Marks, ..Self::line(name, colour, points) }
    }

    /// Marks of `(x, y, interval)`.
    pub(crate) fn measured(
        name: impl Into<String>,
        colour: usize,
        points: &[(f64, f64, [f64; 2])],
    ) -> Self {
        let marks = points.iter().map(|(x, y, _)| (*x, *y)).collect();
        let bars = points.iter().map(|point| point.2).collect();
        Self { bars, ..Self::marks(name, colour, marks) }
    }
}

/// Range of places and the ticks in it.
#[derive(Debug, Clone)]
struct Scale {
    axis: Axis,
    range: [f64; 2],
    ticks: Vec<f64>,
}

impl Scale {
    fn new(axis: Axis, places: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for place in places {
            (low, high) = (low.min(place), high.max(place));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        // A single value still needs a range.
        let least = if axis.log { 0.5 } else { 1e-12 + high.abs() * 0.01 };
        let room = ((high - low) * 0.04).max(least / 2.0);
        // A share or count begins at zero if it comes near it.
        let from_zero = !axis.log && low >= 0.0 && low < 0.4 * high;
        low = if from_zero { 0.0 } else { low - room };
        high += room;
        let step = step(high - low, axis.log);
        let first = (low / step).ceil() as i64;
        let ticks = (first..).map(|i| i as f64 * step);
        let ticks = ticks.take_while(|tick| *tick <= high).collect();
        Self { axis, range: [low, high], ticks }
    }

    fn label(&self, place: f64) -> String {
        match self.axis.log {
            true => super::number(10f64.powf(place)),
            // Multiples of a step carry rounding errors.
            false => super::number((place * 1e9).round() / 1e9),
        }
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (from, to): (i32, i32)) -> i32 {
        let [low, high] = self.range;
        let share = (place - low) / (high - low);
        from + (f64::from(to - from) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        let [low, high] = self.range;
        low..high
    }
}

impl ValueFormatter<f64> for Scale {
    fn format(place: &f64) -> String {
        super::number(*place)
    }
}

/// Distance of ticks: 1, 2 or 5 times a power of ten, whole decades on a
/// logarithmic axis of more than one.
fn step(length: f64, log: bool) -> f64 {
    let rough = length / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(power);
    if log && length > 1.5 { step.ceil() } else { step }
}

impl Chart {
    /// The chart as a standalone SVG document.
    pub(crate) fn svg(&self) -> Result<String> {
        let mut svg = String::new();
        self.render(&mut svg)?;
        // The style belongs inside the root element.
        let end = svg.find('>').map_or(0, |end| end + 1);
        svg.insert_str(end, DARK);
        Ok(svg)
    }

    fn render(&self, svg: &mut String) -> Result<()> {
        let (across, up) = (self.scale_x(), self.scale_y());
        let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .margin(10)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(across.clone(), up.clone())?;
        chart
            .configure_mesh()
            .x_desc(self.x.label)
            .y_desc(self.y.label)
            .x_label_formatter(&|place| across.label(*place))
            .y_label_formatter(&|place| up.label(*place))
            .bold_line_style(GRID)
            .light_line_style(WHITE.mix(0.0))
            .label_style(("sans-serif", 14))
            .axis_desc_style(("sans-serif", 15))
            .draw()?;
        for series in &self.series {
            let colour = COLOURS[series.colour % COLOURS.len()];
            let points: Vec<(f64, f64)> = series
                .points
                .iter()
                .filter_map(|(x, y)| {
                    Some((self.x.place(*x)?, self.y.place(*y)?))
                })
                .collect();
            let bars = series.points.iter().zip(&series.bars);
            let bars: Vec<_> = bars
                .filter_map(|((x, _), [low, high])| {
                    let x = self.x.place(*x)?;
                    let low = self.y.place(*low).unwrap_or(up.range[0]);
                    Some(vec![(x, low), (x, self.y.place(*high)?)])
                })
                .collect();
            chart
                .draw_series(bars.into_iter().map(|bar| {
                    PathElement::new(bar, colour.stroke_width(1))
                }))?;
            let line = series.style == Style::Line;
            let drawn = if line {
                let style = colour.stroke_width(2);
                chart.draw_series(LineSeries::new(points, style))?
            } else {
                chart.draw_series(
                    points
                        .into_iter()
                        .map(|at| Circle::new(at, 3, colour.filled())),
                )?
            };
            if series.name.is_empty() {
                continue;
            }
            // The box is sized by narrow letters; spaces at the end are not
            // drawn.
            let room = " ".repeat(series.name.len() / 5);
            drawn.label(series.name.clone() + &room).legend(move |(x, y)| {
                let half = if line { (10, 1) } else { (3, 3) };
                let corner = (x + 10 - half.0, y - half.1);
                let other = (x + 10 + half.0, y + half.1);
                Rectangle::new([corner, other], colour.filled())
            });
        }
        chart
            .configure_series_labels()
            .position(match self.legend {
                Corner::UpperLeft => SeriesLabelPosition::UpperLeft,
                Corner::UpperRight => SeriesLabelPosition::UpperRight,
                Corner::LowerLeft => SeriesLabelPosition::LowerLeft,
                Corner::LowerRight => SeriesLabelPosition::LowerRight,
            })
            .background_style(WHITE.mix(0.8))
            .border_style(GRID)
            .label_font(("sans-serif", 13))
            .legend_area_size(26)
            .draw()?;
        root.present()?;
        Ok(())
    }

    fn scale_x(&self) -> Scale {
        let points = self.series.iter().flat_map(|series| &series.points);
        Scale::new(self.x, points.filter_map(|(x, _)| self.x.place(*x)))
    }

    fn scale_y(&self) -> Scale {
        let points = self.series.iter().flat_map(|series| {
            let bars = series.bars.iter().flatten().copied();
            series.points.iter().map(|(_, y)| *y).chain(bars)
        });
        Scale::new(self.y, points.filter_map(|y| self.y.place(y)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(step(0.6, false), 0.1);
        assert_eq!(step(20.0, false), 5.0);
        assert_eq!(step(6.0, true), 1.0);
        let scale = Scale::new(Axis::log(""), [-7.0, -2.0].into_iter());
        assert_eq!(scale.label(scale.ticks[0]), "1e-7");
    }

    #[test]
    fn a_chart_has_all_series_and_follows_the_colour_scheme() {
        let points = vec![(1.0, 0.0), (2.0, 1e-3), (3.0, 1e-6)];
        let chart = Chart {
            suffix: "",
            title: String::new(),
            x: Axis::linear("bits per key"),
            y: Axis::log("rate"),
            legend: Corner::UpperRight,
            series: vec![
                Series::line("a < b", 0, points),
                Series::measured("m", 1, &[(2.0, 1e-4, [0.0, 1e-3])]),
            ],
        };
        let svg = chart.svg().unwrap();
        // Zero has no place on a logarithmic axis.
        assert_eq!(svg.matches("<circle").count(), 1);
        for text in
            ["a &lt; b", "bits per key", "prefers-color-scheme", "1e-6"]
        {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }
}
