//! Runs of pages of the data file, and which of them are free.

use std::collections::BTreeMap;

/// Length of a page in bytes.
pub(crate) const PAGE: u64 = 4096;

/// A run of pages.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
)]
pub(crate) struct Extent {
    /// First page.
    pub(crate) start: u64,
    /// Number of pages; an empty extent is nowhere.
    pub(crate) pages: u64,
}

impl Extent {
    /// Offset of the first byte.
    pub(crate) fn offset(self) -> u64 {
        self.start * PAGE
    }

    /// Page after the last.
    pub(crate) fn end(self) -> u64 {
        self.start + self.pages
    }
}

/// Most pages that a segment of `pages` pages leaves unused in its place. Short
/// segments leave none.
pub(crate) fn spare(pages: u64, slack: u64) -> u64 {
    if pages < 64 { 0 } else { pages / slack }
}

/// The free pages of the file.
#[derive(Debug)]
pub(crate) struct Extents {
    /// Free runs: first page and length. No two are adjacent, and none ends
    /// at `end`.
    free: BTreeMap<u64, u64>,
    /// Page after the last one in use.
    end: u64,
}

impl Extents {
    /// A file in which the first `reserved` pages and `used` are in use.
    /// `None` if two of them overlap.
    pub(crate) fn new(reserved: u64, mut used: Vec<Extent>) -> Option<Self> {
        used.retain(|extent| extent.pages > 0);
        used.sort_unstable();
        let mut extents = Self { free: BTreeMap::new(), end: reserved };
        for extent in used {
            if extent.start < extents.end {
                return None;
            }
            if extent.start > extents.end {
                let gap = extent.start - extents.end;
                extents.free.insert(extents.end, gap);
            }
            extents.end = extent.start.checked_add(extent.pages)?;
        }
        Some(extents)
    }

    /// Takes the shortest free run of `pages` pages or more, the first of equal
    /// ones, or extends the file.
    pub(crate) fn allocate(&mut self, pages: u64) -> Extent {
        let fits = self.free.iter().filter(|&(_, &len)| len >= pages);
        let fit = fits.min_by_key(|&(_, &len)| len);
        let fit = fit.map(|(&start, &len)| (start, len));
        self.take(fit, pages)
    }

    /// Takes a place for a segment of `pages` pages that may leave the share
    /// `1 / slack` of it unused: the shortest free run if that is not longer,
    /// else a part of it or an extension of the file, of few different lengths.
    pub(crate) fn allocate_place(&mut self, pages: u64, slack: u64) -> Extent {
        let fits = self.free.iter().filter(|&(_, &len)| len >= pages);
        let fit = fits.min_by_key(|&(_, &len)| len);
        let fit = fit.map(|(&start, &len)| (start, len));
        let most = pages + spare(pages, slack);
        let step = (pages / 16).max(1).next_power_of_two();
        let round = pages.next_multiple_of(step).min(most);
        let taken = match fit {
            Some((_, len)) if len <= most => len,
            Some((_, len)) => round.min(len),
            None => round,
        };
        self.take(fit, taken)
    }

    /// Takes the first free run of `pages` pages or more, or extends the file:
    /// low extents let the file be truncated.
    pub(crate) fn allocate_low(&mut self, pages: u64) -> Extent {
        let fit = self.free.iter().find(|&(_, &len)| len >= pages);
        let fit = fit.map(|(&start, &len)| (start, len));
        self.take(fit, pages)
    }

    /// Extends the file.
    pub(crate) fn allocate_last(&mut self, pages: u64) -> Extent {
        self.take(None, pages)
    }

    /// Takes `pages` pages of a free run, or extends the file.
    fn take(&mut self, run: Option<(u64, u64)>, pages: u64) -> Extent {
        let Some((start, len)) = run else {
            let start = self.end;
            self.end += pages;
            return Extent { start, pages };
        };
        self.free.remove(&start);
        if len > pages {
            self.free.insert(start + pages, len - pages);
        }
        Extent { start, pages }
    }

    /// Returns an extent.
    pub(crate) fn release(&mut self, extent: Extent) {
        if extent.pages == 0 {
            return;
        }
        let (mut start, mut end) = (extent.start, extent.end());
        if let Some((&before, &len)) = self.free.range(..start).next_back() {
            if before + len == start {
                self.free.remove(&before);
                start = before;
            }
        }
        if let Some(len) = self.free.remove(&end) {
            end += len;
        }
        match end == self.end {
            true => self.end = start,
            false => {
                self.free.insert(start, end - start);
            }
        }
    }

    /// Takes all free runs, and the pages up to `end`.
    pub(crate) fn take_all(&mut self, end: u64) -> Vec<Extent> {
        let mut taken: Vec<_> = self.runs().collect();
        self.free.clear();
        if end > self.end {
            let (start, pages) = (self.end, end - self.end);
            taken.push(Extent { start, pages });
            self.end = end;
        }
        taken
    }

    /// Page after the last one in use: the file may end there.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Number of free pages before the end.
    pub(crate) fn free_pages(&self) -> u64 {
        self.free.values().sum()
    }

    /// The free runs before the end.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Extent> + '_ {
        self.free.iter().map(|(&start, &pages)| Extent { start, pages })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn extents_never_overlap(
            ops in prop::collection::vec((1..20u64, any::<bool>()), 1..200)
        ) {
            let mut extents = Extents::new(2, vec![]).unwrap();
            let mut held: Vec<Extent> = Vec::new();
            for (n, release) in ops {
                if release && !held.is_empty() {
                    let extent = held.swap_remove(n as usize % held.len());
                    extents.release(extent);
                } else {
                    held.push(extents.allocate(n));
                }
                let mut all = held.clone();
                let used: u64 = held.iter().map(|e| e.pages).sum();
                prop_assert_eq!(
                    2 + used + extents.free_pages(), extents.end()
                );
                all.extend(extents.runs());
                all.sort();
                let again = Extents::new(2, all).unwrap();
                prop_assert_eq!(again.free_pages(), 0);
                prop_assert_eq!(again.end(), extents.end());
                let again = Extents::new(2, held.clone()).unwrap();
                prop_assert_eq!(&again.free, &extents.free);
            }
        }
    }

    #[test]
    fn overlaps_are_refused() {
        let extent = |start, pages| Extent { start, pages };
        assert!(Extents::new(2, vec![extent(1, 1)]).is_none());
        assert!(Extents::new(2, vec![extent(4, 2), extent(5, 1)]).is_none());
        assert!(Extents::new(2, vec![extent(4, u64::MAX - 2)]).is_none());
        assert!(Extents::new(2, vec![extent(4, 2), extent(6, 1)]).is_some());
    }
}
