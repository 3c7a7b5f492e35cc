//! `docs/format-examples.md`: files of every kind, byte by byte.
//!
//! The page is decoded by a second implementation of `docs/format.md`, in this
//! file, which finds the keys in the bits and shares no code with the library
//! except the hash.
#![allow(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::fmt::Write as _;
use std::path::Path;

use tamis::{
    Balanced, Blocked, Bloom, KeyHasher, Overflow, Removal, Scheme, Split,
    TinySet,
};

const KEYS: [&str; 3] = ["apple", "pear", "plum"];

const INTRODUCTION: &str = "\
# Examples of the format

Files of every kind, byte by byte, each field with its meaning in [the
format](format.md). Offsets are hexadecimal, values decimal. `00 × n` stands
for n zero bytes. A test prints this page from the bytes that the library
writes, and finds every key in them by the rules of the format alone
(`TAMIS_WRITE_EXAMPLES=1 cargo test -p tamis --test format_examples`).

All filters have the hash `xxh3` with seed 0 and blocks of 256 bits. *h* is the
hash of a key.
";

/// Set `TAMIS_WRITE_EXAMPLES` to write the page.
#[test]
fn the_page_has_the_bytes_of_the_library() {
    let page = page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/format-examples.md");
    if std::env::var_os("TAMIS_WRITE_EXAMPLES").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap();
    for (line, (ours, theirs)) in page.lines().zip(stored.lines()).enumerate()
    {
        assert_eq!(ours, theirs, "line {}", line + 1);
    }
    assert_eq!(page, stored);
}

fn page() -> String {
    let mut page = INTRODUCTION.to_string();
    let keys = || KEYS.iter().copied();
    let mut add = |title: &str, text: &str, dump: String| {
        write!(page, "\n## {title}\n\n{text}\n\n```text\n{dump}```\n")
            .unwrap();
    };

    let builder = Bloom::builder().items(24).block_bits(256);
    let mut filter = builder.bits_per_key(10.0).build().unwrap();
    filter.extend(keys());
    add(
        "Bloom",
        "Three keys in a filter for 24, with 10 bits per key.",
        dump(&filter.to_bytes(), &KEYS),
    );

    let builder = Blocked::builder().items(40).block_bits(256);
    let mut filter = builder.bits_per_key(10.0).build().unwrap();
    filter.extend(keys());
    filter.set_metadata("key-format", "lines").unwrap();
    filter.set_metadata("note", "été").unwrap();
    add(
        "Blocked, with metadata",
        "Three keys in a filter for 40, with 10 bits per key.",
        dump(&filter.to_bytes(), &KEYS),
    );

    let builder = Split::builder().items(40).block_bits(256);
    let mut filter = builder.bits_per_key(10.0).build().unwrap();
    filter.extend(keys());
    add(
        "Split",
        "Three keys in a filter for 40, with 10 bits per key.",
        dump(&filter.to_bytes(), &KEYS),
    );

    let builder = Balanced::builder().items(40).block_bits(256);
    let builder = builder
        .bits_per_key(16.0)
        .scheme(Scheme::Multilevel)
        .choices(2)
        .overflow(Overflow::List)
        .tracking_bits(4);
    let mut filter = builder.build().unwrap();
    let many: Vec<String> = (0..52).map(|i| format!("key {i}")).collect();
    filter.extend(&many);
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    add(
        "Balanced",
        "The keys `key 0` to `key 51` in a filter for 40, in two levels with an\n\
         overflow list. It is over its design, so that some keys are listed.",
        dump(&filter.to_bytes(), &many),
    );

    let builder = TinySet::builder().items(40).block_bits(256);
    let builder = builder.bits_per_key(10.0);
    let mut filter = builder.build().unwrap();
    filter.extend(keys());
    add(
        "TinySet",
        "Three keys in a filter for 40, with 10 bits per key. The compact form of\n\
         this filter is [below](#compact-form).",
        dump(&filter.to_bytes(), &KEYS),
    );
    let compact = filter.to_compact_bytes().unwrap();

    let mut filter = builder.removable().build().unwrap();
    let many: Vec<String> = (0..36).map(|i| format!("key {i}")).collect();
    filter.extend(&many);
    for key in &many[30..] {
        assert_eq!(filter.remove(key.as_str()), Ok(Removal::Removed));
    }
    let many: Vec<&str> = many[..30].iter().map(String::as_str).collect();
    add(
        "TinySet with free slots",
        "The keys `key 0` to `key 35` in a removable filter for 40, of which the\n\
         last six were removed again.",
        dump(&filter.to_bytes(), &many),
    );

    let builder = TinySet::builder().items(300).block_bits(256);
    let mut filter = builder.fpr(0.0002).two_level().build().unwrap();
    let many: Vec<String> = (0..300).map(|i| format!("key {i}")).collect();
    filter.extend(&many);
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let bytes = filter.to_bytes();
    let whole = dump(&bytes, &many);
    // Its header, and the first block that has spilled.
    let from = whole.find("block 0").unwrap();
    let spilled = whole.split("\n\n").find(|it| it.contains("spilled 1"));
    let blocks = whole[..from].rfind("\n\n").unwrap();
    let first = &whole[..whole[..blocks].rfind("BLKS").unwrap()];
    let first = &first[..first.rfind('\n').unwrap()];
    add(
        "TinySet of two levels",
        "The header of a filter with 300 keys, and one of its blocks, from which\n\
         chains have moved to the second level.",
        format!("{first}\n\n{}\n", spilled.unwrap().trim_end()),
    );

    add(
        "Compact form",
        "The TinySet [above](#tinyset) in the compact form.",
        dump_compact(&compact),
    );
    page
}

