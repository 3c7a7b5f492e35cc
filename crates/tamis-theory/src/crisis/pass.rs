//! What one level passes on to the next.

use alloc::vec::Vec;

use crate::load::Load;

/// Chances below this are dropped: no crisis asked for is so rare.
pub(super) const CUT: f64 = 1e-36;

/// The law of the items passed on, L_j, with the mean of those that
/// arrived, L_(j-1), on each of its values.
pub(super) struct Passed {
    first: usize,
    /// P(L_j = c).
    chance: Vec<f64>,
    /// E(L_(j-1); L_j = c), from which the failures of a summary follow as
    /// sums over c: items that stayed are those that arrived less c.
    arrived: Vec<f64>,
}

impl Passed {
    pub(super) fn zeros(first: usize, len: usize) -> Self {
        let zeros = alloc::vec![0.0; len];
        Passed { first, chance: zeros.clone(), arrived: zeros }
    }

    /// Adds the law that `arrivals` items lead to, which have this `weight`.
    pub(super) fn add(
        &mut self,
        first: usize,
        law: &[f64],
        weight: f64,
        arrivals: usize,
    ) {
        let at = first - self.first;
        let both = weight * arrivals as f64;
        let here = self.chance[at..].iter_mut().zip(&mut self.arrived[at..]);
        for ((chance, arrived), p) in here.zip(law) {
            *chance += weight * p;
            *arrived += both * p;
        }
    }

    /// Adds chances and means for the values from `first` on, making room
    /// for them.
    pub(super) fn add_patch(&mut self, first: usize, values: &[[f64; 2]]) {
        if self.chance.is_empty() {
            self.first = first;
        }
        let below = self.first.saturating_sub(first);
        let above = (first + values.len())
            .saturating_sub(self.first + self.chance.len());
        for sums in [&mut self.chance, &mut self.arrived] {
            sums.splice(..0, core::iter::repeat_n(0.0, below));
            sums.resize(sums.len() + above, 0.0);
        }
        self.first -= below;
        let at = first - self.first;
        let here = self.chance[at..].iter_mut().zip(&mut self.arrived[at..]);
        for ((chance, arrived), [p, a]) in here.zip(values) {
            *chance += p;
            *arrived += a;
        }
    }

    /// Without the values that never occur at either end.
    pub(super) fn trimmed(mut self) -> Self {
        let keep = |p: &f64| *p >= CUT;
        let end = self.chance.iter().rposition(keep).map_or(1, |i| i + 1);
        self.chance.truncate(end);
        self.arrived.truncate(end);
        let start = self.chance.iter().position(keep).unwrap_or(0);
        self.chance.drain(..start);
        self.arrived.drain(..start);
        self.first += start;
        self
    }

    /// The law by itself, as arrivals at the next level.
    pub(super) fn law(&self) -> Load {
        Load { first: self.first, chance: self.chance.clone() }
    }

    pub(super) fn mean(&self) -> f64 {
        self.counts().zip(&self.chance).map(|(c, p)| c * p).sum()
    }

    /// E(N_j f(L_j)): the items that stayed, each weighed by what the number
    /// of those passed on makes of it.
    pub(super) fn stayed(&self, f: impl Fn(f64) -> f64) -> f64 {
        let both = self.chance.iter().zip(&self.arrived);
        let terms = self.counts().zip(both).map(|(c, (p, arrived))| {
            // Rounding must not make fewer than none stay.
            (arrived - c * p).max(0.0) * f(c)
        });
        terms.sum()
    }

    fn counts(&self) -> impl Iterator<Item = f64> {
        (self.first..).map(|c| c as f64)
    }
}

#[cfg(test)]
impl Passed {
    /// Same chances down to 1e-25, with so many digits.
    pub(super) fn assert_same(&self, other: &Self, part: f64) {
        let at = |law: &Self, c: usize| {
            let i = c.checked_sub(law.first)?;
            Some((*law.chance.get(i)?, *law.arrived.get(i)?))
        };
        for (i, &p) in self.chance.iter().enumerate() {
            if p < 1e-25 {
                continue;
            }
            let c = self.first + i;
            let (q, arrived) = at(other, c).unwrap_or_default();
            assert!((q / p - 1.0).abs() < part, "{c}: {p:e} {q:e}");
            let ratio = arrived / self.arrived[i];
            assert!((ratio - 1.0).abs() < part, "{c}: {ratio}");
        }
    }
}
