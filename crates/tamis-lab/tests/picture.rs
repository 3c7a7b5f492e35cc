//! The picture of all structures: its points are those of the formulas.

use tamis_lab::picture::{draw, measure};
use tamis_theory::limit;

#[test]
fn points_are_measured_where_the_theory_expects_them() {
    // Rates down to 0.1 %, with few false positives each.
    let series = measure(150.0, 1e-3).unwrap();
    assert_eq!(series.len(), 14);
    let mut points = 0;
    for one in &series {
        for point in &one.points {
            points += 1;
            let [low, high] = point.interval;
            let expected = point.expected_fpr;
            assert!(low <= expected && expected <= high, "{one:?}");
            assert!(point.lines_miss >= 1.0, "{one:?}");
            // Limits hold for every point, up to the interval of its rate.
            let least = limit::growing(high).unwrap();
            assert!(point.bits_per_key > least, "{one:?}");
        }
    }
    // Five rates of each of the product's kinds but two levels, which pay
    // at 0.1 % and below, and two of each baseline.
    assert_eq!(points, 6 * 5 + 1 + 7 * 2);
    let one_line = ["blocked", "tinyset", "tinyset, removable"];
    for one in series.iter().filter(|one| one_line.contains(&one.name)) {
        for point in &one.points {
            assert_eq!(point.lines_miss, 1.0);
            let line = limit::line_for_fpr(512, point.interval[1]).unwrap();
            assert!(point.bits_per_key > line.bits_per_key, "{one:?}");
        }
    }
    let svg = draw(&series).unwrap();
    assert_eq!(svg.matches("<title>").count(), 1 + points);
    for one in &series {
        assert!(svg.contains(&format!(">{}</text>", one.name)), "{one:?}");
    }
    assert!(svg.contains("prefers-color-scheme:dark"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}
