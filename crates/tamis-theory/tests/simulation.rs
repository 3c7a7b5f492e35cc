//! The models of balanced filters against simulated filters, with fixed
//! seeds.

mod support;

use support::Random;
use tamis_theory::balanced::Lookup;
use tamis_theory::balanced::absorbing::{self, Refuse};
use tamis_theory::balanced::finite;
use tamis_theory::balanced::list::{self, Scheme};
use tamis_theory::balanced::returned::{self, Place};
use tamis_theory::multilevel;

const BLOCKS: usize = 8192;
const RUNS: u64 = 12;

#[derive(Clone)]
struct Block {
    bits: Vec<bool>,
    keys: usize,
    marks: Vec<bool>,
}

impl Block {
    fn set_bits(&self) -> usize {
        self.bits.iter().filter(|b| **b).count()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Rest {
    List,
    First,
    Absorbed,
}

struct Filter {
    payload: u32,
    last_payload: u32,
    probes: u32,
    classes: usize,
    refuse: Refuse,
    admission: f64,
    rest: Rest,
}

/// Figures of one filter. Rate and reads are means over all its blocks, not
/// over sampled queries.
#[derive(Default, Clone, Copy)]
struct Figures {
    fpr: f64,
    reads_miss: f64,
    access_budget: f64,
    overflow: f64,
}

impl Figures {
    const NAMES: [&'static str; 4] =
        ["fpr", "reads_miss", "access_budget", "overflow"];

    fn values(&self) -> [f64; 4] {
        [self.fpr, self.reads_miss, self.access_budget, self.overflow]
    }
}

impl Filter {
    fn refuses(&self, block: &Block, coin: f64) -> bool {
        match self.refuse {
            Refuse::Popcount(set) => block.set_bits() >= set as usize,
            Refuse::Counter(h) | Refuse::BuildCounter(h) => {
                let h = h as usize;
                block.keys > h || (block.keys == h && coin >= self.admission)
            }
        }
    }

    fn build(&self, sizes: &[usize], items: usize, seed: u64) -> Figures {
        let mut random = Random(seed);
        let levels = sizes.len();
        let mut table: Vec<Vec<Block>> = (0..levels)
            .map(|j| {
                let last = j + 1 == levels && self.rest == Rest::Absorbed;
                let bits = if last { self.last_payload } else { self.payload };
                let block = Block {
                    bits: vec![false; bits as usize],
                    keys: 0,
                    marks: vec![false; self.classes],
                };
                vec![block; sizes[j]]
            })
            .collect();
        let (mut reads, mut refused) = (0, 0);
        for _ in 0..items {
            let path: Vec<usize> =
                sizes.iter().map(|n| random.below(*n)).collect();
            let class = random.below(self.classes);
            let taken = (0..levels).find(|j| {
                let last = j + 1 == levels && self.rest == Rest::Absorbed;
                reads += 1;
                let coin = random.chance();
                last || !self.refuses(&table[*j][path[*j]], coin)
            });
            refused += usize::from(taken.is_none());
            let place = match (taken, self.rest) {
                (Some(j), _) => Some(j),
                (None, Rest::First) => Some(0),
                (None, _) => None,
            };
            // A key in the list is refused by, and marks, all its blocks.
            for j in 0..place.unwrap_or(levels) {
                table[j][path[j]].marks[class] = true;
            }
            if let Some(j) = place {
                let block = &mut table[j][path[j]];
                block.keys += 1;
                for _ in 0..self.probes {
                    let bit = random.below(block.bits.len());
                    block.bits[bit] = true;
                }
            }
        }
        let mut figures = Figures {
            access_budget: reads as f64 / items as f64,
            overflow: refused as f64 / items as f64,
            ..Figures::default()
        };
        let mut reaching = 1.0;
        for level in &table {
            let (mut maybe, mut passed) = (0.0, 0.0);
            for block in level {
                let fill = block.set_bits() as f64 / block.bits.len() as f64;
                let rate = fill.powi(self.probes as i32);
                let marks = block.marks.iter().filter(|m| **m).count();
                let marked = marks as f64 / self.classes as f64;
                maybe += rate / level.len() as f64;
                passed += marked * (1.0 - rate) / level.len() as f64;
            }
            figures.reads_miss += reaching;
            figures.fpr += reaching * maybe;
            reaching *= passed;
        }
        figures
    }

    /// Asserts that every figure is within 4.5 standard errors and 0.2% of
    /// the model; the 0.2% allow for the finite number of blocks.
    fn assert_agrees(
        &self,
        shares: &[f64],
        items: usize,
        model: Figures,
        seed: u64,
    ) {
        let mut sizes: Vec<usize> = shares
            .iter()
            .map(|s| (s * BLOCKS as f64).round() as usize)
            .collect();
        sizes[0] = BLOCKS - sizes[1..].iter().sum::<usize>();
        self.assert_near(&sizes, items, model, 0.002, seed..seed + RUNS);
    }

    /// Asserts that every figure is within 4.5 standard errors and a share
    /// `inexact` of the model.
    fn assert_near(
        &self,
        sizes: &[usize],
        items: usize,
        model: Figures,
        inexact: f64,
        seeds: core::ops::Range<u64>,
    ) {
        let runs: Vec<Figures> =
            seeds.map(|seed| self.build(sizes, items, seed)).collect();
        for (i, name) in Figures::NAMES.into_iter().enumerate() {
            let of = |figures: &Figures| figures.values()[i];
            let n = runs.len() as f64;
            let mean = runs.iter().map(of).sum::<f64>() / n;
            let square =
                runs.iter().map(|s| (of(s) - mean).powi(2)).sum::<f64>();
            let error = (square / (n - 1.0) / n).sqrt();
            let want = of(&model);
            assert!(
                (mean - want).abs() <= 4.5 * error + inexact * want,
                "{sizes:?} {name}: {mean} +- {error}, model {want}"
            );
        }
    }
}

const ITEMS_24: usize = BLOCKS * 256 / 24;

#[test]
fn keys_returned_to_the_first_block() {
    let beta = BLOCKS as f64 * 256.0 / ITEMS_24 as f64;
    let lookup = Lookup::Tracking(8);
    let model = returned::predict(256, beta, 1.2, 3, Place::First, lookup, 13)
        .unwrap();
    let filter = Filter {
        payload: model.payload_bits,
        last_payload: model.payload_bits,
        probes: 13,
        classes: 8,
        refuse: Refuse::Counter(model.threshold.unwrap()),
        admission: model.admission,
        rest: Rest::First,
    };
    let expected = Figures {
        fpr: model.prediction.fpr,
        reads_miss: model.prediction.reads_miss,
        access_budget: model.access_budget,
        overflow: model.returned_fraction,
    };
    filter.assert_agrees(&model.level_shares, ITEMS_24, expected, 100);
}

#[test]
fn keys_in_a_list() {
    let beta = BLOCKS as f64 * 256.0 / ITEMS_24 as f64;
    let scheme = Scheme::Multilevel { access_budget: 1.15, choices: 3 };
    let lookup = Lookup::Tracking(4);
    let model = list::predict(256, beta, scheme, lookup, 12).unwrap();
    let levels = multilevel::boundary(1.15, 3).unwrap();
    let filter = Filter {
        payload: model.payload_bits,
        last_payload: model.payload_bits,
        probes: 12,
        classes: 4,
        refuse: Refuse::Counter(model.threshold.unwrap()),
        admission: model.admission,
        rest: Rest::List,
    };
    let expected = Figures {
        fpr: model.prediction.fpr,
        reads_miss: model.prediction.reads_miss,
        access_budget: model.prediction.reads_hit,
        overflow: model.overflow_fraction,
    };
    filter.assert_agrees(&levels.level_shares, ITEMS_24, expected, 200);
}

#[test]
fn an_absorbing_last_level() {
    let beta = BLOCKS as f64 * 256.0 / ITEMS_24 as f64;
    let shares = [0.85, 0.12, 0.03];
    for (refuse, seed) in
        [(Refuse::Popcount(125), 300), (Refuse::BuildCounter(12), 400)]
    {
        let model =
            absorbing::predict(256, beta, &shares, refuse, 14, 4).unwrap();
        let filter = Filter {
            payload: model.payload_bits,
            last_payload: 256,
            probes: 14,
            classes: 4,
            refuse,
            admission: 0.0,
            rest: Rest::Absorbed,
        };
        let expected = Figures {
            fpr: model.prediction.fpr,
            reads_miss: model.prediction.reads_miss,
            access_budget: model.prediction.reads_hit,
            overflow: 0.0,
        };
        filter.assert_agrees(&shares, ITEMS_24, expected, seed);
    }
}

/// Filters of up to 16 blocks of 256 bits, with levels and thresholds that
/// fit their keys and with ones that do not.
#[test]
fn few_blocks() {
    let cases: [(&[u64], u64, Refuse, u32, u32); 8] = [
        (&[1], 20, Refuse::Popcount(100), 6, 1),
        (&[1, 1], 30, Refuse::Popcount(120), 8, 1),
        (&[4, 1], 60, Refuse::Popcount(115), 12, 8),
        (&[4, 1], 75, Refuse::Popcount(130), 8, 4),
        (&[6, 2, 1], 120, Refuse::Popcount(118), 12, 8),
        (&[12, 3, 1], 170, Refuse::Popcount(120), 12, 16),
        (&[5, 1, 1, 1], 90, Refuse::Popcount(110), 10, 4),
        (&[12, 3, 1], 170, Refuse::BuildCounter(13), 12, 8),
    ];
    for (seed, (levels, items, refuse, probes, tracking)) in (1..).zip(cases) {
        let model =
            finite::predict(items, 256, levels, refuse, probes, tracking)
                .unwrap();
        let filter = Filter {
            payload: 256 - tracking,
            last_payload: 256,
            probes,
            classes: tracking as usize,
            refuse,
            admission: 0.0,
            rest: Rest::Absorbed,
        };
        let expected = Figures {
            fpr: model.fpr,
            reads_miss: model.reads_miss,
            access_budget: model.reads_hit,
            overflow: 0.0,
        };
        let sizes: Vec<usize> =
            levels.iter().map(|&level| level as usize).collect();
        let seeds = seed * 100_000..seed * 100_000 + 3000;
        filter.assert_near(&sizes, items as usize, expected, 0.02, seeds);
    }
}
