//! A filter under measurement: filled, looked up and checked.

use std::hint::black_box;
use std::ops::Range;

use crate::allocator::live;
use crate::clock::timed;
use crate::keys::{
    ABSENT, Hashes, Integers, KeyType, Keys, Random, Text, Texts,
};
use crate::subject::{Result, Subject};

/// One key per call, or a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Single,
    Batch,
}

impl Mode {
    pub(crate) const ALL: [Self; 2] = [Self::Single, Self::Batch];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Batch => "batch",
        }
    }
}

/// Keys of a timed loop: present, absent or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    Hit,
    Miss,
    /// Nine misses for each hit.
    Mixed,
}

impl Lookup {
    pub(crate) const ALL: [Self; 3] = [Self::Hit, Self::Miss, Self::Mixed];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Mixed => "mixed",
        }
    }
}

/// Keys of a filter, in chunks of one type each.
///
/// A small filter has keys of one type, and each type has its own filter.
/// A large filter takes minutes to fill, so one filter has keys of all
/// types.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Keys inserted when the filter is built.
    pub(crate) built: u64,
    /// All keys. Those from `built` on are inserted later, types in turn.
    pub(crate) items: u64,
    pub(crate) chunk: u64,
    /// All key types in the filter.
    pub(crate) types: Vec<KeyType>,
    /// Types of consecutive chunks of the built keys, repeated cyclically.
    pub(crate) pattern: Vec<KeyType>,
    pub(crate) mode: Mode,
}

impl Plan {
    /// Type of key `number`.
    fn keys(&self, number: u64) -> KeyType {
        let (types, first) = match number < self.built {
            true => (&self.pattern, 0),
            false => (&self.types, self.built),
        };
        let chunk = (number - first) / self.chunk;
        types[chunk as usize % types.len()]
    }
}

/// Keys to look up, the same for every contender.
pub(crate) struct Queries {
    lookup: Lookup,
    keys: QueryKeys,
    /// 64 random bits per key, which give the roofline its addresses.
    addresses: Vec<u64>,
    /// Number of keys that are in the filter.
    members: u64,
}

enum QueryKeys {
    Hashes(Vec<u64>),
    Integers(Vec<u64>),
    Texts(Vec<Text>),
}

impl Queries {
    pub(crate) fn new(
        lookup: Lookup,
        keys: KeyType,
        len: usize,
        plan: &Plan,
        random: &mut Random,
    ) -> Self {
        let mut absent = ABSENT;
        let mut members = 0;
        let numbers: Vec<u64> = (0..len)
            .map(|_| {
                let member = match lookup {
                    Lookup::Hit => true,
                    Lookup::Miss => false,
                    Lookup::Mixed => random.below(10) == 0,
                };
                if !member {
                    absent += 1;
                    return absent;
                }
                members += 1;
                loop {
                    let number = random.below(plan.items);
                    if plan.keys(number) == keys {
                        return number;
                    }
                }
            })
            .collect();
        let keys = match keys {
            KeyType::Hash => QueryKeys::Hashes(all::<Hashes>(&numbers)),
            KeyType::U64 => QueryKeys::Integers(all::<Integers>(&numbers)),
            KeyType::String => QueryKeys::Texts(all::<Texts>(&numbers)),
        };
        let addresses = all::<Hashes>(&numbers);
        Self { lookup, keys, addresses, members }
    }

    pub(crate) fn lookup(&self) -> Lookup {
        self.lookup
    }

    pub(crate) fn len(&self) -> usize {
        self.addresses.len()
    }

    pub(crate) fn addresses(&self) -> &[u64] {
        &self.addresses
    }
}

fn all<K: Keys>(numbers: &[u64]) -> Vec<K::Key> {
    numbers.iter().map(|&number| K::key(number)).collect()
}

/// Nanoseconds of a loop, and the sum of its answers.
pub(crate) struct Timed {
    pub(crate) ns: f64,
    pub(crate) sum: u64,
}

/// A subject behind a pointer. A call covers many keys, which makes the cost
/// of the indirection negligible.
pub(crate) trait Contender: Send {
    fn name(&self) -> &'static str;

    /// Whether it supports this lookup.
    fn offers(&self, lookup: Lookup, mode: Mode) -> bool;

    /// Whether keys can be inserted one by one.
    fn inserts(&self) -> bool;

