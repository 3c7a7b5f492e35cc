//! Keys from compressed files.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::{TestDir, lines, number};

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

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(0);
    let mut out = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let level = bzip2::Compression::fast();
    let mut out = bzip2::write::BzEncoder::new(Vec::new(), level);
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Name and compressor.
type Codec = (&'static str, fn(&[u8]) -> Vec<u8>);

const CODECS: [Codec; 4] =
    [("gz", gzip), ("zst", zstd), ("xz", xz), ("bz2", bzip2)];

#[test]
fn compressed_files_give_the_same_filter() {
    let dir = TestDir::new();
    // No final line end; split inside a line.
    let text = lines(1, 60_000).trim_end().to_owned().into_bytes();
    let (left, right) = text.split_at(text.len() / 2 + 3);
    assert_ne!(left.last(), Some(&b'\n'));
    dir.write("plain", &text);
    let mut packed = Vec::new();
    for (name, pack) in CODECS {
        for (part, bytes) in [
            ("one", pack(&text)),
            ("two", [pack(left), pack(right)].concat()),
            ("empty", [pack(left), pack(b""), pack(right)].concat()),
            // Padding, as tapes add it.
            ("zeros", [pack(&text), vec![0; 512]].concat()),
        ] {
            let name = format!("{part}.{name}");
            dir.write(&name, bytes);
            packed.push(name);
        }
    }
    // Parallel compressors write skippable frames.
    let skipped = b"\x50\x2a\x4d\x18\x04\0\0\0abcd";
    dir.write("skip.zst", [&skipped[..], &zstd(&text)].concat());
    packed.push("skip.zst".into());
    dir.run("build plain -o plain.tamis --fpr 0.01").success();
    let expected = dir.read("plain.tamis");
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
    dir.run("build one.gz more one.zst -o g --fpr 0.01").done();
    assert_eq!(dir.info("g")["items"], 120_100);
    dir.run("add g two.gz --json").success();
    assert_eq!(dir.info("g")["items"], 180_100);
}

#[test]
fn empty_compressed_files_have_no_keys() {
    let dir = TestDir::new();
    for (name, pack) in CODECS {
        dir.write(name, pack(b""));
        let build = format!("build {name} -o f --fpr 0.01 --force --json");
        assert_eq!(dir.run(&build).json()["items"], 0, "{name}");
    }
}

#[test]
fn damaged_compressed_files_are_refused() {
    let dir = TestDir::new();
    let text = lines(1, 60_000);
    dir.run("build -k apple -o f --fpr 0.01").success();
    for (name, pack) in CODECS {
        let good = pack(text.as_bytes());
        let name = &format!("bad.{name}");
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

/// The name of a file does not matter, and pipes have none.
#[test]
fn compression_is_recognised_by_content() {
    let dir = TestDir::new();
    let text = lines(1, 5000);
    dir.write("plain", &text);
    dir.run("build plain -o plain.tamis --fpr 0.01").success();
    let expected = dir.read("plain.tamis");
    for (codec, pack) in CODECS {
        let packed = pack(text.as_bytes());
        for name in ["data", "data.GZ", "data.txt"] {
            dir.write(name, &packed);
            dir.run(&format!("build {name} -o f --fpr 0.01 --force"))
                .success();
            assert!(dir.read("f") == expected, "{codec} {name}");
        }
        for arguments in ["", "-", "/dev/stdin"] {
            let build = format!("build {arguments} -o f --fpr 0.01 --force");
            dir.feed(&build, &packed).success();
            assert!(dir.read("f") == expected, "{codec} {arguments:?}");
        }
        dir.feed("build -o g --fpr 0.01 --force", b"x\n").success();
        dir.feed("add g", &packed).done();
        assert_eq!(dir.info("g")["items"], 5001, "{codec}");
        let run = dir.feed("query f", &packed);
        assert!(run.success().text() == text, "{codec}");
    }
    // Keys that resemble the first bytes of a compression are keys.
    let keys = "BZh9 is a key\nPK\n7z\n(\nRar!\n";
    assert_eq!(
        dir.feed("build -o k --fpr 0.01 --json", keys.as_bytes()).json()["items"],
        5
    );
}

#[test]
fn archives_are_refused_by_name() {
    let dir = TestDir::new();
    dir.run("build -k apple -o f --fpr 0.01").success();
    let mut tar = vec![0; 1024];
    tar[..8].copy_from_slice(b"keys.txt");
    tar[257..265].copy_from_slice(b"ustar\x0000");
    let mut cases = vec![
        ("tar", tar.clone(), "tar -xOf"),
        ("zip", b"PK\x03\x04\x14\0rest".to_vec(), "unzip -p"),
        ("7z", b"7z\xbc\xaf\x27\x1c\0\x04".to_vec(), "7z x -so"),
        ("rar", b"Rar!\x1a\x07\x01\0".to_vec(), "unrar p"),
        ("lz4", b"\x04\x22\x4d\x18rest".to_vec(), "lz4 -dc"),
        ("Parquet", b"PAR1\x15\0\x15".to_vec(), "duckdb"),
        ("tamis", dir.read("f"), "tamis merge"),
    ];
    for (codec, pack) in CODECS {
        cases.push(("tar", pack(&tar), "tar -xOf"));
        cases.push((codec, pack(&pack(b"apple\n")), "decompress it once"));
    }
    for (name, bytes, cure) in cases {
        dir.write("data", &bytes);
        for command in [
            "build data -o new --fpr 0.01",
            "build data -o new --fpr 0.01 --items 9",
            "add f data",
            "query -c f data",
        ] {
            let message = dir.refused(command);
            assert!(message.contains(cure), "{name}: {message}");
        }
        let run = dir.feed("query -c f", &bytes);
        assert!(run.refused().contains(cure), "{name}: {run:?}");
    }
}

#[test]
fn bytes_after_compressed_data_are_refused() {
    let dir = TestDir::new();
    dir.run("build -k apple -o f --fpr 0.01").success();
    for (codec, pack) in CODECS {
        for rest in [&b"g"[..], b"garbage that is long", b"\0\0garbage"] {
            dir.write("data", [&pack(b"apple\n")[..], rest].concat());
            let message = dir.refused("add f data");
            assert!(message.contains("other bytes follow"), "{message}");
        }
        let good = pack(lines(1, 60_000).as_bytes());
        dir.write("data", &good[..good.len() / 2]);
        let message = dir.refused("add f data");
        assert!(message.contains("cut short"), "{codec}: {message}");
    }
}

/// Any change of compressed bytes gives keys or an error, never a panic.
#[test]
fn changed_compressed_bytes_do_not_panic() {
    let dir = TestDir::new();
    dir.run("build -k apple -o f --fpr 0.01").success();
    for (_, pack) in CODECS {
        let good = pack(lines(1, 20).as_bytes());
        for i in 0..60 {
            let random = number(9, i);
            let mut bytes = good.clone();
            let at = random as usize % bytes.len();
            bytes[at] ^= 1 << (random >> 40 & 7);
            bytes.truncate(bytes.len() - (random >> 50 & 3) as usize);
            // `ProgramRun` refuses panics.
            dir.feed("query -c f", &bytes);
        }
    }
}

#[test]
fn a_decompression_bomb_stops_at_a_limit() {
    let dir = TestDir::new();
    // 32 million keys in a few kilobytes.
    let blank = vec![b'\n'; 1 << 20];
    let mut bomb = zstd::Encoder::new(Vec::new(), 1).unwrap();
    for _ in 0..32 {
        bomb.write_all(&blank).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 10_000);
    dir.write("bomb", bomb);
    dir.run("build -k apple -o f --fpr 0.01").success();
    let message =
        dir.refused("build bomb -o new --fpr 0.01 --max-spool 64MiB");
    assert!(message.contains("8,388,608 keys"), "{message}");
    assert!(message.contains("--items"), "{message}");
    assert!(message.contains("--max-spool"), "{message}");
    for command in [
        "build bomb -o new --fpr 0.01 --max-keys 1e6",
        "build bomb -o new --fpr 0.01 --max-keys 1e6 --items 9",
        "add f bomb --max-keys 1e6",
        "query -c f bomb --max-keys 1e6",
    ] {
        let message = dir.refused(command);
        assert!(message.contains("more than 1,000,000 keys"), "{message}");
    }
    // The limits themselves are allowed.
    dir.write("keys", lines(1, 1000));
    dir.feed(
        "build -o g --fpr 0.01 --max-spool 8000",
        lines(1, 1000).as_bytes(),
    )
    .success();
    dir.run("query -c f keys --max-keys 1000 --max-key-length 64").status(1);
    dir.refused("query -c f keys --max-keys 999");
}
