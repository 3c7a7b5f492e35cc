//! Rows of CSV: fields between delimiters, quoted where they contain one.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

/// Notation of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Csv {
    pub(super) delimiter: u8,
    pub(super) quoting: bool,
}

/// Field of a table that has the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Field {
    /// Index, from 0.
    Index(usize),
    /// Name in the header.
    Name(String),
}

/// Tables whose keys are in one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) csv: Csv,
    pub(super) field: Field,
    /// True if the first row of every source names the fields.
    pub(super) header: bool,
}

/// Start of a table.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// First row, its line end included; empty if it is no header.
    pub(super) row: Vec<u8>,
    /// Field of the key, from 0.
    pub(super) column: usize,
}

impl Table {
    /// Removes the header from the first rows of a table.
    pub(super) fn take_header(
        &self,
        bytes: &mut Vec<u8>,
    ) -> Result<Header, String> {
        let mut header = Header::default();
        if let Field::Index(index) = self.field {
            header.column = index;
        }
        if !self.header {
            return Ok(header);
        }
        let mut found = Ok(());
        // The error ends the loop after the first row.
        let _ = self.csv.for_each_row(bytes, |row, fields| {
            header.row = row.to_vec();
            if let Field::Name(name) = &self.field {
                match fields.position(name.as_bytes()) {
                    Some(column) => header.column = column,
                    None => found = Err(fields.lacks(name)),
                }
            }
            Err(())
        });
        found?;
        // Blank lines may be before the header.
        let end = blank_len(bytes) + header.row.len();
        bytes.drain(..end);
        Ok(header)
    }
}

/// Length of the blank lines at the start of `bytes`.
fn blank_len(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| b"\r\n".contains(byte)).count()
}

/// Fields of a row, without their quotes.
pub(super) struct Fields<'r> {
    text: &'r [u8],
    /// End of each field in `text`.
    ends: &'r [usize],
}

impl<'r> Fields<'r> {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&'r [u8]> {
        let start = match index.checked_sub(1) {
            Some(previous) => *self.ends.get(previous)?,
            None => 0,
        };
        self.text.get(start..*self.ends.get(index)?)
    }

    fn position(&self, name: &[u8]) -> Option<usize> {
        (0..self.len()).find(|&index| self.get(index) == Some(name))
    }

    /// Message about a header without the field `name`.
    fn lacks(&self, name: &str) -> String {
        let names: Vec<_> = (0..self.len())
            .filter_map(|index| self.get(index))
            .map(String::from_utf8_lossy)
            .collect();
        format!(
            "the header has no field {name:?}, only {} (is --delimiter \
             right?)",
            names.join(", ")
        )
    }
}

impl Csv {
    /// Builder of readers that skip a byte order mark.
    fn builder(self) -> ReaderBuilder {
        let mut builder = ReaderBuilder::new();
        builder.delimiter(self.delimiter).quoting(self.quoting);
        builder
    }

    /// Reader of rows from anywhere in a table.
    fn reader(self) -> Reader {
        let mut reader = self.builder().build();
        // A reader skips a byte order mark at its first read, which a blank
        // line is: later chunks of a file have no such mark.
        let _ = reader.read_record(b"\n", &mut [0], &mut [0]);
        reader
    }

    /// Calls `f` with every row of `bytes`, its line end included, and its
    /// fields. Blank lines are no rows.
    pub(super) fn for_each_row<'a, E>(
        self,
        bytes: &'a [u8],
        mut f: impl FnMut(&'a [u8], Fields<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut reader = self.reader();
        let (mut text, mut ends) = (vec![0; 1024], vec![0; 32]);
        let mut start = 0;
        loop {
            let (mut at, mut text_len, mut fields) = (start, 0, 0);
            let is_row = loop {
                let (result, read, written, ended) = reader.read_record(
                    &bytes[at..],
                    &mut text[text_len..],
                    &mut ends[fields..],
                );
                at += read;
                text_len += written;
                fields += ended;
                match result {
                    ReadRecordResult::Record => break true,
                    ReadRecordResult::End => break false,
                    // The next read has no input: it ends the last row.
                    ReadRecordResult::InputEmpty => {}
                    ReadRecordResult::OutputFull => {
                        text.resize(2 * text.len(), 0);
                    }
                    ReadRecordResult::OutputEndsFull => {
                        ends.resize(2 * ends.len(), 0);
                    }
                }
            };
            if !is_row {
                return Ok(());
            }
            at += line_feed_after(bytes, at);
            // The row follows the line ends of blank lines.
            let row = &bytes[start..at];
            let fields =
                Fields { text: &text[..text_len], ends: &ends[..fields] };
            f(&row[blank_len(row)..], fields)?;
            start = at;
        }
    }
}