    /// Computes the design for `items` keys at rate `fpr`; `false` if it
    /// does not cover that rate.
    fn prepare(&mut self, items: u64, fpr: f64) -> Result<bool>;

    /// Builds and checks a filter, which replaces the previous one.
    /// Nanoseconds per key, for each key type; `None` for the roofline.
    fn fill(&mut self, plan: &Plan) -> Result<Option<Vec<f64>>>;

    /// Inserts a chunk of keys one by one and checks them; nanoseconds per
    /// key.
    fn insert(&mut self, plan: &Plan, numbers: Range<u64>) -> Result<f64>;

    /// Bytes of the filter's memory.
    fn bytes(&self) -> i64;

    /// One pass of single lookups, with the sum that every pass must have.
    fn expect(&self, queries: &Queries) -> Result<Timed>;

    /// Looks all queries up `passes` times.
    fn look_up(&self, queries: &Queries, mode: Mode, passes: usize) -> Timed;

    /// False-positive rate over `queries` absent keys; `None` for the
    /// roofline.
    fn rate(&self, keys: KeyType, queries: u64) -> Option<f64>;

    /// Moves to other memory, where supported.
    fn relocate(&mut self);

    /// Frees the filter's memory.
    fn clear(&mut self);
}

/// Keys of one batched lookup, such as a server's request or a query
/// engine's vector.
const BATCH: usize = 4096;

/// Every `CHECK_EVERY`th inserted key is looked up: a prime, so that keys of
/// all types are checked.
const CHECK_EVERY: usize = 997;

pub(crate) struct Entry<S: Subject> {
    design: Option<S::Design>,
    filter: Option<S>,
    bytes: i64,
}

impl<S: Subject + Send + 'static> Entry<S>
where
    S::Design: Send,
{
    pub(crate) fn boxed() -> Box<dyn Contender> {
        Box::new(Self { design: None, filter: None, bytes: 0 })
    }

    fn filter(&self) -> &S {
        self.filter.as_ref().expect("filled before the first lookup")
    }
}

impl<S: Subject + Send + 'static> Contender for Entry<S>
where
    S::Design: Send,
{
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn offers(&self, _lookup: Lookup, mode: Mode) -> bool {
        mode == Mode::Single || S::BATCH
    }

    fn inserts(&self) -> bool {
        !S::STATIC
    }

    fn prepare(&mut self, items: u64, fpr: f64) -> Result<bool> {
        self.clear();
        self.design = S::design(items, fpr)?;
        Ok(self.design.is_some())
    }

    fn fill(&mut self, plan: &Plan) -> Result<Option<Vec<f64>>> {
        self.clear();
        let design = self.design.as_ref().expect("prepared before filled");
        let before = live();
        let (construction, filter) = timed(|| S::empty(design));
        let mut filter = filter?;
        // A static filter takes all keys now, also those from `built` on.
        let built = if S::STATIC { plan.items } else { plan.built };
        let mut spent = vec![(0.0, 0); plan.types.len()];
        for number in (0..built).step_by(plan.chunk as usize) {
            let end = (number + plan.chunk).min(built);
            let keys = plan.keys(number);
            let ns = insert(&mut filter, keys, plan.mode, number..end);
            for (known, spent) in plan.types.iter().zip(&mut spent) {
                if *known == keys {
                    spent.0 += ns;
                    spent.1 += end - number;
                }
            }
        }
        let (finishing, finished) = timed(|| filter.finish());
        finished?;
        self.bytes = live() - before + size_of::<S>() as i64;
        check(&filter, plan, 0..built)?;
        self.filter = Some(filter);
        // The time to build includes construction, the time to insert does
        // not.
        let around = match plan.mode {
            Mode::Batch => (construction + finishing) / built as f64,
            Mode::Single => 0.0,
        };
        let ns = spent.iter().map(|&(ns, keys)| ns / keys as f64 + around);
        Ok(Some(ns.collect()))
    }

    fn insert(&mut self, plan: &Plan, numbers: Range<u64>) -> Result<f64> {
        let filter = self.filter.as_mut().expect("filled before more");
        let keys = plan.keys(numbers.start);
        let count = numbers.end - numbers.start;
        let before = live();
        let ns = insert(filter, keys, Mode::Single, numbers.clone());
        self.bytes += live() - before;
        check(filter, plan, numbers)?;
        Ok(ns / count as f64)
    }

    fn bytes(&self) -> i64 {
        self.bytes
    }

    fn expect(&self, queries: &Queries) -> Result<Timed> {
        let timed = self.look_up(queries, Mode::Single, 1);
        let lost = queries.members.saturating_sub(timed.sum);
        if lost > 0 && queries.lookup == Lookup::Hit {
            return Err(format!("{} lost {lost} keys", S::NAME).into());
        }
        Ok(timed)
    }

    fn look_up(&self, queries: &Queries, mode: Mode, passes: usize) -> Timed {
        let filter = self.filter();
        match &queries.keys {
            QueryKeys::Hashes(keys) => {
                look_up::<S, Hashes>(filter, keys, mode, passes)
            }
            QueryKeys::Integers(keys) => {
                look_up::<S, Integers>(filter, keys, mode, passes)
            }
            QueryKeys::Texts(keys) => {
                look_up::<S, Texts>(filter, keys, mode, passes)
            }
        }
    }

    fn rate(&self, keys: KeyType, queries: u64) -> Option<f64> {
        let filter = self.filter();
        let found = match keys {
            KeyType::Hash => found::<S, Hashes>(filter, queries),
            KeyType::U64 => found::<S, Integers>(filter, queries),
            KeyType::String => found::<S, Texts>(filter, queries),
        };
        Some(found as f64 / queries as f64)
    }

    fn relocate(&mut self) {
        if let Some(filter) = self.filter().relocated() {
            self.filter = Some(filter);
        }
    }

    fn clear(&mut self) {
        self.filter = None;
    }
}

