//! Keys from compressed files.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::{Lab, lines};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// As the `zstd` program does it, with a checksum at the end.
fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut out = zstd::Encoder::new(Vec::new(), 1).unwrap();
    out.include_checksum(true).unwrap();
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

#[test]
fn compressed_files_are_the_files_they_hold() {
    let lab = Lab::new();
    // Without a final line end, and cut where no line ends.
    let text = lines(1, 60_000).trim_end().to_owned().into_bytes();
    let (left, right) = text.split_at(text.len() / 2 + 3);
    assert_ne!(left.last(), Some(&b'\n'));
    lab.write("plain", &text);
    lab.write("one.gz", gzip(&text));
    lab.write("two.gz", [gzip(left), gzip(right)].concat());
    lab.write(
        "empty-between.gz",
        [gzip(left), gzip(b""), gzip(right)].concat(),
    );
    lab.write("one.zst", zstd(&text));
    lab.write("two.zst", [zstd(left), zstd(right)].concat());
    lab.run("build plain -o plain.tamis --fpr 0.01").done();
    let expected = lab.read("plain.tamis");
    let packed =
        ["one.gz", "two.gz", "empty-between.gz", "one.zst", "two.zst"];
    for name in packed {
        for items in ["", "--items 60000"] {
            let build =
                format!("build {name} -o f --fpr 0.01 --force {items}");
            lab.run(&build).done();
            assert!(lab.read("f") == expected, "{name} {items}");
        }
        let run = lab.run(&format!("query f {name}"));
        assert!(run.done().out == [&text[..], b"\n"].concat(), "{name}");
        lab.run(&format!("query -v f {name}")).nothing();
    }
    // Beside plain files, and added.
    lab.write("more", lines(2, 100));
    lab.run("build one.gz more one.zst -o g --fpr 0.01").done();
    assert_eq!(lab.info("g")["items"], 120_100);
    lab.run("add g two.gz --json").done();
    assert_eq!(lab.info("g")["items"], 180_100);
}

#[test]
fn nothing_compressed_is_nothing() {
    let lab = Lab::new();
    lab.write("f.gz", gzip(b""));
    lab.write("f.zst", zstd(b""));
    for name in ["f.gz", "f.zst"] {
        let build = format!("build {name} -o f --fpr 0.01 --force --json");
        assert_eq!(lab.run(&build).json()["items"], 0, "{name}");
    }
}

#[test]
fn damaged_compression_is_one_line_and_status_2() {
    let lab = Lab::new();
    let text = lines(1, 60_000);
    lab.run("build -k apple -o f --fpr 0.01").done();
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
            lab.write(name, bytes);
            for command in [
                format!("build {name} -o new --fpr 0.01"),
                format!("build {name} -o new --fpr 0.01 --items 9"),
                format!("add f {name}"),
                format!("query -c f {name}"),
            ] {
                let message = lab.refused(&command);
                assert!(message.contains(name), "{what}: {message}");
            }
        }
    }
    // The checksum at the end of a gzip member is looked at.
    let mut bytes = gzip(b"apple\n");
    let len = bytes.len();
    bytes[len - 8] ^= 1;
    lab.write("sum.gz", bytes);
    lab.refused("add f sum.gz");
}
