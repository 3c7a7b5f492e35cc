//! Lookups one by one and in batches: one engine for all structures.
//!
//! A lookup is a sequence of *rounds*, each of which reads one block. In a
//! batch, the block of a later key is already on its way from memory while
//! an earlier one is tested. Keys that need a second block wait until there
//! are enough of them to do the same with each other.

pub(crate) mod together;

use alloc::vec::Vec;

use crate::simd::{Backend, Task, dispatch};

/// How many keys ahead a block is asked for if it is in a cache, and how
/// many items ahead if it is changed.
const AHEAD: usize = 32;

/// Up to how many bytes all blocks are likely to be in a cache.
pub(crate) const CACHE: usize = 16 << 20;

/// And in the second-level one.
pub(crate) const SMALL_CACHE: usize = 1 << 20;

/// Keys handled together, round by round: bounds the list of survivors.
const CHUNK: usize = 4096;

/// What one round of a lookup says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Certainly absent.
    No,
    /// The next round decides.
    Next,
    /// Maybe present.
    Yes,
}

/// A structure seen as rounds of block reads.
pub(crate) trait Staged: Copy {
    /// How many keys ahead a block is asked for if it is in memory, and one
    /// round decides.
    ///
    /// Far enough that the processor has as many lines on their way as it
    /// can; nearer for tests that wait for their block even when it is
    /// there. See `docs/dev/performance-log.md`.
    const AHEAD: usize = GROUP;

    /// Up to how many bytes blocks are asked for into the first-level cache,
    /// which has room for few of them on their way.
    const CACHED: usize;

    /// Bytes up to which nothing needs to be asked for, since the processor
    /// looks far enough ahead by itself.
    const UNASKED: usize = 0;

    /// The first round, which every key goes through, and the others: what
    /// they need, in so few words that a loop keeps them in registers.
    type First: Round;
    type Later: Round;

    /// Bytes of all blocks.
    fn bytes(&self) -> usize;

    fn first(&self) -> Self::First;

    /// The `number`-th round, from one.
    fn later(&self, number: u32) -> Self::Later;

    /// Whether one round decides every lookup.
    #[inline(always)]
    fn is_one_round(&self) -> bool {
        false
    }
}

/// One of the rounds.
pub(crate) trait Round: Copy {
    /// What is worked out before the block is there, and kept until it is.
    type Plan: Copy + Default;

    /// Whether a step ends in different places for different answers. Then
    /// nothing need be written for keys that are not there.
    const BRANCHES: bool = false;

    /// The same round, for a loop over many keys.
    type Many: Round;

    fn for_many(self) -> Self::Many;

    fn plan(&self, hash: u64) -> Self::Plan;

    /// Asks for the block that this round of a lookup will read.
    fn ask<const CACHED: bool>(&self, hash: u64, plan: Self::Plan);

    /// Performs the round.
    fn step<B: Backend>(
        &self,
        backend: B,
        hash: u64,
        plan: Self::Plan,
    ) -> Step;

    /// Plans and performs the round.
    #[inline(always)]
    fn go<B: Backend>(&self, backend: B, hash: u64) -> Step {
        self.step(backend, hash, self.plan(hash))
    }
}

/// A round of which nothing is kept until its block is there.
pub(crate) trait Unplanned: Copy {
    /// As in [`Round`].
    fn ask<const CACHED: bool>(&self, hash: u64);

    fn step<B: Backend>(&self, backend: B, hash: u64) -> Step;
}

impl<R: Unplanned> Round for R {
    const BRANCHES: bool = true;

    type Plan = ();
    type Many = Self;

    #[inline(always)]
    fn for_many(self) -> Self {
        self
    }

    #[inline(always)]
    fn plan(&self, _: u64) {}

    #[inline(always)]
    fn ask<const CACHED: bool>(&self, hash: u64, (): ()) {
        Unplanned::ask::<CACHED>(self, hash);
    }

    #[inline(always)]
    fn step<B: Backend>(&self, backend: B, hash: u64, (): ()) -> Step {
        Unplanned::step(self, backend, hash)
    }
}

/// One lookup.
#[inline(always)]
pub(crate) fn all_rounds<S: Staged, B: Backend>(
    structure: S,
    backend: B,
    hash: u64,
) -> bool {
    let mut step = structure.first().go(backend, hash);
    let mut number = 0;
    while step == Step::Next {
        number += 1;
        step = structure.later(number).go(backend, hash);
    }
    step == Step::Yes
}