/// 1 if the row before `at` ends in the middle of CR LF.
fn line_feed_after(bytes: &[u8], at: usize) -> usize {
    usize::from(bytes[..at].ends_with(b"\r") && bytes[at..].starts_with(b"\n"))
}

/// Search for the ends of rows in a stream.
pub(super) struct CsvScanner {
    reader: Reader,
    /// Complete rows after the last boundary.
    rows: u64,
    /// True if the last push ended with the CR of a row: LF may follow.
    after_cr: bool,
}

impl CsvScanner {
    pub(super) fn new(csv: Csv) -> Self {
        Self { reader: csv.builder().build(), rows: 0, after_cr: false }
    }

    /// Reads the next bytes of the stream. Returns the end of the last row in
    /// `new` that has its line end, and the number of rows since the last
    /// boundary.
    pub(super) fn push(&mut self, new: &[u8]) -> Option<(usize, u64)> {
        let mut boundary = None;
        let mut at = 0;
        if self.after_cr && new.starts_with(b"\n") {
            at = 1;
            boundary = Some((1, self.rows));
        }
        self.after_cr &= new.is_empty();
        // The fields are not used.
        let (mut output, mut ends) = ([0; 4096], [0; 64]);
        while at < new.len() {
            let (result, read, ..) =
                self.reader.read_record(&new[at..], &mut output, &mut ends);
            at += read;
            if matches!(result, ReadRecordResult::Record) {
                self.rows += 1;
                at += line_feed_after(new, at);
                match at < new.len() || new.ends_with(b"\n") {
                    true => boundary = Some((at, self.rows)),
                    false => self.after_cr = true,
                }
            }
        }
        self.rows -= boundary.map_or(0, |(_, rows)| rows);
        boundary
    }

    /// Number of rows after the last boundary, at the end of the stream.
    pub(super) fn finish(&mut self) -> u64 {
        let (result, ..) = self.reader.read_record(&[], &mut [0], &mut [0]);
        let unended = matches!(result, ReadRecordResult::Record);
        std::mem::take(&mut self.rows) + u64::from(unended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: Csv = Csv { delimiter: b',', quoting: true };

    type Rows = Vec<(String, Vec<String>)>;

    fn rows(csv: Csv, bytes: &[u8]) -> Rows {
        let mut rows = Rows::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let collected = csv.for_each_row::<()>(bytes, |row, fields| {
            let fields =
                (0..fields.len()).map(|i| text(fields.get(i).unwrap()));
            rows.push((text(row), fields.collect()));
            Ok(())
        });
        collected.unwrap();
        rows
    }

    const TABLE: &str = "a,b\n\n\"c\nd\",\"e\"\"f\"\r\n\r\n,\"\"\ng\"h,i\r\
        last,\"open\nquote";

    #[test]
    fn rows_are_split_and_unquoted() {
        let found = rows(CSV, TABLE.as_bytes());
        let found: Vec<(&str, Vec<&str>)> = found
            .iter()
            .map(|(row, fields)| {
                (row.as_str(), fields.iter().map(String::as_str).collect())
            })
            .collect();
        assert_eq!(
            found,
            [
                ("a,b\n", vec!["a", "b"]),
                ("\"c\nd\",\"e\"\"f\"\r\n", vec!["c\nd", "e\"f"]),
                (",\"\"\n", vec!["", ""]),
                ("g\"h,i\r", vec!["g\"h", "i"]),
                ("last,\"open\nquote", vec!["last", "open\nquote"]),
            ]
        );
        let plain = Csv { delimiter: b':', quoting: false };
        assert_eq!(
            rows(plain, b"\"a:b\n"),
            [("\"a:b\n".into(), vec!["\"a".into(), "b".into()])]
        );
        let wide = ["x"; 5000].join(",");
        assert_eq!(rows(CSV, wide.as_bytes())[0].1.len(), 5000);
        // Not a byte order mark: the start of a later chunk.
        assert_eq!(rows(CSV, "\u{feff}a".as_bytes())[0].1, ["\u{feff}a"]);
    }

    /// Chunks that end at boundaries have the rows of the whole.
    #[test]
    fn boundaries_do_not_depend_on_the_reads() {
        let bytes = TABLE.as_bytes();
        let expected = rows(CSV, bytes);
        for step in 1..=bytes.len() {
            let mut scanner = CsvScanner::new(CSV);
            let (mut found, mut start) = (Rows::new(), 0);
            for (index, new) in bytes.chunks(step).enumerate() {
                if let Some((end, count)) = scanner.push(new) {
                    let end = index * step + end;
                    let chunk = rows(CSV, &bytes[start..end]);
                    assert_eq!(chunk.len() as u64, count, "{step}");
                    found.extend(chunk);
                    start = end;
                }
            }
            let last = rows(CSV, &bytes[start..]);
            assert_eq!(last.len() as u64, scanner.finish(), "{step}");
            found.extend(last);
            assert_eq!(found, expected, "{step}");
        }
    }
}
