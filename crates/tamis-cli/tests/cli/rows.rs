//! Keys inside of rows: tables, JSON lines, digests; the output of rows.

use crate::support::{ProgramRun, TestDir, lines};

/// Filter of `apple`, `pear` and `a,b`.
fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.write("keys", "apple\npear\na,b\n");
    dir.run("build keys -o f --fpr 1e-9").success();
    dir
}

fn query<'a>(
    dir: &TestDir,
    arguments: impl IntoIterator<Item = &'a str>,
) -> String {
    let arguments = ["query", "f"].into_iter().chain(arguments);
    let run = ProgramRun::new(&mut dir.command_with(arguments), None);
    run.success().text().to_owned()
}

const TABLE: &str = "id,fruit,note\r\n1,apple,\"two\nlines\"\r\n2,plum,\r\n\
    3,\"pear\",x\r\n4,\"a,b\",\"say \"\"hi\"\"\"";

#[test]
fn tables_print_whole_rows() {
    let dir = dir();
    dir.write("t.csv", TABLE);
    let rows: Vec<&str> = TABLE.split_inclusive("\r\n").collect();
    let selected = [rows[0], rows[1], rows[3], rows[4], "\n"].concat();
    for field in ["fruit", "2"] {
        let table = ["t.csv", "-f", field, "--header"];
        assert_eq!(query(&dir, table), selected, "{field}");
        let inverted = query(&dir, [&table[..], &["-v"]].concat());
        assert_eq!(inverted, [rows[0], rows[2]].concat());
        assert_eq!(query(&dir, [&table[..], &["-c"]].concat()), "3\n");
        let numbered = query(&dir, [&table[..], &["-n", "-v"]].concat());
        assert_eq!(numbered, format!("1:{}3:{}", rows[0], rows[2]));
    }
    // A name implies a header; without one the first row is a row.
    assert_eq!(query(&dir, ["t.csv", "--field", "fruit"]), selected);
    assert_eq!(query(&dir, ["t.csv", "-f", "2"]), selected[15..]);
    assert_eq!(query(&dir, ["t.csv", "-f", "2", "-v", "-c"]), "2\n");
    // The same header is printed once, a different one again.
    dir.write("same.csv", "id,fruit,note\r\n9,apple,\r\n");
    dir.write("other.csv", "\u{feff}\"fruit\",id\napple,1\n");
    assert_eq!(
        query(&dir, ["same.csv", "same.csv", "other.csv", "-f", "fruit"]),
        "id,fruit,note\r\n9,apple,\r\n9,apple,\r\n\"fruit\",id\napple,1\n"
    );
}

#[test]
fn tables_have_other_delimiters() {
    let dir = dir();
    dir.write("t.tsv", "1\tapple\n2\t\"pear\"\n3\tplum\n");
    assert_eq!(query(&dir, ["t.tsv", "-d", "\\t", "-f", "2", "-c"]), "2\n");
    assert_eq!(query(&dir, ["t.tsv", "-d", "\t", "-f", "2", "-c"]), "2\n");
    dir.write("plain", "apple:\"1\nplum:\"2\npear:3\n");
    let plain = ["plain", "-d:", "-f1", "--no-quoting"];
    assert_eq!(query(&dir, plain), "apple:\"1\npear:3\n");
}

#[test]
fn every_verb_reads_tables() {
    let dir = TestDir::new();
    let keys = lines(1, 30_000);
    let table: String = std::iter::once("n,key\n".to_owned())
        .chain(keys.lines().enumerate().map(|(n, key)| match n % 3 {
            0 => format!("{n},\"{key}\"\r\n"),
            _ => format!("{n},{key}\n"),
        }))
        .collect();
    dir.write("keys", &keys);
    dir.write("table", &table);
    let settings = "--fpr 0.001 --kind tinyset --removable --force";
    dir.run(&format!("build keys -o expected {settings}")).success();
    let expected = dir.read("expected");
    dir.run(&format!("build table -f key -o f {settings}")).success();
    assert!(dir.read("f") == expected, "counted");
    let build = format!("build -f key -o f {settings}");
    dir.feed(&build, table.as_bytes()).success();
    assert!(dir.read("f") == expected, "spooled");
    dir.run(&format!("build -k x -o f --items 30000 {settings}")).success();
    dir.run("add f table --field 2 --header").done();
    assert_eq!(dir.info("f")["items"], 30_001);
    let query = dir.run("query f table --field key");
    assert!(query.success().text() == table);
    dir.run("remove f table -f key").success();
    assert_eq!(dir.info("f")["items"], 1);
}

