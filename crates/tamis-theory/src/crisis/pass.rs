//! Distribution of the items that one level passes on to the next.

use alloc::vec::Vec;

use crate::load::Load;

/// Chances below this are dropped, far below the smallest budget.
pub(super) const CUT: f64 = 1e-36;

/// The distribution of the items passed on, L_j, with the mean of the
/// arrivals L_(j-1) at each of its values.
pub(super) struct Passed {
    first: usize,
    /// P(L_j = c).
    chance: Vec<f64>,
    /// E(L_(j-1); L_j = c). The failures of a summary are sums over c of the
    /// items that stayed, the arrivals less c.
    arrived: Vec<f64>,
}

impl Passed {
    pub(super) fn zeros(first: usize, len: usize) -> Self {
        let zeros = alloc::vec![0.0; len];
        Passed { first, chance: zeros.clone(), arrived: zeros }
    }

    /// Adds `law`, the distribution for `arrivals` items, times `weight`.
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

    /// Adds chances and means for the values from `first` on, extending the
    /// range as needed.
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

    /// Drops values below [`CUT`] at both ends.
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

    /// The distribution of L_j alone, as arrivals at the next level.
    pub(super) fn law(&self) -> Load {
        Load { first: self.first, chance: self.chance.clone() }
    }

    pub(super) fn mean(&self) -> f64 {
        self.counts().zip(&self.chance).map(|(c, p)| c * p).sum()
    }

    /// E(N_j f(L_j)): the items that stayed, weighted by a function of the
    /// items passed on.
    pub(super) fn stayed(&self, f: impl Fn(f64) -> f64) -> f64 {
        let both = self.chance.iter().zip(&self.arrived);
        let terms = self.counts().zip(both).map(|(c, (p, arrived))| {
            // Rounding may make the difference negative.
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
    /// Asserts equal chances and means down to 1e-25, within `part`.
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
