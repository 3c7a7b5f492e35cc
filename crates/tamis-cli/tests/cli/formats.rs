//! Key formats, from files and pipes.

use crate::support::{
    KINDS, ProgramRun, TestDir, expected, expected_in, integers, lines, number,
};

type Keys = Vec<Vec<u8>>;

/// Builds from `input` as a file and as a pipe, with and without `--items`,
/// compares with the filter of the library for `keys`, then queries them.
fn check(format: &str, input: &[u8], keys: &Keys) {
    let dir = TestDir::new();
    dir.write("keys", input);
    let what = String::from_utf8_lossy(&input[..input.len().min(60)]);
    let what = format!("{format}: {what:?}");
    let want = expected_in(format, "tinyset", keys, 0.001);
    let settings = format!("--fpr 0.001 --key-format {format} --force -o f");
    let items = keys.len();

    dir.run(&format!("build keys {settings}")).success();
    assert!(dir.read("f") == want, "{what} counted");
    dir.run(&format!("build keys {settings} --items {items}")).success();
    assert!(dir.read("f") == want, "{what} with --items");
    dir.feed(&format!("build {settings}"), input).success();
    assert!(dir.read("f") == want, "{what} spooled");
    dir.feed(&format!("build - {settings} --items {items}"), input).success();
    assert!(dir.read("f") == want, "{what} from a pipe with --items");

    let status = i32::from(keys.is_empty());
    // The filter remembers the format.
    let run = dir.run("query -c f keys");
    assert_eq!(run.status(status).text(), format!("{items}\n"), "{what}");
    let format = format!("--key-format {format}");
    let query = dir.run(&format!("query f keys {format}"));
    query.status(status);
    // The output is the input; a missing last delimiter may be added.
    assert!(query.out.starts_with(input), "{what} printed");
    assert!(query.out.len() <= input.len() + 1, "{what} printed");
    dir.run(&format!("query -v f keys {format}")).no_match();
    let run = dir.run(&format!("query -c f keys {format}"));
    assert_eq!(run.text(), format!("{items}\n"), "{what}");
}

fn check_text(format: &str, input: &str, keys: &[&str]) {
    let keys = keys.iter().map(|key| key.as_bytes().to_vec()).collect();
    check(format, input.as_bytes(), &keys);
}

#[test]
fn lines_split_at_line_ends() {
    check_text("lines", "", &[]);
    check_text("lines", "a\n", &["a"]);
    check_text("lines", "a\nb", &["a", "b"]);
    check_text("lines", "\n", &[""]);
    check_text("lines", "\n\na\n\n", &["", "", "a", ""]);
    check_text("lines", "a\r\nb\r\n\r\nc\r", &["a", "b", "", "c"]);
    check_text("lines", "a\rb\r\r\n", &["a\rb\r"]);
    check_text("lines", " a \n\tb\n", &[" a ", "\tb"]);
    check_text("lines", "a\0b\n\0\n", &["a\0b", "\0"]);
    check("lines", b"\xff\xfd\n\x80", &vec![vec![0xff, 0xfd], vec![0x80]]);
}

/// Byte order marks and UTF-16, as Windows programs write them. Output is
/// UTF-8.
#[test]
fn utf16_text_is_read_as_utf8() {
    const LINES: &str = "apple\r\nZo\u{eb}\n\u{1f600}\n";
    const TABLE: &str = "id,fruit\n1,apple\n2,Zo\u{eb}\n3,\u{1f600}\n";
    const JSON: &str =
        "{\"id\":\"apple\"}\n{\"id\":\"Zo\u{eb}\"}\n{\"id\":\"\u{1f600}\"}\n";
    let dir = TestDir::new();
    dir.write("keys", LINES.replace('\r', ""));
    dir.run("build keys -o f --fpr 1e-9").success();
    let filter = dir.read("f");
    for (text, arguments) in [
        (LINES, ""),
        (TABLE, "--field fruit"),
        (TABLE, "--field 2 --header"),
        (JSON, "--json-field id"),
    ] {
        let marked = format!("\u{feff}{text}");
        let encode = |bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            marked.encode_utf16().flat_map(bytes).collect()
        };
        for input in [
            marked.clone().into_bytes(),
            encode(u16::to_le_bytes),
            encode(u16::to_be_bytes),
        ] {
            dir.write("input", &input);
            let build =
                format!("build input -o g --force --fpr 1e-9 {arguments}");
            dir.run(&build).success();
            assert!(dir.read("g") == filter, "{arguments}");
            for run in [
                dir.run(&format!("query f input {arguments}")),
                dir.feed(&format!("query f {arguments}"), &input),
            ] {
                assert_eq!(run.success().text(), text, "{arguments}");
            }
        }
    }
    // Keys without encoding, and integers.
    let bytes = b"\xff\xfeabcde\0";
    for format in ["nul", "u64le"] {
        let key = match format {
            "nul" => bytes[..7].to_vec(),
            _ => bytes.to_vec(),
        };
        check(format, bytes, &vec![key]);
    }
    dir.write("input", b"\xff\xfea");
    let message = dir.refused("query f input");
    assert!(message.contains("input: expected UTF-16"), "{message}");
}

