//! User-editable TOML files: every error has a file and line, and an error for an unknown key
//! suggests the most similar known key.
//!
//! A reader requests the keys that it supports from a [`Table`], one at a time, and then calls
//! [`Table::finish`], which rejects keys that were never requested. The reader thus defines the
//! schema, without a second list of keys. [`crate::keys`] declares readers of whole sections.
//!
//! ```
//! use writecliff_base::keys::Size;
//! use writecliff_base::located::LocatedToml;
//! let toml = LocatedToml::parse("page_siz = \"16 KiB\"\n", "drive.toml").unwrap();
//! let root = toml.root();
//! let error = root.required("page_size", &Size).unwrap_err();
//! assert_eq!(error.to_string(), "drive.toml:1: missing key 'page_size'");
//! assert_eq!(error.hint.as_deref(), Some("line 1 has 'page_siz': did you mean 'page_size'?"));
//! ```
//!
//! Numbers with a unit are strings (`"75 us"`); see [`crate::units`] for the units. A comment next
//! to a key is treated as its source; [`LocatedToml::documented`] returns these comments.

mod comments;
mod edit;
mod table;

use std::ops::Range;

use thiserror::Error;
use toml_edit::Document;

pub use comments::Documented;
pub use edit::Change;
pub use table::Table;
pub(crate) use table::number;
pub use toml_edit::Array as List;

/// An error with its position. Prints as `file:line: message`; the hint suggests a correction.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{file}:{line}: {message}")]
pub struct LocatedError {
    /// File name.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// Description of the problem, without its position.
    pub(crate) message: String,
    /// Suggested correction, for example the nearest known key.
    pub hint: Option<String>,
}

/// Result of reading a table; errors contain the line.
pub type Answer<T> = Result<T, LocatedError>;

/// A parsed file with its text, its name and the position of each line.
#[derive(Debug)]
pub struct LocatedToml {
    document: Document<String>,
    source: Source,
}

/// Maps byte positions to lines; separate from the document so that a table can borrow it.
#[derive(Debug)]
struct Source {
    file: String,
    text: String,
    line_starts: Vec<usize>,
}

impl Source {
    fn new(text: &str, file: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let line_starts = std::iter::once(0).chain(breaks.map(|(i, _)| i + 1)).collect();
        Self { file: file.to_owned(), text: text.to_owned(), line_starts }
    }

    fn line_of(&self, position: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= position)
    }

    /// Returns the text of a line (counted from 1) without its line ending.
    fn line(&self, number: usize) -> &str {
        let start = self.line_starts[number - 1];
        let end = self.line_starts.get(number).copied().unwrap_or(self.text.len());
        self.text[start..end].trim_end_matches(['\n', '\r'])
    }

    fn error(&self, line: usize, message: String, hint: Option<String>) -> LocatedError {
        assert!(line > 0, "lines are counted from 1");
        LocatedError { file: self.file.clone(), line, message, hint }
    }

    fn slice(&self, span: Range<usize>) -> &str {
        self.text.get(span).unwrap_or_default()
    }
}

impl LocatedToml {
    /// Parses `text`; `file_name` is used in messages only.
    pub fn parse(text: &str, file_name: &str) -> Answer<Self> {
        let source = Source::new(text, file_name);
        match Document::parse(text.to_owned()) {
            Ok(document) => Ok(Self { document, source }),
            Err(error) => {
                let line = source.line_of(error.span().map_or(0, |span| span.start));
                let message = error.message().replace('\n', "; ");
                Err(source.error(line, format!("not valid TOML: {message}"), None))
            }
        }
    }

    /// Returns the file's root table.
    pub fn root(&self) -> Table<'_> {
        Table::new(&self.source, self.document.as_table(), String::new(), 1)
    }

    /// Returns the file's text.
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// Returns the file name for messages.
    pub fn file_name(&self) -> &str {
        &self.source.file
    }

    /// Returns `true` if the file has a value for the dotted `key`.
    pub fn has(&self, key: &str) -> bool {
        self.documented().iter().any(|row| row.key == key)
    }

    /// Returns every key that has a value, in file order, with its comment.
    pub fn documented(&self) -> Vec<Documented> {
        comments::collect(&self.source, self.document.as_table())
    }
}

#[cfg(test)]
mod tests;
