//! merge and fold.

use crate::support::{BLOOM_KINDS, KINDS, TestDir, lines};

#[test]
fn merged_shards_equal_one_build() {
    let dir = TestDir::new();
    for shard in 0..4 {
        dir.write(&format!("{shard}.txt"), lines(shard, 3_000));
    }
    for kind in BLOOM_KINDS {
        let settings =
            format!("--kind {kind} --items 12000 --fpr 0.005 --force");
        for shard in 0..4 {
            dir.run(&format!("build {shard}.txt -o {shard}.tamis {settings}"))
                .success();
        }
        dir.run(&format!(
            "build 0.txt 1.txt 2.txt 3.txt -o direct {settings}"
        ))
        .success();
        let direct = dir.read("direct");
        for order in [
            "0.tamis 1.tamis 2.tamis 3.tamis",
            "3.tamis 1.tamis 0.tamis 2.tamis",
        ] {
            let run =
                dir.run(&format!("merge {order} -o merged --force --json"));
            assert_eq!(run.json()["items"], 12_000);
            assert!(dir.read("merged") == direct, "{kind}: {order}");
        }
        // A single filter is copied.
        dir.run("merge direct -o merged --force").success();
        assert!(dir.read("merged") == direct, "{kind}");
        dir.run("merge 0.tamis 1.tamis -o half --force").success();
        dir.run("merge half 2.tamis 3.tamis -o merged --force").success();
        assert!(dir.read("merged") == direct, "{kind}");
    }
}

#[test]
fn merge_refuses_different_settings_and_names_them() {
    let dir = TestDir::new();
    let build = |name: &str, settings: &str| {
        dir.run(&format!("build -k apple -o {name} {settings}")).success();
    };
    // 20 blocks each, except where the number of blocks is tested.
    let base = "--items 1000 --bits-per-key 10 --kind blocked";
    build("base", base);
    build("same", base);
    build("kind", &base.replace("blocked", "split"));
    build("blocks", &base.replace("1000", "2000"));
    let half = base.replace("1000", "500");
    build("block-bits", &format!("{half} --block-bits 256"));
    build("probes", &half.replace("10 ", "20 "));
    build("hash", &format!("{base} --hash siphash --seed 0"));
    build("seed", &format!("{base} --seed 1"));
    for other in ["kind", "blocks", "block-bits", "probes", "hash", "seed"] {
        let field = other.replace('-', " ");
        for command in [
            format!("merge base {other} -o out"),
            format!("merge {other} same -o out"),
            format!("merge base same {other} -o out"),
        ] {
            let message = dir.refused(&command);
            let wanted = format!("{field} differs");
            assert!(message.contains(&wanted), "{command}: {message}");
            assert!(message.contains(other), "{command}: {message}");
        }
    }
    // The key of a keyed hash is secret and must not be printed.
    build("secret", &format!("{base} --hash siphash --seed 987654321"));
    let message = dir.refused("merge hash secret -o out");
    assert!(!message.contains("987654321"), "{message}");
    dir.run("merge base same -o out").success();
}

#[test]
fn folded_filters_equal_a_build_of_half_the_size() {
    let dir = TestDir::new();
    let members = lines(1, 4_000);
    dir.write("keys", &members);
    for kind in BLOOM_KINDS {
        let settings =
            format!("build keys --kind {kind} --bits-per-key 16 --force");
        // 640 blocks; half the blocks are the size for half the items.
        dir.run(&format!("{settings} --items 20480 -o large")).success();
        dir.run(&format!("{settings} --items 10240 -o half")).success();
        dir.run(&format!("{settings} --items 5120 -o quarter")).success();
        dir.run("fold large -o once --force").success();
        assert!(dir.read("once") == dir.read("half"), "{kind}");
        dir.run("fold once -o twice --force").success();
        assert!(dir.read("twice") == dir.read("quarter"), "{kind}");
        let run = dir.run("query twice keys");
        assert!(run.success().text() == members, "{kind}");
        dir.run("verify once").success();
    }
}

#[test]
fn fold_refuses_an_odd_number_of_blocks() {
    let dir = TestDir::new();
    for kind in KINDS {
        let size = "--items 10 --fpr 0.01 --force";
        dir.run(&format!("build -k a -o f {size} --kind {kind}")).success();
        let mut blocks = dir.info("f")["blocks"].as_u64().unwrap();
        while blocks % 2 == 0 {
            dir.run("fold f -o half --force").success();
            std::fs::rename(dir.path("half"), dir.path("f")).unwrap();
            blocks /= 2;
            assert_eq!(dir.info("f")["blocks"], blocks);
            dir.run("query -q f -k a").success();
        }
        let message = dir.refused("fold f -o out");
        assert!(message.contains(&format!("{blocks} blocks")), "{message}");
        dir.refused("fold f -o f --force");
    }
}