#[test]
fn rows_without_the_field_are_refused() {
    let dir = dir();
    dir.write("t", "apple,1\npear\n");
    let message = dir.refused("add f t -f 2");
    assert!(message.contains("t: row 2: expected a field 2"), "{message}");
    assert!(message.contains("--delimiter"), "{message}");
    let message = dir.refused("add f t -f fruit");
    assert!(message.contains("no field \"fruit\", only apple, 1"));
    // The rows before are printed.
    let run = dir.run("query f t -f 1 --max-key-length 7");
    run.status(2);
    let run = dir.run("query f t -f 2 -v");
    assert_eq!(run.status(2).text(), "apple,1\n");
    for wrong in [
        "-f 0",
        "-d ,",
        "--header",
        "--no-quoting",
        "-f 1 -d ab",
        "-f 1 -0",
        "-f 1 --key-format nul",
        "-f 1 --json-field a",
        "--json-field a/b",
        "--digest crc32",
        "--digest sha1 --key-format u64le",
    ] {
        let run = dir.run(&format!("query f t {wrong}"));
        run.status(2);
        assert!(run.out.is_empty() && !run.err.is_empty(), "{run:?}");
    }
    dir.run("query f -k a -f 1").status(2);
}

#[test]
fn json_lines_print_whole_lines() {
    let dir = dir();
    let rows = [
        "{\"user\":{\"id\":\"apple\"},\"n\":1}\n",
        "{\"n\":2,\"user\":{\"id\":\"plum\"}}\n",
        "\n",
        " {\"user\":{\"id\":\"a\\u002cb\"}} \r\n",
    ];
    dir.write("j", rows.concat());
    let field = ["j", "--json-field", "/user/id"];
    assert_eq!(query(&dir, field), [rows[0], rows[3]].concat());
    let inverted = query(&dir, [&field[..], &["-v", "-n"]].concat());
    assert_eq!(inverted, format!("2:{}", rows[1]));
    let report = "build j -o g --fpr 0.01 --json-field /user/id --json";
    assert_eq!(dir.run(report).json()["items"], 3);
    let message = dir.refused("add f j --json-field n");
    assert!(message.contains("j: line 4: no value at /n"), "{message}");
    // Numbers keep their digits.
    dir.write("n", "{\"id\":12345678901234567890123}\n{\"id\":1.0}\n");
    dir.run("build n -o n.tamis --fpr 1e-9 --json-field id").success();
    dir.run("query -q n.tamis -k 12345678901234567890123").success();
    dir.run("query -q n.tamis -k 12345678901234567890124").no_match();
    dir.run("query -q n.tamis -k 1.0").success();
}

/// A list as Have I Been Pwned publishes it, asked with passwords.
#[test]
fn plain_keys_are_digested() {
    let dir = TestDir::new();
    for (digest, hashes) in [
        (
            "sha1",
            "5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8:9545824\r\n\
             F3BBBD66A63D4BF1747940578EC3D0103530E21D:17043\r\n",
        ),
        (
            "ntlm",
            "8846F7EAEE8FB117AD06BDD830B7586C:9545824\r\n\
             6608E4BC7B2B7A5F77CE3573570775AF:17043\r\n",
        ),
        (
            "md5",
            "5f4dcc3b5aa765d61d8327deb882cf99  password.txt\n\
             \\2ab96390c7dbe3439de74d0c9b0b1767 *hunter\\n2\n",
        ),
        (
            "sha256",
            "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8\n\
             f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7\n",
        ),
    ] {
        for remembered in [false, true] {
            dir.write("list", hashes);
            let build = "build list -o f --fpr 1e-9 --key-format hex --force";
            dir.run(build).success();
            // The plain key is printed. A filter that was built with the option
            // remembers it.
            let ask = if remembered {
                dir.run(&format!("{build} --digest {digest}")).success();
                "query f".to_owned()
            } else {
                format!("query f --digest {digest}")
            };
            let run = dir.run(&format!("{ask} -k hunter2 -k hunter3"));
            assert_eq!(run.success().text(), "hunter2\n", "{digest}");
            dir.write("passwords", "password\r\nhunter3\nhunter2");
            let run = dir.run(&format!("{ask} passwords"));
            assert_eq!(run.success().text(), "password\r\nhunter2\n");
            dir.write("users", "ann,password\nbob,secret\n");
            let run = dir.run(&format!("{ask} users -f 2"));
            assert_eq!(run.success().text(), "ann,password\n");
            // Digests print their whole line.
            let run = dir.run("query f list --key-format hex");
            assert_eq!(run.success().text(), hashes);
            // Plain keys and their digests are the same keys.
            dir.run(&format!("{build} --digest {digest}")).success();
            dir.run(&format!(
            "build -k password -k hunter2 -o g --fpr 1e-9 --digest {digest} \
             --force"
        ))
        .success();
            assert!(dir.read("g") == dir.read("f"), "{digest}");
        }
    }
    dir.write("list", "5BAA61E4C9B93F3F0682250B6CF8331B\n");
    let build = "build list -o new --fpr 0.01 --key-format hex --digest sha1";
    let message = dir.refused(build);
    assert!(message.contains("expected 40 hexadecimal digits"), "{message}");
    dir.write("list", b"\xff\n");
    let message = dir.refused("build list -o new --fpr 0.01 --digest ntlm");
    assert!(message.contains("UTF-8"), "{message}");
}

