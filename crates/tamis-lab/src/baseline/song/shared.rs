//! Unpruned lists that share their nodes.

use super::super::{Baseline, Error, Lines};
use super::{COUNTER_BITS, Lookup, buckets};

/// A table in which every key is in the lists of all its buckets, with nodes
/// shared between lists.
///
/// The counter of a bucket is the number of nodes of its list; nodes behind
/// them belong to other lists. A new key gets one node, appended to each of
/// its lists that ends with its last node. A list that goes on with the
/// nodes of another gets a copy of the node at its head instead.
///
/// A removal takes the key's node or copy out of each of its lists. That
/// leaves other lists intact: the nodes that a counter covers are hashed to
/// that bucket, so every list that passes through the node, within its
/// counter, is one of the key's.
///
/// A key is in a list once, also if it is hashed to the bucket twice.
///
/// ```
/// use tamis_lab::baseline::{Baseline, SharedNodes};
///
/// let mut table = SharedNodes::new(100, 4);
/// table.insert(17)?;
/// assert!(table.read(17).found && table.nodes() == 1);
/// table.remove(17)?;
/// assert!(!table.read(17).found && table.nodes() == 0);
/// # Ok::<(), tamis_lab::baseline::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SharedNodes {
    choices: u64,
    lists: Vec<List>,
    nodes: Vec<Node>,
    /// Nodes in no list.
    free: Vec<usize>,
}

#[derive(Debug, Clone, Copy, Default)]
struct List {
    head: Option<usize>,
    /// Nodes that belong to the list. The summary has the lowest three bits
    /// of it, saturated.
    count: usize,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    key: u64,
    /// May point to a free node if no list goes on here.
    next: Option<usize>,
    /// Lists in which the node is.
    lists: usize,
}

