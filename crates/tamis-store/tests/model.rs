//! Random histories on a store and on a `BTreeMap`.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tamis_store::{Batch, Durability, Options, Snapshot, Store};

type Result<T> = tamis_store::Result<T>;
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug, Clone)]
enum Step {
    Put(u8, usize),
    Delete(u8),
    Batch(Vec<(u8, Option<usize>)>),
    Load(Vec<(u8, usize)>),
    Get(u8),
    Snapshot,
    DropSnapshot,
    Flush,
    Compact,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = || prop_oneof![8 => 0..200usize, 1 => 3000..9000usize, 1 => 65_000..70_000usize];
    let write = (any::<u8>(), prop::option::of(len()));
    let step = prop_oneof![
        20 => (any::<u8>(), len()).prop_map(|(k, n)| Step::Put(k, n)),
        8 => any::<u8>().prop_map(Step::Delete),
        4 => prop::collection::vec(write, 0..20).prop_map(Step::Batch),
        1 => prop::collection::vec((any::<u8>(), len()), 0..300)
            .prop_map(Step::Load),
        10 => any::<u8>().prop_map(Step::Get),
        2 => Just(Step::Snapshot),
        1 => Just(Step::DropSnapshot),
        2 => Just(Step::Flush),
        2 => Just(Step::Compact),
        2 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..150)
}

fn value(i: usize, len: usize) -> Vec<u8> {
    (0..len).map(|j| (i * 31 + j) as u8).collect()
}

fn check(snapshot: &Snapshot, model: &Model) -> Result<()> {
    let found: Model = snapshot.iter().collect::<Result<_>>()?;
    assert_eq!(found.len(), model.len());
    assert!(found == *model, "a snapshot differs from the model");
    for key in (0..=255u8).map(|k| vec![k]) {
        assert!(snapshot.get(&key)? == model.get(&key).cloned());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn histories_agree_with_a_map(steps in steps(), spills: bool) {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new()
            .background(false)
            .durability(Durability::None)
            .segment_bytes(16 << 10)
            .spill_eagerly(spills)
            .buffer_bytes(24 << 10);
        let mut store = Store::create(dir.path(), &options).unwrap();
        let mut model = Model::new();
        let mut snapshots = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            match step {
                Step::Put(key, len) => {
                    let value = value(i, *len);
                    store.put([*key], &value).unwrap();
                    model.insert(vec![*key], value);
                }
                Step::Delete(key) => {
                    store.delete([*key]).unwrap();
                    model.remove(&vec![*key]);
                }
                Step::Batch(writes) => {
                    let mut batch = Batch::new();
                    for (j, (key, len)) in writes.iter().enumerate() {
                        match len {
                            Some(len) => {
                                let value = value(i + j, *len);
                                batch.put([*key], &value).unwrap();
                                model.insert(vec![*key], value);
                            }
                            None => {
                                batch.delete([*key]).unwrap();
                                model.remove(&vec![*key]);
                            }
                        }
                    }
                    store.write_batch(&batch).unwrap();
                }
                Step::Load(records) => {
                    let mut loader = store.loader().unwrap();
                    for (j, (key, len)) in records.iter().enumerate() {
                        let value = value(i + j, *len);
                        loader.put([*key], &value).unwrap();
                        model.insert(vec![*key], value);
                    }
                    let loaded = loader.finish().unwrap();
                    prop_assert_eq!(loaded, records.len() as u64);
                }
                Step::Get(key) => {
                    let found = store.get([*key]).unwrap();
                    prop_assert!(found == model.get(&vec![*key]).cloned());
                    let found = store.contains([*key]).unwrap();
                    prop_assert_eq!(found, model.contains_key(&vec![*key]));
                }
                Step::Snapshot => {
                    snapshots.push((store.snapshot().unwrap(), model.clone()));
                }
                Step::DropSnapshot => {
                    if !snapshots.is_empty() {
                        let (snapshot, model) = snapshots.remove(0);
                        check(&snapshot, &model).unwrap();
                    }
                }
                Step::Flush => store.flush().unwrap(),
                Step::Compact => {
                    store.compact().unwrap();
                    let verified = store.verify().unwrap();
                    prop_assert_eq!(verified.records, model.len() as u64);
                }
                Step::Reopen => {
                    for (snapshot, model) in snapshots.drain(..) {
                        check(&snapshot, &model).unwrap();
                    }
                    drop(store);
                    store = Store::open(dir.path(), &options).unwrap();
                }
            }
        }
        for (snapshot, model) in &snapshots {
            check(snapshot, model).unwrap();
        }
        check(&store.snapshot().unwrap(), &model).unwrap();
        store.verify().unwrap();
        let ram = store.stats().unwrap().ram;
        prop_assert!(ram.total() <= ram.budget);
        let keys: Vec<_> = (0..=255u8).map(|key| [key]).collect();
        let values = store.get_many(&keys).unwrap();
        for (key, value) in keys.iter().zip(values) {
            prop_assert!(value == model.get(&key[..]).cloned());
        }
    }
}
