//! The picture as SVG, for light and dark pages.

use std::fmt::Write as _;

use tamis_theory::limit;

use super::{Point, Series};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 620.0;
/// Left, top, right and bottom edge of the chart.
const CHART: [f64; 4] = [78.0, 44.0, 870.0, 560.0];
const BITS: [f64; 2] = [3.0, 90.0];
const RATES: [f64; 2] = [0.2, 1e-6];
const DOT: &str = "<circle r=\"5\"/>";
const DIAMOND: &str = "<path d=\"M0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z\"/>";
/// Lines per miss at the end of the colours.
const MOST_LINES: f64 = 4.0;
/// Colours of 1, 2 and 4 lines: Okabe and Ito's blue, orange, vermilion.
const COLOURS: [[f64; 3]; 3] =
    [[0.0, 114.0, 178.0], [230.0, 159.0, 0.0], [190.0, 60.0, 20.0]];

const STYLE: &str = "\
text{font:14px system-ui,sans-serif;fill:#222}\
.page{fill:#fff}.grid{stroke:#e4e4e4}.limit{stroke:#333;fill:none}\
.none{fill:#f1f1f1}.soft{fill:#666}.halo{stroke:#fff}\
@media(prefers-color-scheme:dark){text{fill:#ddd}.page{fill:#14171c}\
.grid{stroke:#2c313a}.limit{stroke:#ccc}.none{fill:#1d2129}.soft{fill:#999}\
.halo{stroke:#14171c}}";

/// The picture of measured structures.
///
/// ```
/// let svg = tamis_lab::picture::draw(&[])?;
/// assert!(svg.starts_with("<svg") && svg.contains("one line, coded"));
/// # Ok::<(), tamis_theory::Error>(())
/// ```
pub fn draw(series: &[Series]) -> tamis_theory::Result<String> {
    let [left, top, right, bottom] = CHART;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} \
         {HEIGHT}\" role=\"img\"><title>Bits per key, false-positive rate and \
         cache lines per miss of all structures</title>\n\
         <style>{STYLE}</style>\n\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
         <clipPath id=\"chart\"><rect x=\"{left}\" y=\"{top}\" width=\"{}\" \
         height=\"{}\"/></clipPath>\n",
        right - left,
        bottom - top
    );
    axes(&mut out);
    limits(&mut out)?;
    for one in series {
        marks(&mut out, one);
    }
    labels(&mut out, series);
    key(&mut out);
    scale(&mut out);
    out += "</svg>\n";
    Ok(out)
}

/// Adds formatted text; writing to a `String` does not fail.
macro_rules! put {
    ($out:expr, $($format:tt)*) => {
        let _ = writeln!($out, $($format)*);
    };
}

fn logarithmic(value: f64, [low, high]: [f64; 2]) -> f64 {
    (value / low).ln() / (high / low).ln()
}

fn x(bits: f64) -> f64 {
    CHART[0] + logarithmic(bits, BITS) * (CHART[2] - CHART[0])
}

fn y(fpr: f64) -> f64 {
    CHART[1] + logarithmic(fpr, RATES) * (CHART[3] - CHART[1])
}

fn axes(out: &mut String) {
    let [left, top, right, bottom] = CHART;
    for bits in [4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 80] {
        let x = x(f64::from(bits));
        put!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {top}V{bottom}\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{bits}</text>",
            bottom + 20.0
        );
    }
    for (rate, text) in [
        (0.1, "10 %"),
        (0.01, "1 %"),
        (1e-3, "0.1 %"),
        (1e-4, "0.01 %"),
        (1e-5, "0.001 %"),
    ] {
        let y = y(rate);
        put!(
            out,
            "<path class=\"grid\" d=\"M{left} {y:.1}H{right}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            left - 8.0,
            y + 5.0
        );
    }
    put!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">bits per key \
         (logarithmic)</text>\
         <text x=\"12\" y=\"22\">false-positive rate, measured</text>",
        (left + right) / 2.0,
        bottom + 44.0
    );
}

/// The limits as curves. No filter lies left of the first.
fn limits(out: &mut String) -> tamis_theory::Result<()> {
    type Limit = fn(f64) -> tamis_theory::Result<f64>;
    let curves: [(&str, &str, Limit); 3] = [
        ("any filter", "1 4", limit::any),
        ("growing filter", "7 4", limit::growing),
        ("one line, coded", "14 4", |fpr| {
            Ok(limit::line_for_fpr(512, fpr)?.bits_per_key)
        }),
    ];
    for (number, (name, dashes, bits)) in curves.into_iter().enumerate() {
        let mut path = String::new();
        for step in 0..=40 {
            let share = f64::from(step) / 40.0;
            let fpr = RATES[0] * (RATES[1] / RATES[0]).powf(share);
            let verb = if step == 0 { 'M' } else { 'L' };
            path += &format!("{verb}{:.1} {:.1}", x(bits(fpr)?), y(fpr));
        }
        if number == 0 {
            let [left, top, _, bottom] = CHART;
            put!(
                out,
                "<path class=\"none\" clip-path=\"url(#chart)\" \
                 d=\"{path}L{left} {bottom}V{top}Z\"/>"
            );
        }
        put!(
            out,
            "<path class=\"limit\" clip-path=\"url(#chart)\" \
             stroke-width=\"1.5\" stroke-dasharray=\"{dashes}\" \
             d=\"{path}\"/>"
        );
        let at = [1e-5, 3.2e-6, 1.4e-6][number];
        let (x, y) = (x(bits(at)?) - 6.0, y(at) + 4.0);
        put!(
            out,
            "<text class=\"soft\" x=\"{x:.1}\" y=\"{y:.1}\" \
             text-anchor=\"end\">{name}</text>"
        );
    }
    Ok(())
}