/// Many lookups; `found` is overwritten.
pub(crate) fn contains_all<S: Staged>(
    structure: S,
    hashes: &[u64],
    found: &mut [bool],
) {
    struct Many<'a, S>(S, &'a [u64], &'a mut [bool]);
    impl<S: Staged> Task for Many<'_, S> {
        type Output = ();

        #[inline(always)]
        fn run<B: Backend>(self, backend: B) {
            let Self(structure, hashes, found) = self;
            look_up(structure, backend, hashes, found);
        }
    }
    found.fill(false);
    dispatch(Many(structure, hashes, found));
}

/// Many lookups, each with its place in `found`, where nothing is found yet.
#[inline(always)]
pub(crate) fn look_up<S: Staged, B: Backend>(
    structure: S,
    backend: B,
    hashes: &[u64],
    found: &mut [bool],
) {
    if structure.is_one_round() {
        let round = structure.first().for_many();
        OneRound { structure, round, hashes, found }.go(backend);
    } else if structure.bytes() <= S::UNASKED {
        // Then survivors need not be put off, either.
        for (&hash, found) in hashes.iter().zip(found) {
            *found = all_rounds(structure, backend, hash);
        }
    } else {
        let rounds = Rounds { structure, hashes, found };
        match structure.bytes() <= S::CACHED {
            true => rounds.look_up::<_, true>(backend),
            false => rounds.look_up::<_, false>(backend),
        }
    }
}

/// Where blocks are asked for.
const NOWHERE: u8 = 0;
const NEAR: u8 = 1;
const FAR: u8 = 2;

/// Lookups that one round decides.
struct OneRound<'a, S, R> {
    structure: S,
    round: R,
    hashes: &'a [u64],
    found: &'a mut [bool],
}

impl<S: Staged, R: Round> OneRound<'_, S, R> {
    #[inline(always)]
    fn go<B: Backend>(self, backend: B) {
        let bytes = self.structure.bytes();
        if bytes <= S::UNASKED {
            self.look_up::<_, NOWHERE, AHEAD>(backend);
        } else if bytes <= S::CACHED {
            self.look_up::<_, NEAR, AHEAD>(backend);
        } else if S::AHEAD <= AHEAD {
            self.look_up::<_, FAR, AHEAD>(backend);
        } else {
            self.look_up::<_, FAR, GROUP>(backend);
        }
    }

    /// Out of line, so that the loop has the registers for itself.
    #[inline(always)]
    fn look_up<B: Backend, const WHERE: u8, const N: usize>(self, backend: B) {
        backend.outline(Ahead::<_, _, WHERE, N>(self));
    }
}

/// Each key planned, and its block asked for, `N` keys earlier.
struct Ahead<'a, S, R, const WHERE: u8, const N: usize>(OneRound<'a, S, R>);

impl<S: Staged, R: Round, const WHERE: u8, const N: usize> Task
    for Ahead<'_, S, R, WHERE, N>
{
    type Output = ();

    #[inline(always)]
    fn run<B: Backend>(self, backend: B) {
        let Self(OneRound { round, hashes, found, .. }) = self;
        // Those of the next keys, in turn.
        let mut plans = [Default::default(); N];
        for (plan, &hash) in plans.iter_mut().zip(hashes) {
            *plan = ahead_of::<_, WHERE>(round, hash);
        }
        // Keys that have another to plan, and those that do not: nobody has
        // to ask at every key. Windows, where two iterators would be one
        // more address to keep.
        let early = hashes.len().saturating_sub(N);
        let (found, found_later) = found.split_at_mut(early);
        for (at, (window, found)) in
            hashes.windows(N + 1).zip(found).enumerate()
        {
            let next = ahead_of::<_, WHERE>(round, window[N]);
            let plan = core::mem::replace(&mut plans[at % N], next);
            say(found, round.step(backend, window[0], plan), R::BRANCHES);
        }
        let later = (early..).zip(&hashes[early..]).zip(found_later);
        for ((at, &hash), found) in later {
            let plan = plans[at % N];
            say(found, round.step(backend, hash, plan), R::BRANCHES);
        }
    }
}