/// A page in preparation, from the first byte of a file to its last.
struct Dump<'a> {
    bytes: &'a [u8],
    at: usize,
    out: String,
}

impl<'a> Dump<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, out: String::new() }
    }

    /// The next bytes, in rows of 8 with a text for each; zeros in one row.
    fn rows(
        &mut self,
        len: usize,
        text: impl Fn(usize, &[u8]) -> String,
    ) -> &'a [u8] {
        let field = &self.bytes[self.at..self.at + len];
        if len > 8 && field.iter().all(|&byte| byte == 0) {
            let zeros = format!("00 × {len}");
            self.row(self.at, &zeros, &text(0, field));
        } else {
            for (i, row) in field.chunks(8).enumerate() {
                let hex = row.iter().map(|byte| format!("{byte:02X}"));
                let hex = hex.collect::<Vec<_>>().join(" ");
                self.row(self.at + 8 * i, &hex, &text(8 * i, row));
            }
        }
        self.at += len;
        field
    }

    fn row(&mut self, at: usize, hex: &str, text: &str) {
        let line = format!("{at:04X}  {hex:<23}  {text}");
        self.line(line.trim_end());
    }

    fn line(&mut self, line: &str) {
        writeln!(self.out, "{line}").unwrap();
    }

    /// A field whose first row has the text.
    fn field(&mut self, len: usize, text: &str) -> &'a [u8] {
        self.rows(len, |at, _| match at {
            0 => text.to_string(),
            _ => String::new(),
        })
    }

    /// A little-endian integer.
    fn number(&mut self, len: usize, name: &str) -> u64 {
        let value = integer(&self.bytes[self.at..self.at + len]);
        self.field(len, &format!("{name} {value}"));
        value
    }

    /// An integer with a name in one of the format's tables.
    fn named(&mut self, len: usize, name: &str, names: &[&str]) -> usize {
        let value = integer(&self.bytes[self.at..self.at + len]) as usize;
        self.field(len, &format!("{name} {value}: {}", names[value]));
        value
    }

    /// The XXH3-64 of other bytes.
    fn checksum(&mut self, covered: &[u8], name: &str) {
        let stored = integer(self.field(8, name));
        assert_eq!(stored, KeyHasher::default().hash(covered), "{name}");
    }

    fn padding(&mut self, to: usize) {
        let len = to - self.at;
        if len > 0 {
            assert_eq!(self.field(len, "padding"), vec![0; len]);
        }
    }
}