#[test]
fn nul_keys_keep_all_other_bytes() {
    check_text("nul", "", &[]);
    check_text("nul", "a\nb\0c\r\0", &["a\nb", "c\r"]);
    check_text("nul", "\0\0d", &["", "", "d"]);
}

#[test]
fn u64le_keys_are_eight_bytes() {
    check("u64le", b"", &vec![]);
    check("u64le", &[0; 8], &vec![vec![0; 8]]);
    check(
        "u64le",
        b"newline\ncarriag\r",
        &vec![b"newline\n".to_vec(), b"carriag\r".to_vec()],
    );
}

#[test]
fn hex_keys_are_decoded() {
    check("hex", b"", &vec![]);
    check(
        "hex",
        b"00fF\r\nAb\n\n0a",
        &vec![vec![0, 255], vec![0xab], vec![], vec![10]],
    );
    let dir = TestDir::new();
    dir.run("build -k 6170706c65 --key-format hex -o f --fpr 1e-9").success();
    dir.write("lines", "apple\n");
    let hashed = dir.run("build lines -o lines.tamis --fpr 1e-9");
    hashed.success();
    dir.run("query -q f -k 6170706c65").success();
    dir.run("build -k 513 --key-format u64le -o g --fpr 1e-9").success();
    dir.run("query -q g -k 513").success();
    dir.run("query -q g -k 514").no_match();
    for (bad, reason) in [
        ("0", "found 1"),
        ("012", "found 3"),
        ("zz", "at column 1, found 'z'"),
        ("0x00", "at column 2, found 'x'"),
        ("00 ff", "at column 3, found ' ': only HASH:COUNT"),
        ("abcd:x", "at column 5, found ':': only HASH:COUNT"),
        ("abcd,17", "at column 5, found ',': only HASH:COUNT"),
        ("é", "at column 1, found 'é'"),
        ("ab\x1b", r"at column 3, found '\u{1b}'"),
    ] {
        dir.write("bad", bad);
        let message =
            dir.refused("build bad -o h --fpr 0.01 --key-format hex");
        assert!(message.contains("bad: key 1:"), "{message}");
        assert!(message.contains(reason), "{message}");
    }
}

/// Keys longer than a chunk, and keys that begin or end at any offset of it.
#[test]
fn keys_across_chunks_are_read_completely() {
    const CHUNK_BYTES: usize = 1 << 18;
    let long = |len: usize| vec![b'k'; len];
    for len in [
        CHUNK_BYTES - 2,
        CHUNK_BYTES - 1,
        CHUNK_BYTES,
        CHUNK_BYTES + 1,
        2 * CHUNK_BYTES - 1,
        3 * CHUNK_BYTES,
    ] {
        for before in [0, 1, 7] {
            for ended in [true, false] {
                let mut keys: Keys = vec![];
                if before > 0 {
                    keys.push(vec![b'b'; before - 1]);
                }
                keys.push(long(len));
                if ended {
                    keys.push(b"after".to_vec());
                }
                let mut input = keys.join(&b'\n');
                if ended {
                    input.push(b'\n');
                }
                let dir = TestDir::new();
                dir.feed("build -o f --fpr 0.001", &input).success();
                assert!(
                    dir.read("f") == expected("tinyset", &keys, 0.001),
                    "{before} bytes, then {len}, ended: {ended}"
                );
            }
        }
    }
    // Several keys above 1 MiB between short ones.
    let keys: Keys = (0..9)
        .map(|i| match i % 3 {
            0 => long((1 << 20) + 12_345 * i),
            1 => vec![],
            _ => b"short".to_vec(),
        })
        .collect();
    check("lines", &(keys.join(&b'\n')), &keys);
    check("nul", &(keys.join(&0)), &keys);
    let hex: Keys =
        keys.iter().map(|key| hex::encode(key).into_bytes()).collect();
    check("hex", &(hex.join(&b'\n')), &keys);
}