/// Says whether a key was found; it is known that nobody has said so yet.
#[inline(always)]
fn say(found: &mut bool, step: Step, branches: bool) {
    let yes = step == Step::Yes;
    if !branches {
        *found = yes;
    } else if yes {
        *found = true;
    }
}

/// Plans a lookup and asks for its block.
#[inline(always)]
fn ahead_of<R: Round, const WHERE: u8>(round: R, hash: u64) -> R::Plan {
    let plan = round.plan(hash);
    match WHERE {
        NOWHERE => {}
        NEAR => round.ask::<true>(hash, plan),
        _ => round.ask::<false>(hash, plan),
    }
    plan
}

/// Keys that take a step together: what is said of them is a word.
const GROUP: usize = 64;

/// The plans of a group.
type Plans<R> = [<R as Round>::Plan; GROUP];

/// One round of up to a group of keys, whose blocks were asked for, while
/// those of up to a group of later keys are.
///
/// What is said of a key is a bit. To write survivors down at once would be
/// a store of which nobody knows where it goes until a block has come, and
/// what is asked for meanwhile would wait for that. And a branch would be
/// guessed wrong all the time.
struct Group<'a, R: Round, const CACHED: bool> {
    round: R,
    keys: &'a [u64],
    later: &'a [u64],
    /// Of the keys, and then of the later ones.
    plans: &'a mut Plans<R>,
}

/// What a round said of a group, a bit for each key.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    yes: u64,
    next: u64,
}

impl<R: Round, const CACHED: bool> Task for Group<'_, R, CACHED> {
    type Output = Said;

    #[inline(always)]
    fn run<B: Backend>(self, backend: B) -> Said {
        let Self { round, keys, later, plans } = self;
        let mut said = Said::default();
        type All = [u64; GROUP];
        match (<&All>::try_from(keys), <&All>::try_from(later)) {
            (Ok(keys), Ok(later)) => {
                for (at, ((plan, &hash), &later)) in
                    plans.iter_mut().zip(keys).zip(later).enumerate()
                {
                    let next = round.plan(later);
                    round.ask::<CACHED>(later, next);
                    let plan = core::mem::replace(plan, next);
                    let step = round.step(backend, hash, plan);
                    if step == Step::Yes {
                        said.yes |= 1 << at;
                    }
                    // The wrong way round, which is an instruction less.
                    said.next <<= 1;
                    said.next |= u64::from(step == Step::Next);
                }
                said.next = said.next.reverse_bits();
            }
            _ => {
                for (at, (&plan, &hash)) in plans.iter().zip(keys).enumerate()
                {
                    match round.step(backend, hash, plan) {
                        Step::No => {}
                        Step::Next => said.next |= 1 << at,
                        Step::Yes => said.yes |= 1 << at,
                    }
                }
                for (plan, &hash) in plans.iter_mut().zip(later) {
                    *plan = round.plan(hash);
                    round.ask::<CACHED>(hash, *plan);
                }
            }
        }
        said
    }
}

/// Lookups that may take several rounds.
struct Rounds<'a, S> {
    structure: S,
    hashes: &'a [u64],
    found: &'a mut [bool],
}

impl<S: Staged> Rounds<'_, S> {
    /// The second round follows the first at a distance: there are always
    /// blocks on their way, whichever round they are for.
    #[inline(always)]
    fn look_up<B: Backend, const CACHED: bool>(self, backend: B) {
        let Self { structure, hashes, found } = self;
        let mut waiting = Waiting::of(hashes.len());
        let round = structure.first().for_many();
        let second = structure.later(1).for_many();
        let mut plans = [Default::default(); GROUP];
        let mut later_plans = [Default::default(); GROUP];
        for (chunk, found) in hashes.chunks(CHUNK).zip(found.chunks_mut(CHUNK))
        {
            let (mut group, mut rest) = split(chunk);
            backend.outline(Group::<_, CACHED> {
                round,
                keys: &[],
                later: group,
                plans: &mut plans,
            });
            let mut start = 0;
            while !group.is_empty() {
                let (later, behind) = split(rest);
                let said = backend.outline(Group::<_, CACHED> {
                    round,
                    keys: group,
                    later,
                    plans: &mut plans,
                });
                for at in ones(said.yes) {
                    found[start + at] = true;
                }
                waiting.add(group, start, said.next);
                if waiting.unasked() >= GROUP {
                    let plans = &mut later_plans;
                    waiting.go::<_, _, CACHED>(backend, second, plans, found);
                }
                start += group.len();
                (group, rest) = (later, behind);
            }
            let mut number = 1;
            while !waiting.is_empty() {
                let round = structure.later(number).for_many();
                while !waiting.is_done() {
                    let plans = &mut later_plans;
                    waiting.go::<_, _, CACHED>(backend, round, plans, found);
                }
                waiting.start_over();
                number += 1;
            }
        }
    }
}

