//! Taking out one of several entries that match.

use alloc::collections::VecDeque;

use super::*;

const ELASTIC: Shape = Shape::new(LINE, Form::Elastic);

/// Choice among the matching entries of a removal.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// The longest fingerprint, as in [`DecodedBlock::remove`].
    MostSpecific,
    /// The first. Wrong: shows that the tests detect lost keys.
    FirstFound,
}

/// Which key makes room for a new one.
#[derive(Debug, Clone, Copy)]
enum Leaving {
    Any,
    Oldest,
}

type Key = (usize, u32, u64);

/// Many blocks whose keys are replaced by others.
struct Churn {
    blocks: Vec<DecodedBlock>,
    stored: VecDeque<Key>,
    random: Random,
    rule: Rule,
    leaving: Leaving,
}

impl Churn {
    fn new(blocks: usize, load: usize, rule: Rule, leaving: Leaving) -> Self {
        let empty = DecodedBlock::Holding(Contents::default());
        let mut churn = Self {
            blocks: vec![empty; blocks],
            stored: VecDeque::new(),
            random: Random(load as u64),
            rule,
            leaving,
        };
        for _ in 0..blocks * load {
            churn.insert();
        }
        churn
    }

    fn insert(&mut self) {
        let block = self.random.below(self.blocks.len());
        let chain = ELASTIC.chain(self.random.next());
        let fraction = self.random.next();
        let state = core::mem::replace(
            &mut self.blocks[block],
            DecodedBlock::Saturated,
        );
        self.blocks[block] =
            state.insert(&ELASTIC, Entry::new(chain, fraction));
        self.stored.push_back((block, chain, fraction));
    }

    fn remove(&mut self) {
        let leaving = match self.leaving {
            Leaving::Oldest => self.stored.pop_front(),
            Leaving::Any => {
                let at = self.random.below(self.stored.len());
                self.stored.swap_remove_back(at)
            }
        };
        let (block, chain, fraction) = leaving.unwrap();
        let state = &mut self.blocks[block];
        match self.rule {
            Rule::MostSpecific => {
                let removal = state.remove(&ELASTIC, chain, fraction);
                assert_eq!(removal, Removal::Removed, "lost");
            }
            Rule::FirstFound => remove_first(state, chain, fraction),
        }
    }

    /// Replaces `percent` percent of the keys.
    fn replace(&mut self, percent: usize) {
        for _ in 0..self.stored.len() * percent / 100 {
            self.insert();
            self.remove();
        }
    }

    /// How many keys are answered for; `literally` if an extra bit of 0 is
    /// always taken to be a 0.
    fn found(&self, literally: bool) -> usize {
        let answered = |&&(block, chain, fraction): &&Key| {
            let DecodedBlock::Holding(contents) = &self.blocks[block] else {
                return true;
            };
            let cut = ELASTIC.cut(contents.capacity);
            (0..).zip(&contents.entries).any(|(slot, entry)| {
                let known = match literally {
                    true => cut.width(slot),
                    false => entry.known,
                };
                let entry = Entry { known, ..*entry };
                entry.chain == chain && entry.matches(fraction)
            })
        };
        self.stored.iter().filter(answered).count()
    }

    /// Free slots, in percent of the entries.
    fn free(&self) -> f64 {
        let (mut capacity, mut entries) = (0, 0);
        for state in &self.blocks {
            let DecodedBlock::Holding(contents) = state else { continue };
            capacity += contents.capacity as usize;
            entries += contents.entries.len();
        }
        assert_eq!(entries, self.stored.len());
        (capacity - entries) as f64 / entries as f64 * 100.0
    }
}

fn remove_first(state: &mut DecodedBlock, chain: u32, fraction: u64) {
    let DecodedBlock::Holding(contents) = state else { return };
    let matching = |e: &Entry| e.chain == chain && e.matches(fraction);
    if let Some(at) = contents.entries.iter().position(matching) {
        contents.entries.remove(at);
        *state = core::mem::take(contents).settle(&ELASTIC);
    }
}

/// With every key replaced four times, on average.
#[test]
fn only_the_most_specific_rule_loses_nothing() {
    for load in [40, 56, 80] {
        let after = |rule| {
            let mut churn = Churn::new(512, load, rule, Leaving::Any);
            churn.replace(400);
            churn
        };
        let churn = after(Rule::MostSpecific);
        assert_eq!(churn.found(false), churn.stored.len(), "load {load}");
        // Two other rules lose keys, which shows that the assertion above
        // can fail.
        assert!(churn.found(true) < churn.stored.len(), "load {load}");
        let churn = after(Rule::FirstFound);
        assert!(churn.found(false) < churn.stored.len(), "load {load}");
    }
}

/// How many slots stay empty because fingerprints do not grow back: figure
/// 15 of the paper, whose percentages are of the entries there are, at a
/// load of 40.
#[test]
fn slots_left_empty_are_those_of_the_paper() {
    for (leaving, percentages) in [
        (Leaving::Any, [(50, 11.1), (50, 15.6), (900, 35.7)]),
        (Leaving::Oldest, [(50, 11.4), (50, 16.6), (900, 37.5)]),
    ] {
        let mut churn = Churn::new(2048, 40, Rule::MostSpecific, leaving);
        assert_eq!(churn.free(), 0.0);
        for (more, percentage) in percentages {
            churn.replace(more);
            let free = churn.free();
            assert!(
                (free - percentage).abs() < 0.5,
                "{leaving:?}, {more} % more: {free} instead of {percentage}"
            );
        }
        assert_eq!(churn.found(false), churn.stored.len());
    }
}

/// A stuck group whose entries differ in the extra bit, in a block that then
/// gets wider fingerprints.
#[test]
fn stuck_groups_are_not_divided() {
    const CHAIN: u32 = 0;
    // They agree in six bits.
    let (first, second) = (0, 1 << 57);
    let others: Vec<_> = (1..45).map(|chain| (chain, 0)).collect();
    let mut state = DecodedBlock::Holding(Contents::default());
    let copies = |fraction| [(CHAIN, fraction); 10];
    let keys = others.iter().copied().chain(copies(first));
    for (chain, fraction) in keys.chain(copies(second)) {
        if !state.refuses(&ELASTIC, chain, fraction) {
            state = state.insert(&ELASTIC, Entry::new(chain, fraction));
        }
    }
    // From the end, so that no entry moves to a slot with a bit it lacks.
    for &(chain, fraction) in others.iter().rev() {
        let removal = state.remove(&ELASTIC, chain, fraction);
        assert_eq!(removal, Removal::Removed);
    }
    let DecodedBlock::Holding(contents) = &state else { unreachable!() };
    assert_eq!(contents.entries.len(), 16);
    assert_eq!(ELASTIC.cut(contents.capacity).base, 6);
    let longer = contents.entries.iter().filter(|entry| entry.known > 6);
    assert_eq!(longer.count(), 16);

    let empty = DecodedBlock::Holding(Contents::default());
    let [left, _] = state.clone().split(&ELASTIC, false);
    let folded = state.fold(empty, &ELASTIC, false);
    for (mut state, second) in [(left, second << 1), (folded, second >> 1)] {
        for _ in 0..9 {
            let removal = state.remove(&ELASTIC, CHAIN, second);
            assert_eq!(removal, Removal::Stuck);
        }
        assert_ne!(state.count(&ELASTIC, CHAIN, second), Some(0), "lost");
    }
}
