//! Keys from compressed files.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::{TestDir, lines};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Compresses with a checksum at the end, like the `zstd` program.
fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut out = zstd::Encoder::new(Vec::new(), 1).unwrap();
    out.include_checksum(true).unwrap();
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

#[test]
fn compressed_files_give_the_same_filter() {
    let dir = TestDir::new();
    // No final line end; split inside a line.
    let text = lines(1, 60_000).trim_end().to_owned().into_bytes();
    let (left, right) = text.split_at(text.len() / 2 + 3);
    assert_ne!(left.last(), Some(&b'\n'));
    dir.write("plain", &text);
    dir.write("one.gz", gzip(&text));
    dir.write("two.gz", [gzip(left), gzip(right)].concat());
    dir.write(
        "empty-between.gz",
        [gzip(left), gzip(b""), gzip(right)].concat(),
    );
    dir.write("one.zst", zstd(&text));
    dir.write("two.zst", [zstd(left), zstd(right)].concat());
    dir.run("build plain -o plain.tamis --fpr 0.01").success();
    let expected = dir.read("plain.tamis");
    let packed =
        ["one.gz", "two.gz", "empty-between.gz", "one.zst", "two.zst"];
    for name in packed {
        for items in ["", "--items 60000"] {
            let build =
                format!("build {name} -o f --fpr 0.01 --force {items}");
            dir.run(&build).success();
            assert!(dir.read("f") == expected, "{name} {items}");
        }
        let run = dir.run(&format!("query f {name}"));
        assert!(run.success().out == [&text[..], b"\n"].concat(), "{name}");
        dir.run(&format!("query -v f {name}")).no_match();
    }
    // Mixed with plain files, and in `add`.
    dir.write("more", lines(2, 100));
    dir.run("build one.gz more one.zst -o g --fpr 0.01").success();
    assert_eq!(dir.info("g")["items"], 120_100);
    dir.run("add g two.gz --json").success();
    assert_eq!(dir.info("g")["items"], 180_100);
}

#[test]
fn empty_compressed_files_have_no_keys() {
    let dir = TestDir::new();
    dir.write("f.gz", gzip(b""));
    dir.write("f.zst", zstd(b""));
    for name in ["f.gz", "f.zst"] {
        let build = format!("build {name} -o f --fpr 0.01 --force --json");
        assert_eq!(dir.run(&build).json()["items"], 0, "{name}");
    }
}

#[test]
fn damaged_compressed_files_are_refused() {
    let dir = TestDir::new();
    let text = lines(1, 60_000);
    dir.run("build -k apple -o f --fpr 0.01").success();
    for (name, good) in
        [("bad.gz", gzip(text.as_bytes())), ("bad.zst", zstd(text.as_bytes()))]
    {
        let flipped = |at: usize| {
            let mut bytes = good.clone();
            bytes[at] ^= 0x55;
            bytes
        };
        let len = good.len();
        let cases = [
            ("beginning", flipped(1)),
            ("middle", flipped(len / 2)),
            ("half", good[..len / 2].to_vec()),
            ("all but the last byte", good[..len - 1].to_vec()),
            ("not compressed", text.clone().into_bytes()),
        ];
        for (what, bytes) in cases {
            dir.write(name, bytes);
            for command in [
                format!("build {name} -o new --fpr 0.01"),
                format!("build {name} -o new --fpr 0.01 --items 9"),
                format!("add f {name}"),
                format!("query -c f {name}"),
            ] {
                let message = dir.refused(&command);
                assert!(message.contains(name), "{what}: {message}");
            }
        }
    }
    // The checksum at the end of a gzip member is verified.
    let mut bytes = gzip(b"apple\n");
    let len = bytes.len();
    bytes[len - 8] ^= 1;
    dir.write("sum.gz", bytes);
    dir.refused("add f sum.gz");
}
