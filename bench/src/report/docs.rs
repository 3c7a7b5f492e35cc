//! The section of `docs/benchmarks.md` that compares filters.

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

/// The columns of ratios: an operation over the same one of another filter.
const RATIOS: [(&str, Mode, &str, Mode); 7] = [
    ("miss", Mode::Single, "roofline", Mode::Single),
    ("miss", Mode::Batch, "roofline", Mode::Batch),
    ("hit", Mode::Batch, "roofline", Mode::Batch),
    ("miss", Mode::Single, "sbbf-rs", Mode::Single),
    ("hit", Mode::Single, "sbbf-rs", Mode::Single),
    ("miss", Mode::Batch, "sbbf-rs", Mode::Single),
    ("insert", Mode::Single, "sbbf-rs", Mode::Single),
];

/// The section of all machines, without the instruction counts.
const METHOD: &str = "\
## Filters

```console
$ cargo xtask bench --write-docs
```

Times are nanoseconds of processor time per key on one core, the best of
several repetitions. The second table of each target gives ratios. Each machine
has a section below; a run replaces the section of its machine.

### Method

* **roofline**: one load of a random 64-byte line per key, from an array of the
  blocked filter's size, at an address computed from a hash; batches use the
  same prefetch as the Bloom filters of tamis. Random reads are hardly faster
  than this. `cargo xtask bench window` measures the instructions that fit
  beside such a load.
* **Equal footing**: every filter is the smallest one its crate offers for
  the target. Bits per key are the bytes allocated; the rate is measured with
  keys that are not members. `!` marks a rate that misses the target: the
  fingerprints of cuckoofilter always have 8 bits. `blocked-as-sbbf` and
  `tinyset-as-sbbf` have the memory of sbbf-rs; `tinyset-half` has blocks of
  half a line, which take a little more memory than lines.
* **Hashes** are 64-bit hashes passed to the filter. bloomfilter and
  cuckoofilter accept none and hash them again. Integers and strings (20
  bytes) are hashed by the filter with its crate's default; sbbf-rs and xorf
  have none and use XXH3 as tamis does (xorf for strings only).
* **miss**, **hit**, **mixed** (nine misses to a hit): a loop over keys that
  adds up the answers. **batch**: 4096 keys at a time. **insert**: one by
  one, into a filter that fills up (in DRAM: into the last percent).
  **build**: the whole filter by the fastest documented method, allocation
  included.
* Filters run in turn, in a new random order each round; batches run four times
  a round, in DRAM ten times. In the caches an untimed loop precedes the timed
  one. In DRAM the caches are filled with other memory first, and between
  rounds every filter of tamis and the roofline move to other memory, because
  the memory of a virtual machine is not uniform. Each loop's answers are
  compared with those of single lookups; a lost key ends the run.

### Goals

The first table of a machine: each row shows the cell in which the goal is
furthest from being reached; a ratio above the limit misses the goal. Ratios to
the roofline are of batches in DRAM. sbbf-rs has no batches, so that batches
are compared with its single lookups. [Limits](#limits) lists the causes of
slow cells.
";

/// The settings of a run that the section states.
pub(crate) struct Run {
    pub(crate) command: String,
    pub(crate) pages: HugePages,
    /// Large filters built at the same time.
    pub(crate) builders: usize,
}

/// The sections of `docs/benchmarks.md`: that of all machines, and that of
/// this one.
pub(crate) struct Sections {
    pub(crate) shared: String,
    pub(crate) own: String,
}

pub(crate) fn docs(
    run: &Run,
    machine: &Machine,
    rows: &[Row],
) -> Result<Sections> {
    let groups = Group::all(rows);
    let mut text = head(run, machine);
    let _ = write!(text, "\n### Goals\n\n{}", goals(rows)?);
    for size in Size::ALL {
        let here: Vec<&Group<'_>> =
            groups.iter().filter(|group| group.size == size).collect();
        let Some(first) = here.first() else { continue };
        let _ = write!(text, "\n### {}\n\n", size.title());
        let _ = writeln!(
            text,
            "![Misses in {}: time against bits per key](img/{})",
            size.name(),
            picture(machine, size)
        );
        for group in &here {
            if group.keys == KeyType::Hash {
                let target = percent(group.target);
                let _ = write!(text, "\n#### Target {target}, hashes\n\n");
                text += &times(group);
                text += &ratios(group);
            }
        }
        for group in &here {
            if group.keys != KeyType::Hash && group.target == first.target {
                let (target, keys) =
                    (percent(group.target), group.keys.title());
                let _ = write!(text, "\n#### Target {target}, {keys}\n\n");
                text += &times(group);
            }
        }
    }
    let instructions = instructions();
    let shared = format!("{METHOD}\n### Instructions\n\n{instructions}");
    Ok(Sections { shared, own: text })
}

/// File name of a figure.
pub(crate) fn picture(machine: &Machine, size: Size) -> String {
    format!("bench-{}-{}.svg", machine.key(), size.name())
}

fn head(run: &Run, machine: &Machine) -> String {
    let instructions = instruction_set();
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
            "* In DRAM this run built two filters at a time: compare times of \
             **build** only\n  roughly.\n"
        }
    };
    format!(
        "\
## Filters on {}

```console
$ {command}
```

* Machine: {machine}. tamis uses {instructions} on it.
* {RUSTC}, release with link-time optimisation, no `target-cpu`.
* Memory: {pages}.
* Peers: {peers}.
{build}",
        machine.processor()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_written_by_this_code() {
        let page = include_str!("../../../docs/benchmarks.md");
        assert!(page.contains(METHOD));
    }
}
