//! Several filters into one, and one into half of itself.

use crate::support::{BLOOM_KINDS, KINDS, Lab, lines};

#[test]
fn merged_shards_are_the_direct_build() {
    let lab = Lab::new();
    for shard in 0..4 {
        lab.write(&format!("{shard}.txt"), lines(shard, 3_000));
    }
    for kind in BLOOM_KINDS {
        let settings =
            format!("--kind {kind} --items 12000 --fpr 0.005 --force");
        for shard in 0..4 {
            lab.run(&format!("build {shard}.txt -o {shard}.tamis {settings}"))
                .done();
        }
        lab.run(&format!(
            "build 0.txt 1.txt 2.txt 3.txt -o direct {settings}"
        ))
        .done();
        let direct = lab.read("direct");
        for order in [
            "0.tamis 1.tamis 2.tamis 3.tamis",
            "3.tamis 1.tamis 0.tamis 2.tamis",
        ] {
            let run =
                lab.run(&format!("merge {order} -o merged --force --json"));
            assert_eq!(run.json()["items"], 12_000);
            assert!(lab.read("merged") == direct, "{kind}: {order}");
        }
        // One filter merges into itself; into one of its own names, too.
        lab.run("merge direct -o merged --force").done();
        assert!(lab.read("merged") == direct, "{kind}");
        lab.run("merge 0.tamis 1.tamis -o 0.tamis --force").done();
        lab.run("merge 0.tamis 2.tamis 3.tamis -o merged --force").done();
        assert!(lab.read("merged") == direct, "{kind}");
    }
}

#[test]
fn merging_refuses_what_differs_and_names_it() {
    let lab = Lab::new();
    let build = |name: &str, settings: &str| {
        lab.run(&format!("build -k apple -o {name} {settings}")).done();
    };
    // 20 blocks each, where the number of blocks is not the point.
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
            let message = lab.refused(&command);
            let wanted = format!("{field} differs");
            assert!(message.contains(&wanted), "{command}: {message}");
            assert!(message.contains(other), "{command}: {message}");
        }
    }
    // The key of a keyed hash is not for log files.
    build("secret", &format!("{base} --hash siphash --seed 987654321"));
    let message = lab.refused("merge hash secret -o out");
    assert!(!message.contains("987654321"), "{message}");
    lab.run("merge base same -o out").done();
}

#[test]
fn folded_filters_are_the_direct_build_of_half_the_size() {
    let lab = Lab::new();
    let members = lines(1, 4_000);
    lab.write("keys", &members);
    for kind in BLOOM_KINDS {
        let settings =
            format!("build keys --kind {kind} --bits-per-key 16 --force");
        // 640 blocks; half of them is the size for half the items.
        lab.run(&format!("{settings} --items 20480 -o large")).done();
        lab.run(&format!("{settings} --items 10240 -o half")).done();
        lab.run(&format!("{settings} --items 5120 -o quarter")).done();
        lab.run("fold large -o once --force").done();
        assert!(lab.read("once") == lab.read("half"), "{kind}");
        lab.run("fold once -o once --force").done();
        assert!(lab.read("once") == lab.read("quarter"), "{kind}");
        let run = lab.run("query once keys");
        assert!(run.done().text() == members, "{kind}");
        lab.run("verify once").done();
    }
}

#[test]
fn folding_ends_where_blocks_are_odd() {
    let lab = Lab::new();
    for kind in KINDS {
        let size = "--items 10 --fpr 0.01 --force";
        lab.run(&format!("build -k a -o f {size} --kind {kind}")).done();
        let mut blocks = lab.info("f")["blocks"].as_u64().unwrap();
        while blocks % 2 == 0 {
            lab.run("fold f -o f --force").done();
            blocks /= 2;
            assert_eq!(lab.info("f")["blocks"], blocks);
            lab.run("query -q f -k a").done();
        }
        let message = lab.refused("fold f -o out");
        assert!(message.contains(&format!("{blocks} blocks")), "{message}");
        lab.refused("fold f -o f --force");
    }
}
