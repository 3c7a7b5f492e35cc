//! One figure per size.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Group, Row, percent};
use crate::Size;
use crate::contender::Mode;
use crate::subject::Result;

/// Okabe and Ito's palette, distinguishable with any kind of colour vision.
const BLUE: RGBColor = RGBColor(0, 114, 178);
const VERMILION: RGBColor = RGBColor(213, 94, 0);
const GREY: RGBColor = RGBColor(120, 120, 120);

/// Width and height in pixels.
const SIZE: (u32, u32) = (1000, 460);
const TEXT: i32 = 13;

/// Filters with more than `WIDEST` times the median bits are drawn at the
/// edge: to scale they would compress all others into a corner.
const WIDEST: f64 = 1.6;

/// A filter in the figure.
struct Mark {
    label: String,
    ours: bool,
    bits: f64,
    ns: f64,
}

/// Draws nanoseconds per lookup against bits per key, and the roofline, at
/// the first target measured.
pub(crate) fn svg(path: &Path, size: Size, rows: &[Row]) -> Result {
    let groups = Group::all(rows);
    let Some(group) = groups.iter().find(|group| group.size == size) else {
        return Ok(());
    };
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(SIZE.0 / 2);
    panel(&left, group, Mode::Single)?;
    panel(&right, group, Mode::Batch)?;
    root.present()?;
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn panel(area: &Area<'_>, group: &Group<'_>, mode: Mode) -> Result {
    let ns = |name| {
        let single = || group.ns(name, "miss", Mode::Single);
        group.ns(name, "miss", mode).or_else(single)
    };
    let mut marks: Vec<Mark> = group
        .filters()
        .iter()
        .filter(|row| row.fpr.is_some())
        .filter_map(|row| {
            let (name, bits) = (row.filter, row.bits_per_key);
            let ours = !crate::PEERS.contains(&name);
            Some(Mark { label: name.into(), ours, bits, ns: ns(name)? })
        })
        .collect();
    if marks.is_empty() {
        return Ok(());
    }
    let roofline = ns("roofline");
    marks.sort_by(|a, b| a.bits.total_cmp(&b.bits));
    let edge = WIDEST * marks[marks.len() / 2].bits;
    for mark in marks.iter_mut().filter(|mark| mark.bits > edge) {
        mark.label = format!("{} ({:.0} bits)", mark.label, mark.bits);
        mark.bits = edge;
    }
    let bits = || marks.iter().map(|mark| mark.bits);
    // Times of both modes: both panels have the same axis.
    let misses = || group.rows.iter().filter(|row| row.operation == "miss");
    let times = || misses().map(|row| row.ns_best);
    let lowest = times().fold(f64::INFINITY, f64::min) / 1.6;
    let highest = times().fold(0.0, f64::max) * 1.6;
    let least = bits().fold(f64::INFINITY, f64::min) - 1.0;
    // Space for the labels.
    let most = bits().fold(0.0, f64::max);
    let most = most + 0.35 * (most - least).max(6.0);
    let how = match mode {
        Mode::Single => "one key at a time",
        Mode::Batch => "in batches where supported",
    };
    let title = format!(
        "{}: misses {how}, target {}",
        group.size.name(),
        percent(group.target)
    );
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .caption(title, ("sans-serif", 16))
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(least..most, (lowest..highest).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("bits per key")
        .y_desc("ns per lookup")
        .light_line_style(WHITE)
        .y_label_formatter(&|ns| ns.to_string())
        .label_style(("sans-serif", TEXT))
        .axis_desc_style(("sans-serif", 14))
        .draw()?;
    if let Some(ns) = roofline {
        let line = [(least, ns), (most, ns)];
        chart.draw_series(LineSeries::new(line, BLACK.stroke_width(2)))?;
    }
    chart.draw_series(marks.iter().map(|mark| {
        let colour = if mark.ours { BLUE } else { VERMILION };
        Circle::new((mark.bits, mark.ns), 4, colour.filled())
    }))?;
    let mut labels: Vec<(i32, i32, &str)> = marks
        .iter()
        .map(|mark| {
            let (x, y) = chart.backend_coord(&(mark.bits, mark.ns));
            (x + 7, y - TEXT / 2, &mark.label[..])
        })
        .collect();
    if let Some(ns) = roofline {
        let (x, y) = chart.backend_coord(&(most, ns));
        labels.push((x - 60, y - TEXT - 2, "roofline"));
    }
    // Chart coordinates are relative to the figure, drawing to the panel.
    let (left, top) = area.get_base_pixel();
    for (x, y, name) in apart(labels) {
        let style = ("sans-serif", TEXT).into_font().color(&GREY);
        area.draw(&Text::new(name, (x - left, y - top), style))?;
    }
    Ok(())
}

/// Moves labels down until no two overlap.
fn apart(mut labels: Vec<(i32, i32, &str)>) -> Vec<(i32, i32, &str)> {
    labels.sort_by_key(|&(_, y, _)| y);
    let width = |name: &str| 7 * name.len() as i32;
    let mut placed: Vec<(i32, i32, &str)> = Vec::new();
    for (x, mut y, name) in labels {
        loop {
            let covered = placed.iter().find(|&&(left, top, other)| {
                (top - y).abs() < TEXT
                    && x < left + width(other)
                    && left < x + width(name)
            });
            match covered {
                Some((_, top, _)) => y = top + TEXT,
                None => break,
            }
        }
        placed.push((x, y, name));
    }
    placed
}
