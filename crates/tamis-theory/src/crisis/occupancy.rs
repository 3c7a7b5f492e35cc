//! Buckets of one entry, item by item.
//!
//! After a items, c of which collided, a - c of m buckets are taken. The
//! next item collides with chance (a-c)/m, so that
//!
//! p_(a+1)(c) = p_a(c) (1-(a-c)/m) + p_a(c-1) (a-c+1)/m.
//!
//! All terms are positive, so every chance has relative accuracy, however
//! small. A random number of arrivals needs no second run: the distribution is
//! recorded at each of them.

use alloc::vec::Vec;

use super::pass::{CUT, Passed};
use crate::load::Load;

/// The items passed on by a level of `buckets` buckets of one entry.
pub(super) fn pass(arrivals: &Load, buckets: u64) -> Passed {
    let mut run = Run::new(buckets, arrivals.max());
    let mut passed = Passed::zeros(0, arrivals.max() + 1);
    for items in 0..=arrivals.max() {
        let weight = arrivals
            .chance
            .get(items.wrapping_sub(arrivals.first))
            .copied()
            .unwrap_or(0.0);
        if weight > 0.0 {
            passed.add(run.first, &run.chance, weight, items);
        }
        run.step(items);
    }
    passed.trimmed()
}

/// The distribution of the collisions, without tails below [`CUT`].
struct Run {
    first: usize,
    chance: Vec<f64>,
    /// Buffer for the next distribution.
    next: Vec<f64>,
    part: f64,
}

impl Run {
    fn new(buckets: u64, most: usize) -> Self {
        let mut chance = Vec::with_capacity(most + 2);
        chance.push(1.0);
        let next = Vec::with_capacity(most + 2);
        Run { first: 0, chance, next, part: 1.0 / buckets as f64 }
    }

    /// Adds one item after `items`.
    fn step(&mut self, items: usize) {
        let part = self.part;
        // `first <= items`: collisions never exceed the items.
        let taken = (items - self.first) as f64 * part;
        let free = |i: usize| (1.0 - (taken - i as f64 * part)).max(0.0);
        self.next.clear();
        self.next.push(self.chance[0] * free(0));
        self.next.extend(self.chance.windows(2).enumerate().map(
            |(i, pair)| {
                let hit = taken - i as f64 * part;
                pair[1] * (1.0 - (hit - part)).max(0.0) + pair[0] * hit
            },
        ));
        let last = self.chance.len() - 1;
        let hit = (taken - last as f64 * part).max(0.0);
        self.next.push(self.chance[last] * hit);
        core::mem::swap(&mut self.chance, &mut self.next);
        self.trim();
    }

    fn trim(&mut self) {
        while self.chance.len() > 1 && self.chance[self.chance.len() - 1] < CUT
        {
            self.chance.pop();
        }
        let small = self.chance.iter().take_while(|p| **p < CUT).count();
        // At least one value stays.
        let small = small.min(self.chance.len() - 1);
        if small > 0 {
            self.chance.drain(..small);
            self.first += small;
        }
    }
}
