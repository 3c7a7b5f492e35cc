//! Tables as CSV and HTML.

use super::{escape, number};

/// A table with named columns.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// End of the file's name; empty for the first table.
    pub(crate) suffix: &'static str,
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Cell {
    Text(String),
    Number(f64),
    /// No value.
    Empty,
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        if value.is_nan() { Cell::Empty } else { Cell::Number(value) }
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Self {
        Cell::Number(value.into())
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Cell::Number(value as f64)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Empty, Into::into)
    }
}

/// A row of cells of any type.
macro_rules! row {
    ($($cell:expr),+ $(,)?) => {
        vec![$($crate::report::Cell::from($cell)),+]
    };
}
pub(crate) use row;

impl Table {
    pub(crate) fn new(suffix: &'static str, columns: &[&'static str]) -> Self {
        Self { suffix, columns: columns.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Numbers in full precision; quotes where RFC 4180 needs them.
    pub(crate) fn csv(&self) -> String {
        let mut out = self.columns.join(",") + "\n";
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(Cell::csv).collect();
            out += &(cells.join(",") + "\n");
        }
        out
    }

    pub(crate) fn html(&self) -> String {
        let mut out = String::from("<div class=wide><table><tr>");
        for column in &self.columns {
            out += &format!("<th>{}</th>", escape(column));
        }
        out += "</tr>\n";
        for row in &self.rows {
            out += "<tr>";
            for cell in row {
                out += &match cell {
                    Cell::Text(text) => format!("<td>{}</td>", escape(text)),
                    Cell::Number(value) => {
                        format!("<td class=n>{}</td>", number(*value))
                    }
                    Cell::Empty => "<td></td>".to_owned(),
                };
            }
            out += "</tr>\n";
        }
        out + "</table></div>\n"
    }
}

impl Cell {
    /// The number, if it is one.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Cell::Number(value) => Some(*value),
            Cell::Text(_) | Cell::Empty => None,
        }
    }

    pub(crate) fn is(&self, number: f64) -> bool {
        self.number() == Some(number)
    }

    /// The text; empty for a number.
    pub(crate) fn text(&self) -> &str {
        match self {
            Cell::Text(text) => text,
            Cell::Number(_) | Cell::Empty => "",
        }
    }

    fn csv(&self) -> String {
        match self {
            Cell::Text(text) if text.contains([',', '"', '\n']) => {
                format!("\"{}\"", text.replace('"', "\"\""))
            }
            Cell::Text(text) => text.clone(),
            Cell::Number(value) => value.to_string(),
            Cell::Empty => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let mut table = Table::new("", &["a", "b", "c"]);
        table.push(row!["x, \"y\"", 0.1, None::<f64>]);
        table.push(row!["<z>", 7u32, f64::NAN]);
        assert_eq!(table.csv(), "a,b,c\n\"x, \"\"y\"\"\",0.1,\n<z>,7,\n");
        assert!(table.html().contains("<td>&lt;z&gt;</td><td class=n>7</td>"));
    }
}