impl SharedNodes {
    /// An empty table whose keys are hashed to `choices` of its buckets.
    ///
    /// ```
    /// use tamis_lab::baseline::{Baseline, SharedNodes};
    /// assert_eq!(SharedNodes::new(100, 4).bits(), 300);
    /// ```
    pub fn new(buckets: u64, choices: u32) -> Self {
        Self {
            choices: choices.into(),
            lists: vec![List::default(); buckets.max(1) as usize],
            nodes: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Looks a key up in the shortest of its lists, of equals the one of the
    /// lowest bucket, and counts the nodes read.
    ///
    /// ```
    /// use tamis_lab::baseline::{Lookup, SharedNodes};
    /// let nothing = Lookup { found: false, reads: 0 };
    /// assert_eq!(SharedNodes::new(8, 2).read(1), nothing);
    /// ```
    pub fn read(&self, key: u64) -> Lookup {
        let counted = self.buckets(key).map(|i| (self.lists[i].count, i));
        let bucket = counted.min().map_or(0, |(_, bucket)| bucket);
        let mut reads = 0;
        let found = self.list(bucket).any(|node| {
            reads += 1;
            self.nodes[node].key == key
        });
        Lookup { found, reads }
    }

    /// Nodes of all lists, of which the unshared table would need one for
    /// each key and bucket.
    ///
    /// ```
    /// assert_eq!(tamis_lab::baseline::SharedNodes::new(8, 2).nodes(), 0);
    /// ```
    pub fn nodes(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    fn buckets(&self, key: u64) -> impl Iterator<Item = usize> + use<> {
        buckets(key, self.choices, self.lists.len())
    }

    /// The key's buckets without repeats.
    fn distinct(&self, key: u64) -> Vec<usize> {
        let mut all: Vec<usize> = self.buckets(key).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The nodes of a bucket's list.
    fn list(&self, bucket: usize) -> impl Iterator<Item = usize> + '_ {
        let List { head, count } = self.lists[bucket];
        std::iter::successors(head, |node| self.nodes[*node].next).take(count)
    }

    /// A node of no list yet.
    fn node(&mut self, key: u64, next: Option<usize>) -> usize {
        let node = Node { key, next, lists: 0 };
        if let Some(reused) = self.free.pop() {
            self.nodes[reused] = node;
            return reused;
        }
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Appends `node` to a list, unless the list goes on with another.
    fn append(&mut self, bucket: usize, node: usize) -> bool {
        match self.list(bucket).last() {
            None => self.lists[bucket].head = Some(node),
            Some(last) => {
                let next = &mut self.nodes[last].next;
                if next.is_some_and(|next| next != node) {
                    return false;
                }
                *next = Some(node);
            }
        }
        true
    }

    /// The node of `key` in a list, and the one before it.
    fn find(&self, bucket: usize, key: u64) -> Option<(Option<usize>, usize)> {
        let mut before = None;
        self.list(bucket).find_map(|node| {
            let found = (self.nodes[node].key == key).then_some(node);
            let place = found.map(|node| (before, node));
            before = Some(node);
            place
        })
    }
}

/// The counters alone: a key is contained if its lookup reads a list.
impl Baseline for SharedNodes {
    fn name(&self) -> &'static str {
        "shared-node fast hash table"
    }

    /// A key that is in the table changes nothing.
    fn insert(&mut self, key: u64) -> Result<(), Error> {
        if self.read(key).found {
            return Ok(());
        }
        let node = self.node(key, None);
        for bucket in self.distinct(key) {
            let mut own = node;
            if !self.append(bucket, node) {
                own = self.node(key, self.lists[bucket].head);
                self.lists[bucket].head = Some(own);
            }
            self.lists[bucket].count += 1;
            self.nodes[own].lists += 1;
        }
        // Every list got a copy.
        if self.nodes[node].lists == 0 {
            self.free.push(node);
        }
        Ok(())
    }

    fn look_up(&self, key: u64, lines: &mut Lines) -> bool {
        let width = u64::from(COUNTER_BITS);
        self.buckets(key).all(|bucket| {
            lines.read(bucket as u64 * width, width);
            self.lists[bucket].count > 0
        })
    }

    fn remove(&mut self, key: u64) -> Result<(), Error> {
        if !self.read(key).found {
            return Err(Error::Absent);
        }
        // Lists with the same node before it are all searched first.
        let found = self.distinct(key).into_iter().filter_map(|bucket| {
            self.find(bucket, key).map(|place| (bucket, place))
        });
        for (bucket, (before, node)) in found.collect::<Vec<_>>() {
            let next = self.nodes[node].next;
            match before {
                None => self.lists[bucket].head = next,
                Some(before) => self.nodes[before].next = next,
            }
            self.lists[bucket].count -= 1;
            self.nodes[node].lists -= 1;
            if self.nodes[node].lists == 0 {
                self.free.push(node);
            }
        }
        Ok(())
    }

    fn bits(&self) -> u64 {
        self.lists.len() as u64 * u64::from(COUNTER_BITS)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::simulation::{Keys, fill};

    /// Every list has exactly the keys hashed to its bucket, and nodes are
    /// free exactly if no list has them.
    fn assert_lists(table: &SharedNodes, keys: &BTreeSet<u64>) {
        let mut expected = vec![BTreeSet::new(); table.lists.len()];
        for key in keys {
            for bucket in table.buckets(*key) {
                expected[bucket].insert(*key);
            }
        }
        let mut used = BTreeSet::new();
        for (bucket, expected) in expected.iter().enumerate() {
            let list: Vec<usize> = table.list(bucket).collect();
            used.extend(&list);
            let found = list.iter().map(|node| table.nodes[*node].key);
            assert_eq!(&found.collect::<BTreeSet<u64>>(), expected);
            assert_eq!(list.len(), expected.len());
        }
        let free: BTreeSet<usize> = table.free.iter().copied().collect();
        assert_eq!(free.len(), table.free.len());
        assert!(used.is_disjoint(&free));
        assert_eq!(used.len(), table.nodes());
    }

    #[test]
    fn lists_have_their_keys_after_any_history() {
        for seed in 0..20 {
            let keys = Keys::new(seed);
            let mut table = SharedNodes::new(40 + 30 * (seed % 5), 4);
            let mut model = BTreeSet::new();
            for step in 0..1500 {
                let random = keys.stranger(step);
                let key = keys.member(random % 100);
                let share = [5, 3][(step / 300 % 2) as usize];
                if (random >> 32) % 8 < share {
                    table.insert(key).unwrap();
                    model.insert(key);
                } else {
                    let expected = match model.remove(&key) {
                        true => Ok(()),
                        false => Err(Error::Absent),
                    };
                    assert_eq!(table.remove(key), expected);
                }
                assert_lists(&table, &model);
            }
        }
    }

    #[test]
    fn lookups_read_the_shortest_list() {
        let keys = Keys::new(1);
        let mut table = SharedNodes::new(26_000, 5);
        fill(&mut table, keys.members(2000)).unwrap();
        for key in keys.members(2000) {
            let shortest =
                table.buckets(key).map(|bucket| table.lists[bucket].count);
            let Lookup { found, reads } = table.read(key);
            assert!(found && reads as usize <= shortest.min().unwrap());
        }
        for key in keys.strangers(20_000) {
            let Lookup { found, reads } = table.read(key);
            assert!(!found);
            assert_eq!(table.contains(key), reads > 0);
        }
        // Far fewer than the 10 000 of lists that share nothing.
        assert!((2000..3000).contains(&table.nodes()), "{}", table.nodes());
    }
}