#[test]
fn many_keys_are_read_in_every_format() {
    let input = lines(1, 120_000);
    let keys: Keys = input.lines().map(Vec::from).collect();
    check("lines", input.as_bytes(), &keys);
    check("nul", input.replace('\n', "\0").as_bytes(), &keys);
    let input = integers(1, 120_000);
    let keys: Keys = input.chunks(8).map(<[u8]>::to_vec).collect();
    check("u64le", &input, &keys);
    let hex: String = (0..120_000)
        .map(|i| format!("{}\r\n", hex::encode(number(1, i).to_le_bytes())))
        .collect();
    check("hex", hex.as_bytes(), &keys);
}

#[test]
fn filters_without_keys_match_nothing() {
    let dir = TestDir::new();
    dir.write("empty", "");
    dir.write("some", lines(1, 1000));
    for kind in KINDS {
        let build =
            format!("build empty -o {kind} --fpr 0.01 --kind {kind} --json");
        let report = dir.run(&build).json();
        assert_eq!(report["items"], 0);
        assert_eq!(report["bits_per_key"], serde_json::Value::Null);
        dir.run(&format!("query {kind} some")).no_match();
        dir.run(&format!("query {kind} empty")).no_match();
        dir.run(&format!("query -v {kind} empty")).no_match();
        assert_eq!(dir.count(&format!("-v {kind} some")), 1000);
        dir.run(&format!("verify {kind}")).success();
        dir.run(&format!("info {kind}")).success();
        let before = dir.read(kind);
        dir.run(&format!("add {kind} empty")).success();
        assert!(dir.read(kind) == before, "{kind}");
        dir.run(&format!("add {kind} some")).done();
        dir.run(&format!("query -v {kind} some")).no_match();
        assert_eq!(dir.info(kind)["over_design"], true);
    }
}

#[test]
fn keys_longer_than_the_limit_are_refused() {
    let dir = TestDir::new();
    dir.run("build -k apple -o f --fpr 0.01").success();
    let mut input = lines(1, 1000).into_bytes();
    input.extend(vec![b'x'; 1 << 20]);
    dir.write("keys", &input);
    for limit in ["1MiB", "1M"] {
        dir.run(&format!("query -c f keys --max-key-length {limit}"))
            .status(1);
    }
    for limit in ["1048575", "64K", "100"] {
        let limit = format!("--max-key-length {limit}");
        for run in [
            dir.run(&format!("add f keys {limit}")),
            dir.feed(&format!("add f {limit}"), &input),
        ] {
            let message = run.refused();
            assert!(message.contains("key 1001: longer"), "{message}");
            assert!(message.contains("--max-key-length"), "{message}");
        }
    }
}

/// Plain keys looked up in a filter of digests would all be "certainly not",
/// breached passwords included.
#[test]
fn other_key_formats_are_refused() {
    let dir = TestDir::new();
    dir.write("keys", "abcd\n");
    let build = "build keys --fpr 1e-9 --kind tinyset --removable --force -o";
    dir.run(&format!("{build} lines.tamis")).success();
    dir.run(&format!("{build} hex.tamis --key-format hex")).success();
    dir.run(&format!("{build} sha1.tamis --digest sha1")).success();
    for verb in ["query", "add", "remove"] {
        for (wrong, reason) in [
            ("hex.tamis --key-format lines", "are hex, not lines"),
            ("hex.tamis -0", "are hex, not nul"),
            ("hex.tamis --key-format u64le", "are hex, not u64le"),
            ("lines.tamis --key-format hex", "are lines, not hex"),
            ("lines.tamis --digest sha1", "are lines, not digests"),
            ("sha1.tamis --digest md5", "are sha1 digests"),
        ] {
            let message = dir.refused(&format!("{verb} {wrong} -k abcd"));
            assert!(message.contains(reason), "{message}");
            let filter = wrong.split(' ').next().unwrap();
            assert!(message.starts_with(&format!("tamis: {filter}: ")));
        }
        let message =
            dir.refused(&format!("{verb} hex.tamis --key-format lines -k a"));
        assert!(message.contains("--digest hashes plain keys"), "{message}");
    }
    for (filter, format) in
        [("lines", "lines"), ("hex", "hex"), ("sha1", "hex")]
    {
        let info = dir.info(&format!("{filter}.tamis"));
        assert_eq!(info["metadata"]["key-format"], format);
    }
    assert_eq!(dir.info("sha1.tamis")["metadata"]["digest"], "sha1");
    let info = dir.run("info sha1.tamis");
    assert!(info.text().contains("digest          sha1\n"), "{info:?}");
    // Lines and keys that end with NUL are the same keys.
    dir.feed("query -q lines.tamis -0", b"abcd\0").success();
    dir.feed("add lines.tamis -0", b"ab\0").success();
    dir.feed("query -q lines.tamis", b"ab\n").success();
    // The format of a NUL filter is also that of --key.
    dir.feed("build -0 -o nul.tamis --fpr 1e-9", b"ab\0c\n\0").success();
    dir.feed("query -c nul.tamis", b"ab\0").success();
    dir.run("query -q nul.tamis -k ab").success();
    dir.feed("query -q nul.tamis --key-format lines", b"x\nab\n").success();
    dir.feed("query -q nul.tamis -f 2", b"x,ab\n").success();
    let run = dir.feed("query -q nul.tamis", b"x\nab\n");
    assert!(run.refused().contains("--key-format lines"), "{run:?}");
    dir.feed("query -c nul.tamis -0", b"x\nab\n").no_match();
}