/// Inserts a chunk of keys. Returns nanoseconds.
fn insert<S: Subject>(
    filter: &mut S,
    keys: KeyType,
    mode: Mode,
    numbers: Range<u64>,
) -> f64 {
    fn all<S: Subject, K: Keys>(
        filter: &mut S,
        mode: Mode,
        numbers: Range<u64>,
    ) -> f64 {
        let keys: Vec<K::Key> = numbers.map(K::key).collect();
        let (ns, ()) = match mode {
            Mode::Batch => timed(|| K::insert_batch(filter, &keys)),
            Mode::Single => timed(|| {
                for key in &keys {
                    K::insert(filter, key);
                }
            }),
        };
        ns
    }
    match keys {
        KeyType::Hash => all::<S, Hashes>(filter, mode, numbers),
        KeyType::U64 => all::<S, Integers>(filter, mode, numbers),
        KeyType::String => all::<S, Texts>(filter, mode, numbers),
    }
}

/// Looks up every `CHECK_EVERY`th inserted key.
fn check<S: Subject>(filter: &S, plan: &Plan, numbers: Range<u64>) -> Result {
    for number in numbers.step_by(CHECK_EVERY) {
        let found = match plan.keys(number) {
            KeyType::Hash => filter.contains_hash(Hashes::key(number)),
            KeyType::U64 => filter.contains(&Integers::key(number)),
            KeyType::String => filter.contains(&Texts::key(number)),
        };
        if !found {
            return Err(format!("{} lost a key", S::NAME).into());
        }
    }
    Ok(())
}

/// Looks keys up `passes` times; the sum is the number found.
#[inline(never)]
fn look_up<S: Subject, K: Keys>(
    filter: &S,
    keys: &[K::Key],
    mode: Mode,
    passes: usize,
) -> Timed {
    let (ns, sum) = match mode {
        Mode::Single => timed(|| {
            let mut sum = 0;
            for _ in 0..passes {
                for key in black_box(keys) {
                    sum += u64::from(K::contains(filter, key));
                }
            }
            sum
        }),
        Mode::Batch => timed(|| {
            let mut sum = 0;
            let mut found = Vec::new();
            for _ in 0..passes {
                for keys in black_box(keys).chunks(BATCH) {
                    K::contains_batch(filter, keys, &mut found);
                    let yes = found.iter().filter(|&&found| found).count();
                    sum += yes as u64;
                }
            }
            sum
        }),
    };
    Timed { ns, sum }
}

/// Number of false positives among `queries` absent keys. The keys differ
/// from those of the timed loops.
fn found<S: Subject, K: Keys>(filter: &S, queries: u64) -> u64 {
    (0..queries)
        .map(|i| {
            let key = K::key(ABSENT + (ABSENT >> 1) + i);
            u64::from(K::contains(filter, &key))
        })
        .sum()
}
