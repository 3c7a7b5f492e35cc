//! For the reader of the documents.

use std::fmt::Write as _;

use super::{Group, Row, goals, instructions, percent};
use crate::contender::Mode;
use crate::keys::KeyType;
use crate::machine::{HugePages, Machine, RUSTC, instruction_set, version_of};
use crate::subject::Result;
use crate::{PEERS, Size};

/// The columns of times.
const TIMES: [(&str, &str, Mode); 8] = [
    ("miss", "miss", Mode::Single),
    ("hit", "hit", Mode::Single),
    ("mixed", "mixed", Mode::Single),
    ("miss, batch", "miss", Mode::Batch),
    ("hit, batch", "hit", Mode::Batch),
    ("mixed, batch", "mixed", Mode::Batch),
    ("insert", "insert", Mode::Single),
    ("build", "build", Mode::Batch),
];

/// The columns of ratios: an operation, over the same one of whom.
const RATIOS: [(&str, Mode, &str, Mode); 7] = [
    ("miss", Mode::Single, "roofline", Mode::Single),
    ("miss", Mode::Batch, "roofline", Mode::Batch),
    ("hit", Mode::Batch, "roofline", Mode::Batch),
    ("miss", Mode::Single, "sbbf-rs", Mode::Single),
    ("hit", Mode::Single, "sbbf-rs", Mode::Single),
    ("miss", Mode::Batch, "sbbf-rs", Mode::Single),
    ("insert", Mode::Single, "sbbf-rs", Mode::Single),
];

/// What has to be known of a run.
pub(crate) struct Run {
    pub(crate) command: String,
    pub(crate) pages: HugePages,
    /// Large filters built at the same time.
    pub(crate) builders: usize,
}

/// The whole page.
pub(crate) fn docs(run: &Run, rows: &[Row]) -> Result<String> {
    let groups = Group::all(rows);
    let mut text = head(run);
    text += "
## Goals

The worst cell of each; more than \"wanted\" is not reached. Against the
roofline: batches in DRAM. Against sbbf-rs: in the caches, where a batch of
ours counts against its single lookups, because it has no other. What keeps
the others from being reached is in [limits](limits.md).

";
    text += &goals(rows)?;
    let _ = write!(text, "\n## Instructions\n\n{}", instructions());
    for size in Size::ALL {
        let here: Vec<&Group<'_>> =
            groups.iter().filter(|group| group.size == size).collect();
        let Some(first) = here.first() else { continue };
        let _ = write!(text, "\n## {}\n\n", size.title());
        let _ = writeln!(
            text,
            "![Misses in {0}: time against bits per key](img/bench-{0}.svg)",
            size.name()
        );
        for group in &here {
            if group.keys == KeyType::Hash {
                let target = percent(group.target);
                let _ = write!(text, "\n### Target {target}, hashes\n\n");
                text += &times(group);
                text += &ratios(group);
            }
        }
        for group in &here {
            if group.keys != KeyType::Hash && group.target == first.target {
                let (target, keys) =
                    (percent(group.target), group.keys.title());
                let _ = write!(text, "\n### Target {target}, {keys}\n\n");
                text += &times(group);
            }
        }
    }
    Ok(text)
}