/// Filters of the library have no key format.
#[test]
fn filters_without_key_format_take_any_keys() {
    let dir = TestDir::new();
    let mut filter = tamis::AnyFilter::builder(tamis::Kind::Blocked)
        .items(10)
        .fpr(1e-9)
        .build()
        .unwrap();
    filter.insert(b"abcd");
    filter.insert(&[0xab, 0xcd]);
    dir.write("f", filter.to_bytes());
    dir.run("query -q f -k abcd").success();
    dir.run("query -q f -k ABCD --key-format hex").success();
    let info = dir.info("f");
    assert_eq!(info["metadata"], serde_json::json!({}));
    filter.set_metadata("key-format", "utf16").unwrap();
    dir.write("f", filter.to_bytes());
    let message = dir.refused("query f -k abcd");
    assert!(message.contains("no key-format \"utf16\""), "{message}");
}

#[test]
fn notes_and_provenance_are_stored() {
    let dir = TestDir::new();
    dir.write("a.txt", "apple\n");
    dir.write("b.txt", "pear\n");
    let build = |more: &[&str]| {
        let arguments =
            ["build", "a.txt", "b.txt", "-o", "f", "--fpr", "0.01", "--force"];
        let mut command = dir.command_with(arguments);
        command.args(more).env("SOURCE_DATE_EPOCH", "951782400");
        ProgramRun::new(&mut command, None).success();
        dir.read("f")
    };
    let plain = build(&[]);
    assert!(plain == build(&[]));
    let note = "The list\nof \u{1b}[31mJune";
    let noted = build(&["--note", note, "--provenance"]);
    assert!(noted == build(&["--note", note, "--provenance"]));
    let metadata = &dir.info("f")["metadata"];
    assert_eq!(metadata["note"], note);
    assert_eq!(metadata["source"], "a.txt, b.txt");
    assert_eq!(metadata["created"], "2000-02-29T00:00:00Z");
    let info = dir.run("info f");
    let expected = "note            The list\\nof \\u{1b}[31mJune\n";
    assert!(info.text().contains(expected), "{info:?}");
    // Changes keep them.
    dir.run("add f -k plum").success();
    assert_eq!(dir.info("f")["metadata"], *metadata);
    let long = "x".repeat(70_000);
    let arguments =
        ["build", "a.txt", "-o", "g", "--fpr", "0.01", "--note", &long];
    ProgramRun::new(&mut dir.command_with(arguments), None).refused();
}

#[test]
fn merged_filters_have_one_key_format() {
    let dir = TestDir::new();
    let settings = "--fpr 0.01 --kind blocked --items 100";
    for (name, options) in [
        ("lines", ""),
        ("nul", "-0"),
        ("hex", "--key-format hex"),
        ("sha1", "--digest sha1"),
    ] {
        dir.run(&format!("build -k abcd -o {name} {settings} {options}"))
            .success();
    }
    let builder = tamis::AnyFilter::builder(tamis::Kind::Blocked);
    let none = builder.items(100).fpr(0.01).build().unwrap();
    dir.write("none", none.to_bytes());
    for pair in ["lines hex", "hex sha1", "none lines hex", "sha1 none hex"] {
        let message = dir.refused(&format!("merge {pair} -o new"));
        assert!(message.contains("the keys of the first"), "{message}");
    }
    for (parts, format) in [
        ("lines lines", "lines"),
        ("lines nul", "lines"),
        ("none hex", "hex"),
        ("hex none", "hex"),
    ] {
        dir.run(&format!("merge {parts} -o m --force")).success();
        assert_eq!(dir.info("m")["metadata"]["key-format"], format);
    }
}
