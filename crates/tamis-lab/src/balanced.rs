//! The Balanced Bloom Filter as printed, in blocks of any size, with the rules
//! of the paper that the product leaves out.
//!
//! [`tamis::Balanced`] has blocks of 256 and 512 bits, reads on where the
//! access budget is spent, and repeats the coin at the threshold in its
//! lookups. Here the budget stops the reading, a lookup ends at a load below
//! the threshold, and the list has a fixed size. **The stop loses members**:
//! a key listed unread is missed by a lookup that finds one of its blocks not
//! full ([`tamis_theory::multilevel::lost_members`]).
//!
//! Source: Kanizo, Hay and Keslassy, *Access-Efficient Balanced Bloom
//! Filters*, sections 2, 3, 6 and 7.
//!
//! ```
//! use tamis_lab::balanced::{Arrays, Filter, Place, Rules};
//!
//! // Fig. 1: h = 3; 4, 2 and 1 blocks with 4 bits beside a 2-bit counter.
//! let mut filter = Filter::new(Rules {
//!     arrays: Arrays::Levels(vec![4, 2, 1]),
//!     threshold: 3,
//!     filter_bits: 4,
//!     probes: 1,
//!     ..Rules::default()
//! });
//! assert_eq!(filter.insert(17), Ok(Place::Choice(0)));
//! assert!(filter.contains(17));
//! ```

use std::collections::HashSet;

use crate::baseline::Error;
use crate::simulation::{mix, reduce};

/// Numbers of the hashes of a key: of the choices, of the coins, and of the
/// bits.
const CHOICES: u64 = 0;
const COINS: u64 = 32;
const BITS: u64 = 64;

/// The blocks that are proposed to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrays {
    /// One block of each level (MHT), and the blocks of each level.
    Levels(Vec<u64>),
    /// `choices` blocks of one array (SEQUENTIAL; SINGLE with one choice).
    Sequential {
        /// Blocks of the array (m).
        blocks: u64,
        /// Blocks proposed per key (d).
        choices: u32,
    },
}

/// The condition under which a lookup ends at a block without the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// The load is below the threshold: the paper's rule.
    Plain,
    /// The block would not have refused the key, whose coin is repeated: the
    /// rule of the product. Without a coin (p = 0) both are equal.
    Coin,
}

/// The rules of a filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// The blocks proposed to a key.
    pub arrays: Arrays,
    /// A block with a smaller load takes every key (h).
    pub threshold: u32,
    /// Chance that a block exactly at the threshold takes one more (p).
    pub admission: f64,
    /// Bits of a block without its counter (B - b).
    pub filter_bits: u32,
    /// Bits set per key (k).
    pub probes: u32,
    /// The most keys of the overflow list; `None` without a limit.
    pub list_capacity: Option<u64>,
    /// Total blocks that insertions may read (a n). Keys after that go to the
    /// list unread.
    pub budget: Option<u64>,
    /// The rule of lookups.
    pub lookup: Lookup,
}

impl Default for Rules {
    /// SINGLE with one block of 512 bits that takes every key, one bit per
    /// key, no budget, an unlimited list and the paper's lookup.
    fn default() -> Self {
        Self {
            arrays: Arrays::Sequential { blocks: 1, choices: 1 },
            threshold: u32::MAX,
            admission: 0.0,
            filter_bits: 512,
            probes: 1,
            list_capacity: None,
            budget: None,
            lookup: Lookup::Plain,
        }
    }
}

/// The place of a new key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The block of this choice, counted from 0.
    Choice(u32),
    /// The list, because every block refused the key.
    Listed,
    /// The list, because the budget was spent before the first read.
    Unread,
}

/// The answer to a lookup and its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Whether the key may be in the set.
    pub found: bool,
    /// Blocks read.
    pub reads: u32,
    /// Whether the list was consulted.
    pub list: bool,
}

/// A Balanced Bloom Filter.
#[derive(Debug, Clone)]
pub struct Filter {
    rules: Rules,
    loads: Vec<u32>,
    /// The bits of all blocks, `words` words each.
    bits: Vec<u64>,
    words: usize,
    list: HashSet<u64>,
    reads: u64,
}