fn head(run: &Run) -> String {
    let (machine, instructions) = (Machine::this(), instruction_set());
    let mut peers: Vec<String> = Vec::new();
    for name in PEERS {
        if let Some(version) = version_of(name) {
            peers.push(format!("{name} {version}"));
        }
    }
    let peers = peers.join(", ");
    let Run { command, pages, .. } = run;
    let build = match run.builders {
        1 => "",
        _ => {
            " (In DRAM two filters were built at a time in this run: a time \
             for orientation.)"
        }
    };
    format!(
        "\
# Benchmarks

```console
$ {command}
```

wrote this page from its own measurements; do not edit. Times are nanoseconds
of processor time per key on one core, the best of several repetitions. Only
ratios within one run mean anything, and that is what the second table of
each section gives.

* Machine: {machine}. tamis uses {instructions} on it.
* {RUSTC}, release with link-time optimisation, no `target-cpu`.
* Memory: {pages}.
* Peers: {peers}.

## What is measured

* **roofline**: one load of a random line of 64 bytes per key from as much
  memory as the blocked filter has, its address computed from a hash; in
  batches with the same prefetch as the Bloom filters of tamis. Nothing that
  reads memory at random is much faster; what a processor can do besides,
  and what not, is in [limits](limits.md).
* **Equal footing**: every filter is the smallest one its crate offers for
  the target. Bits per key are the bytes the allocator gave out, the rate is
  measured with keys that are not members. `!` marks a rate that misses the
  target: the fingerprints of cuckoofilter have 8 bits, whatever is wanted.
  `blocked-as-sbbf` and `tinyset-as-sbbf` have the memory of sbbf-rs, and
  `tinyset-half` has blocks of half a line, which takes a little more memory
  than lines do.
* **Hashes** are 64-bit hashes given to the filter. bloomfilter and
  cuckoofilter take none, and hash them once more. Integers and strings (20
  bytes) are hashed by the filter with what its crate uses; sbbf-rs and xorf
  bring nothing and get XXH3, as tamis has it (xorf for strings only).
* **miss**, **hit**, **mixed** (nine misses to a hit): a loop over keys whose
  answers are added up. **batch**: 4096 keys at a time. **insert**: one by
  one, into a filter that fills up (in DRAM: into the last percent).
  **build**: everything in the fastest way documented, allocation
  included.{build}
* Filters run in turn, in a new random order each round, batches four times a
  round, and in DRAM ten times. In the caches a loop runs once before it is
  timed; in DRAM other memory is read first, so that no line is left in a
  cache, and between two rounds every filter of tamis and the roofline move
  to other memory: on a virtual machine not all of it is alike. Each loop's
  answers are compared with those of a lookup of each key alone; a lost key
  ends the run.
"
    )
}

/// Nanoseconds.
fn times(group: &Group<'_>) -> String {
    let titles: Vec<&str> = TIMES.iter().map(|(title, ..)| *title).collect();
    let mut lines = vec![
        format!("| ns | bits per key | rate | {} |", titles.join(" | ")),
        format!("|{}", "---|".repeat(TIMES.len() + 3)),
    ];
    for row in group.filters() {
        let over = if row.misses_target() { "!" } else { "" };
        let rate = row.fpr.map_or(String::new(), percent) + over;
        let times: Vec<String> = TIMES
            .iter()
            .map(|&(_, operation, mode)| {
                cell(group.ns(row.filter, operation, mode), 1)
            })
            .collect();
        let (name, bits) = (row.filter, row.bits_per_key);
        let times = times.join(" | ");
        lines.push(format!("| {name} | {bits:.2} | {rate} | {times} |"));
    }
    lines.join("\n") + "\n"
}

/// Times as multiples of another filter's.
fn ratios(group: &Group<'_>) -> String {
    let titles: Vec<String> = RATIOS
        .iter()
        .map(|(operation, mode, of, _)| match mode {
            Mode::Single => format!("{operation} / {of}"),
            Mode::Batch => format!("{operation}, batch / {of}"),
        })
        .collect();
    let mut lines = vec![
        String::new(),
        format!("| times | {} |", titles.join(" | ")),
        format!("|{}", "---|".repeat(RATIOS.len() + 1)),
    ];
    for row in group.filters() {
        let name = row.filter;
        let ratios: Vec<String> = RATIOS
            .iter()
            .map(|&(operation, mode, of, of_mode)| {
                let ns = group.ns(name, operation, mode);
                let unit = group.ns(of, operation, of_mode);
                cell(ns.zip(unit).map(|(ns, unit)| ns / unit), 2)
            })
            .collect();
        if name != "roofline" {
            lines.push(format!("| {name} | {} |", ratios.join(" | ")));
        }
    }
    lines.join("\n") + "\n"
}

fn cell(number: Option<f64>, digits: usize) -> String {
    number.map_or(String::new(), |number| format!("{number:.digits$}"))
}
