//! Progress bar on stderr.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Progress in bytes read: a bar with rate and remaining time, or a spinner
/// if `total` is unknown. Draws nothing unless stderr is a terminal.
pub(crate) fn bytes(verb: &'static str, total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (
            ProgressBar::new(total),
            "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
        ),
        None => (
            ProgressBar::new_spinner(),
            "{msg} {spinner} {bytes} {bytes_per_sec} {elapsed}",
        ),
    };
    // Both templates are constant and valid; an invalid one would keep the
    // default style.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(verb);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
