//! Progress bars on stderr.

use std::io::{self, IsTerminal, Read};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter work has no bar.
const DELAY: Duration = Duration::from_millis(500);

/// Work during which a bar may be drawn.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Work {
    /// Shown before the bar.
    pub(crate) verb: &'static str,
    pub(crate) extent: Extent,
    pub(crate) reads_stdin: bool,
    pub(crate) prints_rows: bool,
}

/// Measure of progress.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Extent {
    /// Elapsed time.
    #[default]
    Time,
    /// Bytes of an input of unknown length.
    Stream,
    /// Bytes of an input of this length.
    Bytes(u64),
}

/// Standard streams that are terminals.
#[derive(Debug, Clone, Copy)]
struct Terminals {
    stdin: bool,
    stdout: bool,
    stderr: bool,
}

impl Terminals {
    fn detect() -> Self {
        Self {
            stdin: io::stdin().is_terminal(),
            stdout: io::stdout().is_terminal(),
            stderr: io::stderr().is_terminal(),
        }
    }

    /// True unless a bar would overwrite the typed input or the output.
    fn allow_bar(self, work: Work) -> bool {
        self.stderr
            && !(self.stdin && work.reads_stdin)
            && !(self.stdout && work.prints_rows)
    }
}

/// Progress bar that appears after half a second and is cleared when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Closing it ends the thread that waits to draw the bar.
    _done: Option<Sender<()>>,
}

impl Progress {
    pub(crate) fn new(work: Work) -> Self {
        let total = match work.extent {
            Extent::Bytes(total) => Some(total),
            Extent::Time | Extent::Stream => None,
        };
        let hidden = ProgressDrawTarget::hidden();
        let bar = ProgressBar::with_draw_target(total, hidden);
        let done = (Terminals::detect().allow_bar(work))
            .then(|| draw_later(&bar, work));
        Self { bar, _done: done }
    }

    /// Counts the bytes that are read from `reader`.
    pub(crate) fn wrap<R: Read>(&self, reader: R) -> impl Read + use<R> {
        self.bar.wrap_read(reader)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Does `work` with a spinner labelled `verb`.
pub(crate) fn during<T>(verb: &'static str, work: impl FnOnce() -> T) -> T {
    let _progress = Progress::new(Work { verb, ..Work::default() });
    work()
}

/// Draws the bar after [`DELAY`], unless it is dropped or the sender closed.
fn draw_later(bar: &ProgressBar, work: Work) -> Sender<()> {
    let template = match work.extent {
        Extent::Time => "{msg} {spinner} {elapsed}",
        Extent::Stream => "{msg} {spinner} {bytes} {bytes_per_sec} {elapsed}",
        Extent::Bytes(_) => {
            "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}"
        }
    };
    // The templates are constant and valid; an invalid one would keep the
    // default style.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(work.verb);
    let (done, is_done) = channel();
    let bar = bar.downgrade();
    std::thread::spawn(move || {
        let waited = is_done.recv_timeout(DELAY);
        if let (Err(RecvTimeoutError::Timeout), Some(bar)) =
            (waited, bar.upgrade())
        {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            // Ticks draw nothing after the bar is finished.
            bar.enable_steady_tick(Duration::from_millis(200));
        }
    });
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_disturb_neither_input_nor_output() {
        let shell = Terminals { stdin: true, stdout: true, stderr: true };
        let work = Work::default();
        let typing = Work { reads_stdin: true, ..work };
        let printing = Work { prints_rows: true, ..work };
        let all = [work, typing, printing];
        let allowed =
            |terminals: Terminals| all.map(|work| terminals.allow_bar(work));
        // tamis build FILE; tamis build; tamis query f FILE
        assert_eq!(allowed(shell), [true, false, false]);
        // zcat | tamis ...
        let pipe = Terminals { stdin: false, ..shell };
        assert_eq!(allowed(pipe), [true, true, false]);
        // tamis ... | wc
        let pipe = Terminals { stdout: false, ..shell };
        assert_eq!(allowed(pipe), [true, false, true]);
        // tamis ... 2> errors
        let log = Terminals { stderr: false, ..shell };
        assert_eq!(allowed(log), [false; 3]);
    }
}