#[test]
fn integers_in_fields_are_decimal() {
    let dir = TestDir::new();
    dir.write("t", "a,513\nb,7\n");
    dir.run("build t -o f --fpr 1e-9 --key-format u64le -f 2").success();
    dir.run("query -q f -k 513 --key-format u64le").success();
    let run = dir.run("query f -k 513 -k 8 --key-format u64le");
    assert_eq!(run.success().out, 513u64.to_le_bytes());
    dir.write("t", "a,-1\n");
    let message = dir.refused("add f t --key-format u64le -f 2");
    assert!(message.contains("row 1: expected an integer"), "{message}");
}

#[test]
fn query_has_the_options_of_grep() {
    let dir = dir();
    dir.write("one", "apple\nplum\npear\napple");
    dir.write("two", "fig\npear\n");
    dir.write("none", "fig\n");
    let all = ["one", "two", "none"];
    let with = |more: &[&'static str]| query(&dir, [&all[..], more].concat());
    assert_eq!(with(&[]), "apple\npear\napple\npear\n");
    assert_eq!(with(&["-n"]), "1:apple\n3:pear\n4:apple\n2:pear\n");
    assert_eq!(with(&["-Hn", "-v"]), "one:2:plum\ntwo:1:fig\nnone:1:fig\n");
    assert_eq!(with(&["-H"]), "one:apple\none:pear\none:apple\ntwo:pear\n");
    assert_eq!(with(&["-c"]), "4\n");
    assert_eq!(with(&["-cH"]), "one:3\ntwo:1\nnone:0\n");
    assert_eq!(with(&["-m1"]), "apple\npear\n");
    assert_eq!(with(&["-m", "2", "-n"]), "1:apple\n3:pear\n2:pear\n");
    assert_eq!(with(&["-cHm2"]), "one:2\ntwo:1\nnone:0\n");
    dir.run("query f one -m 0").no_match();
    dir.run("query f one -n --json").status(2);
    dir.run("build -k 1 --key-format u64le -o u --fpr 1e-9").success();
    let message = dir.refused("query u -n -k 1");
    assert!(message.contains("-n and -H need rows of text"), "{message}");
    // A fault after the last row that counts is not reached.
    dir.write("hex", "6170706c65\nx\n");
    dir.run("build -k 6170706c65 --key-format hex -o h --fpr 1e-9").success();
    dir.run("query h hex -m 1").success();
    dir.run("query h hex").status(2);
    // NUL, as find -print0 writes it.
    let run = dir.feed("query f -0 -n", b"pear\0a\nb\0apple");
    assert_eq!(run.success().text(), "1:pear\x003:apple\0");
    dir.feed("build -0 -o n --fpr 1e-9", b"a\nb\0c").success();
    dir.run("query -q n -k c").success();
    dir.run("query -q n -0 -k c").success();
}

/// `query -m 1` does not wait for the end of a pipe.
#[test]
fn max_count_stops_reading() {
    use std::io::{Read as _, Write as _};
    use std::process::Stdio;
    let dir = dir();
    let mut child = dir
        .command("query f -m 1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"plum\npear\n").unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(out, "pear\n");
    assert!(child.wait().unwrap().success());
    drop(stdin);
}
