//! Length of the data file while records are replaced.

mod records;

use records::{key, mix};
use tamis_store::{Durability, Options, Result, Store};

/// Loads `n` records of 116 bytes, and replaces each `turns` times: by a record
/// of the same key, or by one of a new key. Returns the longest file of the
/// turns after the first, as a multiple of the bytes of the records and 4 more
/// for each.
fn churn(
    n: u64,
    turns: u64,
    buffer: u64,
    segment: u64,
    new_keys: bool,
) -> Result<f64> {
    let options = Options::new()
        .ram(64 << 20)
        .buffer_bytes(buffer)
        .segment_bytes(segment)
        .seed(7)
        .background(false)
        .durability(Durability::None);
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::create(dir.path(), &options)?;
    let mut loader = store.loader()?;
    for i in 0..n {
        loader.put(key(i), [0; 100])?;
    }
    loader.finish()?;
    let times = |bytes: u64| bytes as f64 / (n * 120) as f64;
    let stats = store.stats()?;
    let loaded = times(stats.disk.data);
    assert!(loaded <= 1.06, "{loaded} after the load");
    let mut most = 0.0f64;
    for turn in 1..=turns {
        for i in 0..n {
            if new_keys {
                store.delete(key(i + (turn - 1) * n))?;
                store.put(key(i + turn * n), [turn as u8; 100])?;
            } else {
                let at = mix(i ^ turn << 40) % n;
                store.put(key(at), [turn as u8; 100])?;
            }
            if turn > 1 && i % 1000 == 0 {
                most = most.max(times(store.stats()?.disk.data));
            }
        }
    }
    println!(
        "{} segments, buffer {:.1} %, new keys {new_keys}: loaded {loaded:.3}, \
         longest {most:.3}",
        stats.segments,
        100.0 * times(buffer),
    );
    Ok(most)
}

/// 16 and 64 segments; merges alone.
#[test]
fn the_file_has_at_most_130_percent_of_the_data() -> Result<()> {
    for (segment, new_keys) in
        [(2 << 20, false), (2 << 20, true), (512 << 10, false)]
    {
        let most = churn(200_000, 2, 5 << 20, segment, new_keys)?;
        assert!(most <= 1.30, "{most} times the data");
    }
    Ok(())
}

/// The lengths of short segments differ by more: places fit fewer of them.
#[test]
fn few_short_segments_need_more() -> Result<()> {
    for new_keys in [false, true] {
        let most = churn(50_000, 4, 1200 << 10, 512 << 10, new_keys)?;
        assert!(most <= 1.40, "{most} times the data");
    }
    Ok(())
}

/// Runs may have an eighth of the data's pages.
#[test]
fn runs_lengthen_the_file_by_little() -> Result<()> {
    let most = churn(200_000, 2, 600 << 10, 1 << 20, false)?;
    assert!(most <= 1.30, "{most} times the data");
    Ok(())
}

/// Segments of 4 MiB, as they are by default.
#[test]
#[ignore = "a minute: the slow tier runs it"]
fn the_file_of_long_segments() -> Result<()> {
    for (n, buffer) in [(400_000, 10 << 20), (1_500_000, 36 << 20)] {
        for new_keys in [false, true] {
            let most = churn(n, 4, buffer, 4 << 20, new_keys)?;
            assert!(most <= 1.30, "{most} times the data");
        }
    }
    Ok(())
}