/// Colour of a number of lines per miss.
fn colour(lines: f64) -> String {
    let place = 2.0 * logarithmic(lines, [1.0, MOST_LINES]).clamp(0.0, 1.0);
    let (first, rest) =
        if place < 1.0 { (0, place) } else { (1, place - 1.0) };
    let [r, g, b] = [0, 1, 2].map(|i| {
        let (low, high) = (COLOURS[first][i], COLOURS[first + 1][i]);
        (low + rest * (high - low)).round() as u8
    });
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn marks(out: &mut String, series: &Series) {
    for pair in series.points.windows(2) {
        let [from, to] = [&pair[0], &pair[1]].map(place);
        let lines = pair[0].lines_miss.max(pair[1].lines_miss);
        let dashes = if series.product { "none" } else { "3 3" };
        put!(
            out,
            "<path stroke=\"{}\" stroke-width=\"1.2\" opacity=\"0.7\" \
             stroke-dasharray=\"{dashes}\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
            colour(lines),
            from.0,
            from.1,
            to.0,
            to.1
        );
    }
    for point in &series.points {
        let (x, y) = place(point);
        let fill = colour(point.lines_miss);
        let mark = if series.product { DOT } else { DIAMOND };
        put!(
            out,
            "<g transform=\"translate({x:.1} {y:.1})\" class=\"halo\" \
             fill=\"{fill}\"><title>{}: {:.2} bits per key, {:.3e} false \
             positives, {:.2} lines</title>{mark}</g>",
            series.name,
            point.bits_per_key,
            point.fpr,
            point.lines_miss
        );
    }
}

/// Names: those of the product in a column beside their last points, those
/// of the baselines slanted above their first.
fn labels(out: &mut String, series: &[Series]) {
    let mut product: Vec<(f64, f64, &str)> = Vec::new();
    for one in series {
        let [Some(first), Some(last)] =
            [one.points.first(), one.points.last()].map(|p| p.map(place))
        else {
            continue;
        };
        let name = one.name;
        if one.product {
            product.push((last.0, last.1, name));
        } else if ["VI-CBF, L = 8", "least loaded of 2"].contains(&name) {
            // Their first points are close to others.
            let (x, y) = (last.0 + 9.0, last.1 + 15.0);
            put!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\">{name}</text>");
        } else {
            put!(
                out,
                "<text transform=\"translate({:.1} {:.1}) \
                 rotate(-32)\">{name}</text>",
                first.0 + 5.0,
                first.1 - 8.0
            );
        }
    }
    // The rightmost point has the highest name, so that no lines cross.
    product.sort_by(|a, b| b.0.total_cmp(&a.0));
    let right = product.first().map_or(0.0, |(x, _, _)| x + 60.0);
    let mut row = product.first().map_or(0.0, |(_, y, _)| y - 30.0);
    for (x, y, name) in product {
        put!(
            out,
            "<path class=\"limit\" opacity=\"0.5\" d=\"M{:.1} \
             {y:.1}L{:.1} {row:.1}\"/><text x=\"{right:.1}\" \
             y=\"{:.1}\">{name}</text>",
            x + 6.0,
            right - 4.0,
            row + 5.0
        );
        row += 19.0;
    }
}

fn place(point: &Point) -> (f64, f64) {
    (x(point.bits_per_key), y(point.fpr))
}

/// The meaning of the marks.
fn key(out: &mut String) {
    let x = CHART[0] + 30.0;
    for (row, mark, text) in [
        (0.0, DOT, "filters of tamis"),
        (1.0, DIAMOND, "structures of other papers"),
        (
            2.0,
            "<path class=\"limit\" stroke-dasharray=\"7 4\" d=\"M-8 0H8\"/>",
            "limits",
        ),
    ] {
        let y = CHART[3] - 70.0 + 22.0 * row;
        put!(
            out,
            "<g transform=\"translate({x} {y})\" class=\"soft\">{mark}\
             <text x=\"14\" y=\"5\">{text}</text></g>"
        );
    }
}

/// The scale of the colours.
fn scale(out: &mut String) {
    let (left, top, width) = (CHART[2] - 250.0, 22.0, 240.0);
    put!(
        out,
        "<linearGradient id=\"picture-lines\"><stop offset=\"0\" stop-color=\"{}\"/>\
         <stop offset=\"0.5\" stop-color=\"{}\"/>\
         <stop offset=\"1\" stop-color=\"{}\"/></linearGradient>\
         <rect x=\"{left}\" y=\"{}\" width=\"{width}\" height=\"10\" \
         fill=\"url(#picture-lines)\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\">cache lines per \
         miss</text>",
        colour(1.0),
        colour(2.0),
        colour(4.0),
        top - 14.0,
        left - 10.0,
        top - 4.0
    );
    for (lines, text) in
        [(1.0, "1"), (1.25, "1.25"), (2.0, "2"), (3.0, "3"), (4.0, "4+")]
    {
        let x = left + width * logarithmic(lines, [1.0, MOST_LINES]);
        put!(
            out,
            "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
            top + 12.0
        );
    }
}
