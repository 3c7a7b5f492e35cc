//! The cache lines that a lookup reads.

/// Bits of a cache line.
const LINE: u64 = 512;

/// Different cache lines read so far.
///
/// ```
/// use tamis_lab::baseline::Lines;
///
/// let mut lines = Lines::counted();
/// lines.read(510, 4);
/// lines.read(0, 1);
/// assert_eq!(lines.count(), 2);
/// ```
#[derive(Debug, Clone)]
pub struct Lines {
    /// `None`: nothing is recorded.
    seen: Option<Vec<u64>>,
}

impl Lines {
    /// Records lines.
    ///
    /// ```
    /// assert_eq!(tamis_lab::baseline::Lines::counted().count(), 0);
    /// ```
    pub fn counted() -> Self {
        Self { seen: Some(Vec::new()) }
    }

    /// Records nothing, for lookups that only need the answer.
    ///
    /// ```
    /// let mut lines = tamis_lab::baseline::Lines::ignored();
    /// lines.read(0, 8);
    /// assert_eq!(lines.count(), 0);
    /// ```
    pub fn ignored() -> Self {
        Self { seen: None }
    }

    /// Records the lines of `width` bits from bit `at`.
    ///
    /// ```
    /// let mut lines = tamis_lab::baseline::Lines::counted();
    /// lines.read(0, 1025);
    /// assert_eq!(lines.count(), 3);
    /// ```
    pub fn read(&mut self, at: u64, width: u64) {
        let Some(seen) = &mut self.seen else { return };
        for line in at / LINE..(at + width).div_ceil(LINE) {
            if !seen.contains(&line) {
                seen.push(line);
            }
        }
    }

    /// Whether lines are recorded.
    pub(crate) fn counting(&self) -> bool {
        self.seen.is_some()
    }

    /// Number of different lines.
    ///
    /// ```
    /// assert_eq!(tamis_lab::baseline::Lines::ignored().count(), 0);
    /// ```
    pub fn count(&self) -> usize {
        self.seen.as_ref().map_or(0, Vec::len)
    }

    /// Forgets all lines.
    ///
    /// ```
    /// let mut lines = tamis_lab::baseline::Lines::counted();
    /// lines.read(0, 1);
    /// lines.clear();
    /// assert_eq!(lines.count(), 0);
    /// ```
    pub fn clear(&mut self) {
        if let Some(seen) = &mut self.seen {
            seen.clear();
        }
    }
}
