//! How keys are cut out of bytes, whatever way those come.

use crate::support::{KINDS, Lab, expected, integers, lines, number};

type Keys = Vec<Vec<u8>>;

/// Builds from `input` in every way there is and compares with the filter
/// the library makes of `keys`; then asks for them.
fn check(format: &str, input: &[u8], keys: &Keys) {
    let lab = Lab::new();
    lab.write("keys", input);
    let what = String::from_utf8_lossy(&input[..input.len().min(60)]);
    let what = format!("{format}: {what:?}");
    let want = expected("tinyset", keys, 0.001);
    let settings = format!("--fpr 0.001 --key-format {format} --force -o f");
    let items = keys.len();

    lab.run(&format!("build keys {settings}")).done();
    assert!(lab.read("f") == want, "{what} counted");
    lab.run(&format!("build keys {settings} --items {items}")).done();
    assert!(lab.read("f") == want, "{what} with --items");
    lab.feed(&format!("build {settings}"), input).done();
    assert!(lab.read("f") == want, "{what} spooled");
    lab.feed(&format!("build - {settings} --items {items}"), input).done();
    assert!(lab.read("f") == want, "{what} from a pipe with --items");

    let status = i32::from(keys.is_empty());
    let format = format!("--key-format {format}");
    let query = lab.run(&format!("query f keys {format}"));
    query.status(status);
    // What was written, with a last delimiter that may have been missing.
    assert!(query.out.starts_with(input), "{what} printed");
    assert!(query.out.len() <= input.len() + 1, "{what} printed");
    lab.run(&format!("query -v f keys {format}")).nothing();
    let run = lab.run(&format!("query -c f keys {format}"));
    assert_eq!(run.text(), format!("{items}\n"), "{what}");
}

fn check_text(format: &str, input: &str, keys: &[&str]) {
    let keys = keys.iter().map(|key| key.as_bytes().to_vec()).collect();
    check(format, input.as_bytes(), &keys);
}

#[test]
fn lines_end_where_people_think() {
    check_text("lines", "", &[]);
    check_text("lines", "a\n", &["a"]);
    check_text("lines", "a\nb", &["a", "b"]);
    check_text("lines", "\n", &[""]);
    check_text("lines", "\n\na\n\n", &["", "", "a", ""]);
    check_text("lines", "a\r\nb\r\n\r\nc\r", &["a", "b", "", "c"]);
    check_text("lines", "a\rb\r\r\n", &["a\rb\r"]);
    check_text("lines", " a \n\tb\n", &[" a ", "\tb"]);
    check_text("lines", "a\0b\n\0\n", &["a\0b", "\0"]);
    check("lines", b"\xff\xfe\n\x80", &vec![vec![0xff, 0xfe], vec![0x80]]);
}

#[test]
fn nul_ends_keep_everything_else() {
    check_text("nul", "", &[]);
    check_text("nul", "a\nb\0c\r\0", &["a\nb", "c\r"]);
    check_text("nul", "\0\0d", &["", "", "d"]);
}

#[test]
fn integers_are_eight_bytes() {
    check("u64le", b"", &vec![]);
    check("u64le", &[0; 8], &vec![vec![0; 8]]);
    check(
        "u64le",
        b"newline\ncarriag\r",
        &vec![b"newline\n".to_vec(), b"carriag\r".to_vec()],
    );
}

#[test]
fn hex_is_the_bytes_it_stands_for() {
    check("hex", b"", &vec![]);
    check(
        "hex",
        b"00fF\r\nAb\n\n0a",
        &vec![vec![0, 255], vec![0xab], vec![], vec![10]],
    );
    let lab = Lab::new();
    lab.run("build -k 6170706c65 --key-format hex -o f --fpr 1e-9").done();
    lab.run("query -q f -k apple").done();
    lab.run("build -k 513 --key-format u64le -o g --fpr 1e-9").done();
    lab.run("query -q g -k 0102000000000000 --key-format hex").done();
    for bad in ["0", "zz", "0x00", "00 ff", "é"] {
        lab.write("bad", bad);
        let message =
            lab.refused("build bad -o h --fpr 0.01 --key-format hex");
        assert!(message.contains("bad: key 1:"), "{message}");
    }
}

/// Input is read in pieces; a key may be longer than any of them, and may
/// begin or end anywhere in them.
#[test]
fn keys_of_every_length_survive_the_reading() {
    const PIECE: usize = 1 << 18;
    let long = |len: usize| vec![b'k'; len];
    for len in
        [PIECE - 2, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE - 1, 3 * PIECE]
    {
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
                let lab = Lab::new();
                lab.feed("build -o f --fpr 0.001", &input).done();
                assert!(
                    lab.read("f") == expected("tinyset", &keys, 0.001),
                    "{before} bytes, then {len}, ended: {ended}"
                );
            }
        }
    }
    // Longer than a mebibyte, several of them, between short ones.
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
fn many_keys_of_many_lengths() {
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
fn no_keys_make_a_filter_that_knows_none() {
    let lab = Lab::new();
    lab.write("empty", "");
    lab.write("some", lines(1, 1000));
    for kind in KINDS {
        let build =
            format!("build empty -o {kind} --fpr 0.01 --kind {kind} --json");
        let report = lab.run(&build).json();
        assert_eq!(report["items"], 0);
        assert_eq!(report["bits_per_key"], serde_json::Value::Null);
        lab.run(&format!("query {kind} some")).nothing();
        lab.run(&format!("query {kind} empty")).nothing();
        lab.run(&format!("query -v {kind} empty")).nothing();
        assert_eq!(lab.count(&format!("-v {kind} some")), 1000);
        lab.run(&format!("verify {kind}")).done();
        lab.run(&format!("info {kind}")).done();
        let before = lab.read(kind);
        lab.run(&format!("add {kind} empty")).done();
        assert!(lab.read(kind) == before, "{kind}");
        lab.run(&format!("add {kind} some")).done();
        lab.run(&format!("query -v {kind} some")).nothing();
        assert_eq!(lab.info(kind)["over_design"], true);
    }
}
