//! Comparison of the kinds of filters for a task, and the choice of one:
//! `tamis plan` and the explorer.
//!
//! ```
//! use tamis_theory::plan::{Prefer, Size, Task};
//!
//! let task = Task {
//!     items: 1_000_000,
//!     size: Size::Fpr(0.001),
//!     miss_share: 0.9,
//!     block_bits: 512,
//!     prefer: Prefer::Space,
//! };
//! let comparison = task.compare()?;
//! assert_eq!(comparison.best().kind.name(), "tinyset");
//! assert_eq!(comparison.options(), "--kind tinyset");
//! # Ok::<(), tamis_theory::Error>(())
//! ```

mod choice;
mod kind;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{Prediction, Result, check};
use choice::Choice;

pub use choice::{Prefer, prefers_tinyset};
pub use kind::Kind;

/// Rate or memory of a filter.
///
/// ```
/// use tamis_theory::plan::{Kind, Size};
///
/// let by_rate = Kind::Bloom.predict(Size::Fpr(0.01), 512)?;
/// let size = Size::BitsPerKey(by_rate.bits_per_key);
/// assert!((Kind::Bloom.predict(size, 512)?.fpr - 0.01).abs() < 1e-9);
/// # Ok::<(), tamis_theory::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    /// False-positive rate.
    Fpr(f64),
    /// Bits of memory per key.
    BitsPerKey(f64),
}

/// Requirements of a filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Task {
    /// Number of keys.
    pub items: u64,
    /// Rate or memory.
    pub size: Size,
    /// Share of lookups for keys not in the set.
    pub miss_share: f64,
    /// Bits per block, 512 or 256.
    pub block_bits: u32,
    /// Objective of the choice.
    pub prefer: Prefer,
}

/// One kind of filter, with its settings for a task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Kind with its form.
    pub kind: Kind,
    /// Memory, rate and reads.
    pub prediction: Prediction,
    /// Memory of all keys.
    pub bytes: u64,
    /// Average over hits and misses.
    pub reads: f64,
}

/// All kinds that can do a task, and one of them that is recommended.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// In the order of [`Kind::ALL`], without the kinds that cannot have the
    /// size.
    pub candidates: Vec<Candidate>,
    /// Reason for the recommendation, as sentences.
    pub reason: String,
    /// Comparison of every other candidate with the recommended one.
    pub notes: Vec<String>,
    /// Index into `candidates`.
    recommended: usize,
    block_bits: u32,
}

impl Task {
    /// Predicts all kinds and chooses one.
    ///
    /// The choice starts from the default kind of `build`, which reads one
    /// block: [`Kind::TinySet`] if [`prefers_tinyset`], else
    /// [`Kind::Blocked`]. The other kinds follow in order of their reads, up
    /// to 1.3 per lookup. Each replaces the choice if it saves 5 % of the
    /// memory, or 25 % of the false positives of a given memory.
    ///
    /// Fails if a blocked, split or Bloom filter cannot have the size.
    ///
    /// ```
    /// use tamis_theory::plan::{Kind, Prefer, Size, Task};
    ///
    /// let task = Task {
    ///     items: 1000,
    ///     size: Size::BitsPerKey(40.0),
    ///     miss_share: 0.5,
    ///     block_bits: 512,
    ///     prefer: Prefer::Space,
    /// };
    /// let comparison = task.compare()?;
    /// assert_eq!(comparison.best().kind, Kind::Balanced);
    /// assert_eq!(comparison.best().bytes, 5000);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn compare(&self) -> Result<Comparison> {
        check::in_range("miss_share", self.miss_share, 0.0, 1.0)?;
        let mut candidates = Vec::new();
        for kind in Kind::ALL {
            match kind.predict(self.size, self.block_bits) {
                Ok(prediction) => {
                    candidates.push(self.candidate(kind, prediction));
                }
                Err(error) if kind.has_every_size() => return Err(error),
                // Out of reach of this kind.
                Err(_) => {}
            }
        }
        let choice = Choice::new(self, &candidates);
        let recommended = choice.best();
        Ok(Comparison {
            reason: choice.reason(recommended),
            notes: choice.notes(recommended),
            recommended,
            block_bits: self.block_bits,
            candidates,
        })
    }

    fn candidate(&self, kind: Kind, prediction: Prediction) -> Candidate {
        let Prediction { bits_per_key, reads_hit, reads_miss, .. } =
            prediction;
        let bytes = libm::ceil(self.items as f64 * bits_per_key / 8.0);
        Candidate {
            kind,
            prediction,
            bytes: bytes as u64,
            reads: self.miss_share * reads_miss
                + (1.0 - self.miss_share) * reads_hit,
        }
    }
}

impl Comparison {
    /// The recommended candidate.
    ///
    /// ```
    /// use tamis_theory::plan::{Prefer, Size, Task};
    ///
    /// let task = Task {
    ///     items: 1000,
    ///     size: Size::Fpr(0.01),
    ///     miss_share: 0.9,
    ///     block_bits: 256,
    ///     prefer: Prefer::Speed,
    /// };
    /// assert_eq!(task.compare()?.best().kind.name(), "blocked");
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn best(&self) -> &Candidate {
        &self.candidates[self.recommended]
    }

    /// Index of the recommended candidate.
    ///
    /// ```
    /// use tamis_theory::plan::{Prefer, Size, Task};
    ///
    /// let task = Task {
    ///     items: 1000,
    ///     size: Size::Fpr(0.1),
    ///     miss_share: 0.9,
    ///     block_bits: 512,
    ///     prefer: Prefer::Space,
    /// };
    /// assert_eq!(task.compare()?.recommended(), 0);
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn recommended(&self) -> usize {
        self.recommended
    }

    /// Options of `tamis build` for the recommended candidate.
    ///
    /// ```
    /// use tamis_theory::plan::{Prefer, Size, Task};
    ///
    /// let task = Task {
    ///     items: 1000,
    ///     size: Size::Fpr(0.01),
    ///     miss_share: 0.9,
    ///     block_bits: 256,
    ///     prefer: Prefer::Speed,
    /// };
    /// let options = task.compare()?.options();
    /// assert_eq!(options, "--kind blocked --block-bytes 32");
    /// # Ok::<(), tamis_theory::Error>(())
    /// ```
    pub fn options(&self) -> String {
        let kind = self.best().kind;
        let mut options = format!("--kind {}", kind.name());
        if let Some(levels @ 2..) = kind.levels() {
            options += &format!(" --levels {levels}");
        }
        if self.block_bits == 256 {
            options += " --block-bytes 32";
        }
        options
    }
}