/// A group, and what is behind it.
#[inline(always)]
fn split(hashes: &[u64]) -> (&[u64], &[u64]) {
    hashes.split_at(hashes.len().min(GROUP))
}

/// Where a word has ones.
#[inline(always)]
fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let at = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (at < GROUP).then_some(at)
    })
}

/// The keys of a chunk that need another round.
struct Waiting {
    hashes: Vec<u64>,
    /// Where in the chunk, below [`CHUNK`].
    indices: Vec<u16>,
    count: usize,
    /// Of how many the blocks are asked for, how many of those have been
    /// looked at, and how many of those need one more round and are in
    /// front again.
    asked: usize,
    done: usize,
    kept: usize,
}

impl Waiting {
    /// Room for chunks of that many keys.
    fn of(keys: usize) -> Self {
        let most = keys.min(CHUNK) + GROUP;
        let hashes = Vec::with_capacity(most);
        let indices = Vec::with_capacity(most);
        Self { hashes, indices, count: 0, asked: 0, done: 0, kept: 0 }
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn is_done(&self) -> bool {
        self.done == self.count
    }

    fn unasked(&self) -> usize {
        self.count - self.asked
    }

    /// Adds those of a group of keys that the bits name.
    #[inline(always)]
    fn add(&mut self, hashes: &[u64], start: usize, next: u64) {
        let most = self.count + GROUP;
        if self.hashes.len() < most {
            self.hashes.resize(most, 0);
            self.indices.resize(most, 0);
        }
        for at in ones(next) {
            self.hashes[self.count] = hashes[at];
            self.indices[self.count] = (start + at) as u16;
            self.count += 1;
        }
    }

    /// Asks for the blocks of a group, and has a look at those of the group
    /// before it.
    #[inline(always)]
    fn go<R: Round, B: Backend, const CACHED: bool>(
        &mut self,
        backend: B,
        round: R,
        plans: &mut Plans<R>,
        found: &mut [bool],
    ) {
        let first = self.done;
        let asked = (self.asked + GROUP).min(self.count);
        let said = backend.outline(Group::<_, CACHED> {
            round,
            keys: &self.hashes[first..self.asked],
            later: &self.hashes[self.asked..asked],
            plans,
        });
        for at in ones(said.yes) {
            found[usize::from(self.indices[first + at])] = true;
        }
        for at in ones(said.next) {
            self.hashes[self.kept] = self.hashes[first + at];
            self.indices[self.kept] = self.indices[first + at];
            self.kept += 1;
        }
        (self.done, self.asked) = (self.asked, asked);
    }

    /// Begins the next round with those that were kept.
    fn start_over(&mut self) {
        self.count = self.kept;
        (self.asked, self.done, self.kept) = (0, 0, 0);
    }
}

/// Something that is changed item by item.
///
/// A trait and not two closures: a closure may become a function of its
/// own, without the instructions of the backend.
pub(crate) trait Updated {
    type Item;

    /// Asks for the blocks that `item` changes.
    fn prefetch(&self, item: &Self::Item);

    fn update<B: Backend>(&mut self, backend: B, item: &Self::Item);
}

/// Every item in order, each asked for a little earlier: the shape of every
/// prefetched update.
#[inline(always)]
pub(crate) fn update_all<U: Updated, B: Backend>(
    backend: B,
    updated: &mut U,
    items: &[U::Item],
) {
    let (first, later) = items.split_at(items.len().min(AHEAD));
    for item in first {
        updated.prefetch(item);
    }
    for (item, later) in items.iter().zip(later) {
        updated.prefetch(later);
        updated.update(backend, item);
    }
    for item in &items[later.len()..] {
        updated.update(backend, item);
    }
}