fn integer(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

fn dump(bytes: &[u8], keys: &[&str]) -> String {
    let mut dump = Dump::new(bytes);
    dump.field(8, "magic");
    dump.number(2, "version");
    let kinds = ["", "bloom", "blocked", "split", "balanced", "tinyset"];
    let kind = dump.named(2, "kind", &kinds);
    dump.named(2, "hash id", &["", "xxh3"]);
    dump.number(2, "flags");
    dump.field(16, "seed 0");
    let len = dump.number(8, "file length");
    assert_eq!(len, bytes.len() as u64);
    dump.number(8, "items");
    dump.number(8, "design items");
    let fpr = f64::from_bits(integer(&bytes[dump.at..dump.at + 8]));
    dump.field(8, &format!("design FPR {fpr}"));
    let header = dump.number(2, "header length") as usize;
    let geometry = dump.number(2, "geometry length (g)") as usize;
    let sections = dump.number(2, "number of sections (s)");
    dump.number(2, "reserved");
    let end = dump.at + geometry;
    let geometry = Geometry::read(&mut dump, kind);
    assert_eq!(dump.at, end);
    let sections: Vec<(String, usize, usize)> = (0..sections)
        .map(|_| {
            let tag = &bytes[dump.at..dump.at + 4];
            let tag = String::from_utf8(tag.to_vec()).unwrap();
            dump.field(4, &format!("section {tag}"));
            dump.number(4, "reserved");
            let offset = dump.number(8, "offset") as usize;
            let len = dump.number(8, "length") as usize;
            dump.checksum(&bytes[offset..offset + len], "XXH3-64 of it");
            (tag, offset, len)
        })
        .collect();
    dump.padding(header - 8);
    dump.checksum(&bytes[..header - 8], "XXH3-64 of all bytes above");
    for (tag, offset, len) in sections {
        dump.padding(offset);
        match &*tag {
            "BLKS" => geometry.blocks(&mut dump, keys),
            "LIST" => geometry.list(&mut dump, len),
            _ => metadata(&mut dump, offset + len),
        }
        assert_eq!(dump.at, offset + len);
    }
    assert_eq!(dump.at, bytes.len());
    dump.out
}

fn metadata(dump: &mut Dump<'_>, end: usize) {
    dump.line("");
    dump.number(2, "META: version");
    while dump.at < end {
        let name = dump.number(1, "length of the name (n)") as usize;
        let value = dump.number(2, "length of the value (v)") as usize;
        dump.rows(name, |_, row| String::from_utf8(row.to_vec()).unwrap());
        dump.rows(value, |_, row| String::from_utf8(row.to_vec()).unwrap());
    }
}

fn dump_compact(bytes: &[u8]) -> String {
    let mut dump = Dump::new(bytes);
    dump.field(2, "magic");
    dump.number(1, "version");
    assert_eq!(bytes[3], 5 + 16);
    dump.field(1, "kind 5: tinyset, + 16 × hash id 1: xxh3");
    let remainder = dump.number(1, "remainder bits (R)") as u32;
    let flags = dump.number(1, "flags (16: H = 4)");
    let block_bits = dump.number(2, "block bits (B)") as usize;
    let blocks = dump.number(4, "blocks (m)");
    dump.number(4, "items");
    dump.number(4, "design items");
    let fpr = f32::from_bits(integer(&bytes[20..24]) as u32);
    dump.field(4, &format!("design FPR {fpr}"));
    let hash = |bytes: &[u8]| KeyHasher::default().hash(bytes) & 0xffff_ffff;
    let stored = integer(dump.field(4, "low half of the XXH3-64 of BLKS"));
    assert_eq!(stored, hash(&bytes[32..]));
    let stored = integer(dump.field(4, "low half of the XXH3-64 above"));
    assert_eq!(stored, hash(&bytes[..28]));
    let geometry = Geometry::TinySet(Tiny {
        blocks,
        second: 0,
        block_bits,
        chains: block_bits / 8,
        remainder: remainder as usize,
        cap: 0,
        flags: flags & 15,
        head: if flags & 16 == 0 { 8 } else { 4 },
    });
    geometry.blocks(&mut dump, &KEYS);
    assert_eq!(dump.at, bytes.len());
    dump.out
}

/// `stretch` of the format.
fn stretch(hash: u64, stream: usize) -> u64 {
    let mut state = 0u64;
    let mut factor = 0;
    for _ in 0..=stream {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        factor = (z ^ z >> 31) | 1;
    }
    let product = u128::from(hash) * u128::from(factor);
    (product >> 64) as u64 ^ product as u64
}

fn reduce(x: u64, m: u64) -> u64 {
    ((u128::from(x) * u128::from(m)) >> 64) as u64
}

/// Positions of a hash in a block.
fn positions(hash: u64, probes: usize, bits: usize) -> Vec<usize> {
    let position = |i: usize| {
        let group = i / 8;
        let low = stretch(hash, 2 * group);
        let high = stretch(hash, 2 * group + 1);
        let fields = u128::from(high) << 64 | u128::from(low);
        ((fields >> (16 * (i % 8)) & 0xffff) as usize * bits) >> 16
    };
    (0..probes).map(position).collect()
}

/// Bit `bit` of a block or an array.
fn get(bytes: &[u8], bit: usize) -> bool {
    bytes[bit / 8] >> (bit % 8) & 1 == 1
}

fn ones(bytes: &[u8], bits: std::ops::Range<usize>) -> Vec<usize> {
    bits.filter(|&bit| get(bytes, bit)).collect()
}

fn list<T: ToString>(numbers: impl IntoIterator<Item = T>) -> String {
    let numbers = numbers.into_iter().map(|number| number.to_string());
    numbers.collect::<Vec<_>>().join(" ")
}

enum Geometry {
    Bloom { kind: usize, blocks: u64, block_bits: usize, probes: usize },
    Balanced(Walk),
    TinySet(Tiny),
}

struct Walk {
    probes: usize,
    block_bits: usize,
    tracking: usize,
    threshold: u64,
    admission: u64,
    levels: Vec<u64>,
    refused: u64,
}

struct Tiny {
    blocks: u64,
    second: u64,
    block_bits: usize,
    chains: usize,
    remainder: usize,
    cap: usize,
    flags: u64,
    head: usize,
}

impl Geometry {
    fn read(dump: &mut Dump<'_>, kind: usize) -> Self {
        match kind {
            5 => Self::TinySet(Tiny {
                blocks: dump.number(8, "blocks (m)"),
                second: dump.number(8, "second blocks"),
                block_bits: dump.number(4, "block bits (B)") as usize,
                chains: dump.number(4, "chains (L)") as usize,
                remainder: dump.number(4, "remainder bits (R)") as usize,
                cap: dump.number(4, "cap") as usize,
                flags: dump.number(4, "flags"),
                head: dump.number(4, "head bits (H)") as usize,
            }),
            4 => {
                let schemes = ["single", "sequential", "multilevel"];
                assert_eq!(dump.named(2, "scheme", &schemes), 2);
                let policies = ["list", "first", "random", "absorb"];
                assert_eq!(dump.named(2, "overflow", &policies), 0);
                let by = ["count", "popcount"];
                assert_eq!(dump.named(2, "threshold by", &by), 0);
                let choices = dump.number(2, "choices (d)");
                let block_bits = dump.number(4, "block bits (B)") as usize;
                let probes = dump.number(4, "probes (k)") as usize;
                let tracking = dump.number(4, "tracking bits (t)") as usize;
                let threshold = dump.number(4, "threshold (h)");
                let admission = dump.number(8, "admission (p)");
                let levels = (0..choices)
                    .map(|i| dump.number(8, &format!("blocks of level {i}")))
                    .collect();
                let refused = dump.number(8, "refused");
                for i in 0..choices {
                    dump.number(8, &format!("placed by choice {i}"));
                }
                Self::Balanced(Walk {
                    probes,
                    block_bits,
                    tracking,
                    threshold,
                    admission,
                    levels,
                    refused,
                })
            }
            _ => Self::Bloom {
                kind,
                blocks: dump.number(8, "blocks"),
                block_bits: dump.number(4, "block bits (B)") as usize,
                probes: dump.number(4, "probes (k)") as usize,
            },
        }
    }

    /// Dumps `BLKS` and finds the keys in it.
    fn blocks(&self, dump: &mut Dump<'_>, keys: &[&str]) {
        match self {
            &Self::Bloom { kind, blocks, block_bits, probes } => {
                let mut notes = Vec::new();
                let start = dump.at;
                let size = block_bits / 8;
                for block in 0..blocks {
                    // A bloom filter has one array of bits.
                    let first = match kind {
                        1 => block as usize * block_bits,
                        _ => 0,
                    };
                    dump.line("");
                    dump.line(&format!("block {block}"));
                    dump.rows(size, |at, row| {
                        let bits = ones(row, 0..8 * row.len());
                        list(bits.iter().map(|bit| first + 8 * at + bit))
                    });
                }
                let bytes = &dump.bytes[start..dump.at];
                for key in keys {
                    let hash = KeyHasher::default().hash(*key);
                    let mut note = format!("{key}: h = {hash:016x}");
                    let mut probe = |block: u64, hash, probes| {
                        let bits = positions(hash, probes, block_bits);
                        let bits_in = &bytes[block as usize * size..][..size];
                        assert!(bits.iter().all(|&bit| get(bits_in, bit)));
                        let bits = list(bits);
                        write!(note, ", block {block}: {bits}").unwrap();
                    };
                    match kind {
                        1 => {
                            let array = blocks * block_bits as u64;
                            let bits = (0..probes)
                                .map(|i| reduce(stretch(hash, i), array));
                            let bits: Vec<u64> = bits.collect();
                            let set = |&bit: &u64| get(bytes, bit as usize);
                            assert!(bits.iter().all(set));
                            write!(note, ", bits {}", list(bits)).unwrap();
                        }
                        2 => probe(reduce(hash, blocks), hash, probes),
                        _ => {
                            let second = stretch(hash, 63);
                            let (half, rest) =
                                (probes.div_ceil(2), probes / 2);
                            probe(reduce(hash, blocks), hash, half);
                            probe(reduce(second, blocks), second, rest);
                        }
                    }
                    notes.push(note);
                }
                dump.line("");
                notes.iter().for_each(|note| dump.line(note));
            }
            Self::Balanced(walk) => walk.blocks(dump, keys),
            Self::TinySet(tiny) => tiny.blocks(dump, keys),
        }
    }

    fn list(&self, dump: &mut Dump<'_>, len: usize) {
        let Self::Balanced(walk) = self else { panic!("no list") };
        assert_eq!(len as u64, 8 * walk.refused);
        dump.line("");
        for _ in 0..walk.refused {
            let hash = integer(&dump.bytes[dump.at..dump.at + 8]);
            dump.field(8, &format!("LIST: h = {hash:016x}"));
        }
    }
}

impl Walk {
    fn blocks(&self, dump: &mut Dump<'_>, keys: &[&str]) {
        let counter = (64 - (self.threshold + 1).leading_zeros()) as usize;
        let bloom = self.block_bits - counter - self.tracking;
        dump.line("");
        dump.line(&format!("b = {counter}, B' = {bloom}"));
        let start = dump.at;
        let size = self.block_bits / 8;
        for (level, &blocks) in self.levels.iter().enumerate() {
            for block in 0..blocks {
                dump.line("");
                let bytes = &dump.bytes[dump.at..dump.at + size];
                let count = self.counter(bytes, bloom, counter);
                let tracking = ones(bytes, bloom + counter..self.block_bits);
                let classes: Vec<usize> =
                    tracking.iter().map(|bit| bit - bloom - counter).collect();
                dump.line(&format!(
                    "level {level}, block {block}: counter {count}, classes \
                     passed: {}",
                    list(classes)
                ));
                dump.field(size, "");
            }
        }
        let listed: Vec<u64> =
            dump.bytes[dump.at..].chunks(8).map(integer).collect();
        let bytes = &dump.bytes[start..dump.at];
        let mut notes = Vec::new();
        for &key in keys {
            let hash = KeyHasher::default().hash(key);
            let mut note = format!("{key}: h = {hash:016x}");
            let found = self.find(bytes, hash, counter, &mut note);
            let in_list = listed.contains(&hash);
            assert!(found || in_list, "{key}");
            if !found {
                note.push_str(", in the list");
            }
            // One key of each walk.
            let refusals = note.matches("refuses").count();
            if notes.iter().all(|(other, _)| *other != refusals) {
                notes.push((refusals, note));
            }
        }
        dump.line("");
        for (_, note) in notes {
            dump.line(&note);
        }
    }

    fn counter(&self, block: &[u8], from: usize, bits: usize) -> u64 {
        let bits = (0..bits).map(|i| u64::from(get(block, from + i)) << i);
        bits.sum()
    }

    /// The lookup of a key, choice by choice.
    fn find(
        &self,
        bytes: &[u8],
        hash: u64,
        counter: usize,
        note: &mut String,
    ) -> bool {
        let size = self.block_bits / 8;
        let bloom = self.block_bits - counter - self.tracking;
        let mut first = 0;
        for (j, &level) in self.levels.iter().enumerate() {
            let x = if j == 0 { hash } else { stretch(hash, 32 + j) };
            let block = reduce(x, level);
            let bits = &bytes[(first + block) as usize * size..][..size];
            first += level;
            let positions = positions(hash, self.probes, bloom);
            write!(note, ", level {j} block {block}").unwrap();
            if positions.iter().all(|&bit| get(bits, bit)) {
                write!(note, ": {}", list(positions)).unwrap();
                return true;
            }
            let count = self.counter(bits, bloom, counter);
            let ticket = stretch(hash, 40 + j);
            let coin = ticket >> 32;
            let refuses = count > self.threshold
                || count == self.threshold && coin >= self.admission;
            let low = ticket & 0xffff_ffff;
            let class = ((low * self.tracking as u64) >> 32) as usize;
            assert!(refuses && get(bits, bloom + counter + class));
            write!(note, " refuses, class {class}").unwrap();
        }
        false
    }
}

/// An entry of a fingerprint block.
struct Entry {
    chain: usize,
    bits: usize,
    /// Aligned to the top.
    fingerprint: u64,
}

/// A fingerprint block, decoded.
struct Decoded {
    text: String,
    entries: Vec<Entry>,
    spilled: bool,
}

impl Tiny {
    fn blocks(&self, dump: &mut Dump<'_>, keys: &[&str]) {
        let size = self.block_bits.div_ceil(8);
        let mut decoded = Vec::new();
        for block in 0..self.blocks + self.second {
            let bytes = &dump.bytes[dump.at..dump.at + size];
            let contents = self.decode(bytes, block < self.blocks);
            dump.line("");
            dump.line(&format!("block {block}: {}", contents.text));
            dump.field(size, "");
            let names = keys.iter().map(|key| self.name(key));
            let names: Vec<(String, u64, usize, u64)> = names.collect();
            for (i, entry) in contents.entries.iter().enumerate() {
                let digits = entry.bits.div_ceil(4);
                let value = entry.fingerprint >> (64 - entry.bits);
                let name = names.iter().find(|(_, at, chain, fraction)| {
                    let differ = fraction ^ entry.fingerprint;
                    *at == block
                        && *chain == entry.chain
                        && differ >> (64 - entry.bits) == 0
                });
                let name = name.map_or("", |(name, ..)| name);
                dump.line(
                    format!(
                        "  entry {i}: chain {}, {} bits {value:0digits$x} \
                         {name}",
                        entry.chain, entry.bits
                    )
                    .trim_end(),
                );
            }
            decoded.push(contents);
        }
        let mut notes = Vec::new();
        for key in keys {
            let hash = KeyHasher::default().hash(*key);
            let (_, block, chain, fraction) = self.name(key);
            let found = |block: u64, chain: usize| {
                let mut entries = decoded[block as usize].entries.iter();
                entries.any(|entry| {
                    let differ = fraction ^ entry.fingerprint;
                    entry.chain == chain && differ >> (64 - entry.bits) == 0
                })
            };
            let first = &decoded[block as usize];
            let highest = first.entries.last().map(|entry| entry.chain);
            let above = highest.is_none_or(|highest| chain > highest);
            if first.spilled && above {
                let origin = block * self.chains as u64 + chain as u64;
                let x = stretch(origin, 50);
                let second = self.blocks + reduce(x, self.second);
                assert!(found(second, self.chain(x)), "{key}");
            } else {
                assert!(found(block, chain), "{key}");
            }
            notes.push(format!(
                "{key}: h = {hash:016x}, block {block}, chain {chain}, \
                 fraction {fraction:016x}"
            ));
        }
        dump.line("");
        notes.truncate(3);
        notes.iter().for_each(|note| dump.line(note));
    }

    fn chain(&self, hash: u64) -> usize {
        ((hash & 0xffff) as usize * self.chains) >> 16
    }

    /// Name, block, chain and fraction of a key.
    fn name(&self, key: &str) -> (String, u64, usize, u64) {
        let hash = KeyHasher::default().hash(key);
        let fraction = hash.wrapping_mul(self.blocks);
        let block = reduce(hash, self.blocks);
        (format!("({key})"), block, self.chain(hash), fraction)
    }

    fn decode(&self, block: &[u8], is_first: bool) -> Decoded {
        let elastic = self.flags & 1 != 0;
        let capped = is_first && self.cap > 0;
        let flags = if capped { 1 } else { 2 * usize::from(elastic) };
        let mut text = String::new();
        let flag = |i| i < flags && get(block, self.chains + i);
        if capped {
            write!(text, "spilled {}, ", u8::from(flag(0))).unwrap();
        } else if elastic {
            let [free, worn] = [0, 1].map(|i| u8::from(flag(i)));
            write!(text, "free {free}, worn {worn}, ").unwrap();
        }
        let index = ones(block, 0..self.chains);
        let from = self.chains + flags;
        // The chain of each entry, by the ones of *last*.
        let mut chains = Vec::new();
        let mut slot = 0;
        let mut walk = |chain: Option<usize>| {
            loop {
                chains.extend(chain);
                slot += 1;
                if get(block, from + slot - 1) {
                    return slot;
                }
            }
        };
        let mut x = 0;
        for &chain in &index {
            x = walk(Some(chain));
        }
        if elastic && flag(0) {
            x = walk(None);
        }
        let spilled = capped && flag(0);
        if spilled {
            x = self.cap;
        }
        // The base of a full block of the first level bounds the second.
        let room = |flags| self.block_bits - self.chains - flags;
        let most = match self.cap > 0 && !is_first {
            true => self.remainder.min(room(1) / self.cap - 1),
            false => self.remainder,
        };
        let (mut base, mut wide) = match x {
            0 => (most, 0),
            _ => (room(flags) / x - 1, room(flags) % x),
        };
        if base >= most {
            (base, wide) = (most, 0);
        }
        let head = match base {
            8.. => self.head,
            4.. => 4,
            _ => 0,
        };
        let reversed = self.flags & 8 != 0;
        let entries = chains.iter().enumerate().map(|(i, &chain)| {
            let mut bits = base + usize::from(i < wide);
            let bit = |j: usize| {
                let at = match (j < head, reversed) {
                    (true, false) => {
                        self.block_bits - head * (x - i) + head - 1 - j
                    }
                    (true, true) => self.block_bits - head * i - 1 - j,
                    _ => from + x * (1 + j - head) + i,
                };
                u64::from(get(block, at)) << (63 - j)
            };
            let fingerprint = (0..bits).map(bit).sum();
            if elastic && flag(1) && i < wide && bit(base) == 0 {
                bits = base;
            }
            Entry { chain, bits, fingerprint }
        });
        let entries: Vec<Entry> = entries.collect();
        write!(
            text,
            "{} entries, X = {x}, base {base}, wide {wide}, h {head}",
            entries.len()
        )
        .unwrap();
        Decoded { text, entries, spilled }
    }
}