impl Filter {
    /// An empty filter.
    pub fn new(rules: Rules) -> Self {
        let blocks = match &rules.arrays {
            Arrays::Levels(levels) => levels.iter().sum(),
            Arrays::Sequential { blocks, .. } => *blocks,
        } as usize;
        let words = rules.filter_bits.div_ceil(64) as usize;
        Self {
            rules,
            loads: vec![0; blocks],
            bits: vec![0; blocks * words],
            words,
            list: HashSet::new(),
            reads: 0,
        }
    }

    fn choices(&self) -> u32 {
        match &self.rules.arrays {
            Arrays::Levels(levels) => levels.len() as u32,
            Arrays::Sequential { choices, .. } => *choices,
        }
    }

    /// The block of a choice.
    pub fn block(&self, key: u64, choice: u32) -> usize {
        let hash = mix(key, CHOICES + u64::from(choice));
        let (first, blocks) = match &self.rules.arrays {
            Arrays::Sequential { blocks, .. } => (0, *blocks),
            Arrays::Levels(levels) => {
                let choice = choice as usize;
                (levels[..choice].iter().sum(), levels[choice])
            }
        };
        (first + reduce(hash, blocks)) as usize
    }

    /// The load of a block.
    pub fn load(&self, block: usize) -> u32 {
        self.loads[block]
    }

    /// The loads of all blocks, level by level.
    pub fn loads(&self) -> &[u32] {
        &self.loads
    }

    /// Keys in the list.
    pub fn listed(&self) -> u64 {
        self.list.len() as u64
    }

    /// Blocks read by all insertions.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    fn refuses(&self, key: u64, choice: u32, block: usize) -> bool {
        let Rules { threshold, admission, .. } = self.rules;
        let load = self.loads[block];
        let coin = || {
            let word = mix(key, COINS + u64::from(choice)) >> 11;
            word as f64 / (1u64 << 53) as f64
        };
        load > threshold || load == threshold && coin() >= admission
    }

    /// The bits of a key in a block, as word and mask.
    fn probes(
        &self,
        key: u64,
        block: usize,
    ) -> impl Iterator<Item = (usize, u64)> + use<> {
        let range = u64::from(self.rules.filter_bits);
        let first = block * self.words;
        (0..self.rules.probes).map(move |probe| {
            let bit = reduce(mix(key, BITS + u64::from(probe)), range);
            (first + (bit / 64) as usize, 1 << (bit % 64))
        })
    }

    /// Inserts a new key. [`Error::Full`] if it belongs to a list that is
    /// full; only the count of reads has changed then.
    pub fn insert(&mut self, key: u64) -> Result<Place, Error> {
        if self.rules.budget.is_some_and(|budget| self.reads >= budget) {
            return self.push(key, Place::Unread);
        }
        for choice in 0..self.choices() {
            let block = self.block(key, choice);
            self.reads += 1;
            if self.refuses(key, choice, block) {
                continue;
            }
            self.loads[block] += 1;
            for (word, mask) in self.probes(key, block) {
                self.bits[word] |= mask;
            }
            return Ok(Place::Choice(choice));
        }
        self.push(key, Place::Listed)
    }

    fn push(&mut self, key: u64, place: Place) -> Result<Place, Error> {
        let listed = self.listed();
        if self.rules.list_capacity.is_some_and(|most| listed >= most) {
            return Err(Error::Full);
        }
        self.list.insert(key);
        Ok(place)
    }

    /// Looks up a key, and counts the blocks read.
    pub fn look_up(&self, key: u64) -> Answer {
        for choice in 0..self.choices() {
            let block = self.block(key, choice);
            let reads = choice + 1;
            let mut probes = self.probes(key, block);
            if probes.all(|(word, mask)| self.bits[word] & mask != 0) {
                return Answer { found: true, reads, list: false };
            }
            let continues = match self.rules.lookup {
                Lookup::Plain => self.loads[block] >= self.rules.threshold,
                Lookup::Coin => self.refuses(key, choice, block),
            };
            if !continues {
                return Answer { found: false, reads, list: false };
            }
        }
        let found = self.list.contains(&key);
        Answer { found, reads: self.choices(), list: true }
    }

    /// Whether a key may be in the set.
    pub fn contains(&self, key: u64) -> bool {
        self.look_up(key).found
    }
}
