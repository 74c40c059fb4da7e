//! Extracts the comments of a file, by key. In device files, they are the sources of values.

use std::ops::Range;

use toml_edit::{Item, TableLike, Value};

use super::Source;

/// A key, its value as written in the file, and its comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Documented {
    /// `table.key`, `tables[0].key`.
    pub key: String,
    /// The value as written in the file, including quotes.
    pub value: String,
    /// The comment after the value, otherwise the comment lines directly above the key, without
    /// `#`.
    pub comment: String,
    /// Counted from 1.
    pub line: usize,
    /// Lines below the value that continue the trailing comment.
    pub(super) continued: Range<usize>,
}

pub(super) fn collect(source: &Source, root: &dyn TableLike) -> Vec<Documented> {
    let mut entries = Vec::new();
    walk(source, root, "", &mut entries);
    entries.sort_by_key(|entry| entry.line);
    entries
}

fn walk(source: &Source, table: &dyn TableLike, path: &str, entries: &mut Vec<Documented>) {
    for (key, item) in table.iter() {
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        match item {
            Item::None => {}
            Item::Table(inner) => walk(source, inner, &path, entries),
            Item::ArrayOfTables(tables) => {
                for (i, inner) in tables.iter().enumerate() {
                    walk(source, inner, &format!("{path}[{i}]"), entries);
                }
            }
            // Inside a table, `a.b = 1` is an inline table without braces.
            Item::Value(Value::InlineTable(inner)) if inner.is_dotted() => {
                walk(source, inner, &path, entries);
            }
            Item::Value(value) => {
                let key_span = table.get_key_value(key).and_then(|(key, _)| key.span());
                let value_span = value.span().unwrap_or_default();
                let line = source.line_of(key_span.map_or(value_span.start, |span| span.start));
                let (comment, continued) = comment_beside(source, line, value_span.end);
                let value = source.slice(value_span).to_owned();
                entries.push(Documented { key: path, value, comment, line, continued });
            }
        }
    }
}

/// Returns the comment, and the continuation lines of the comment below the value.
fn comment_beside(source: &Source, key_line: usize, value_end: usize) -> (String, Range<usize>) {
    let last_line = source.line_of(value_end);
    let line_start = source.line_starts[last_line - 1];
    let column = value_end - line_start;
    let rest = source.line(last_line).get(column..).unwrap_or_default();
    let Some(offset) = rest.find('#') else {
        return (comment_above(source, key_line), 0..0);
    };
    let mut parts = vec![strip(&rest[offset..])];
    // Comment lines below a trailing comment continue it if they start in the same column.
    let column = column + offset;
    let following = (last_line + 1..=source.line_starts.len()).map(|n| source.line(n));
    parts.extend(following.map_while(|line| continuation(line, column)));
    (parts.join(" "), last_line + 1..last_line + parts.len())
}

fn continuation(line: &str, column: usize) -> Option<&str> {
    let text = line.trim_start();
    (column > 0 && text.starts_with('#') && line.len() - text.len() == column).then(|| strip(text))
}

fn comment_above(source: &Source, key_line: usize) -> String {
    let mut first = key_line;
    while first > 1 && source.line(first - 1).trim_start().starts_with('#') {
        first -= 1;
    }
    // An indented block may continue the trailing comment on the line above the block.
    let mut lines: Vec<&str> = (first..key_line).map(|n| source.line(n)).collect();
    if let Some(column) =
        first.checked_sub(1).filter(|&n| n > 0).and_then(|n| source.line(n).find('#'))
    {
        lines.retain(|line| continuation(line, column).is_none());
    }
    lines
        .into_iter()
        .map(|line| strip(line.trim_start()))
        .collect::<Vec<_>>()
        .join(" ")
        .trim()
        .to_owned()
}

fn strip(comment: &str) -> &str {
    comment.trim_start_matches('#').trim()
}
