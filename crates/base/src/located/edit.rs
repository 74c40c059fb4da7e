//! Changes values in a file and preserves all other text, including comments.

use toml_edit::{DocumentMut, Item, TableLike, Value};

use super::LocatedToml;

/// A new value for a key.
#[derive(Clone, Debug)]
pub struct Change {
    /// Dotted: `table.key`.
    pub key: String,
    /// Value in file notation, including its unit.
    pub value: Value,
    /// Comment for the value; `None` preserves the existing comment.
    pub source: Option<String>,
}

impl Change {
    /// Sets `key` to `value`, with the comment `source`.
    pub fn new(key: &str, value: impl Into<Value>, source: &str) -> Self {
        Self { key: key.to_owned(), value: value.into(), source: Some(source.to_owned()) }
    }
}

impl LocatedToml {
    /// Returns the text with `changes` applied. New keys are added to the end of their table.
    ///
    /// # Errors
    /// Returns the key if the file does not contain its table.
    pub fn changed(&self, changes: &[Change]) -> Result<String, String> {
        let mut document = self.without_continuations(changes);
        for Change { key, value, source } in changes {
            let table = key.rsplit_once('.').map_or("", |(table, _)| table);
            let mut inside: &mut dyn TableLike = document.as_table_mut();
            for part in table.split('.').filter(|part| !part.is_empty()) {
                let inner = inside.get_mut(part).and_then(Item::as_table_like_mut);
                inside = inner.ok_or_else(|| key.clone())?;
            }
            let name = key.rsplit('.').next().unwrap_or_default();
            let mut value = value.clone();
            let old = inside.get(name).and_then(Item::as_value);
            value.decor_mut().set_prefix(" ");
            // Inline tables cannot contain comments.
            if let (Some(source), false) = (source, self.is_inline(table)) {
                let comment = if source.is_empty() { "" } else { &format!("  # {source}") };
                value.decor_mut().set_suffix(comment);
            } else if let Some(suffix) = old.and_then(|old| old.decor().suffix()) {
                value.decor_mut().set_suffix(suffix.clone());
            }
            match inside.get_mut(name) {
                Some(item) => *item = Item::Value(value),
                None => drop(inside.insert(name, Item::Value(value))),
            }
        }
        Ok(document.to_string())
    }

    /// Returns the document without the continuation lines of comments that `changes` replaces.
    fn without_continuations(&self, changes: &[Change]) -> DocumentMut {
        let is_replaced = |key: &str| changes.iter().any(|c| c.key == key && c.source.is_some());
        let rows = self.documented();
        let gone: Vec<_> = rows.iter().filter(|row| is_replaced(&row.key)).collect();
        let lines = (1..=self.source.line_starts.len())
            .filter(|line| !gone.iter().any(|row| row.continued.contains(line)))
            .map(|line| self.source.line(line));
        let text = lines.collect::<Vec<_>>().join("\n");
        text.parse().expect("removing comment lines keeps the TOML valid")
    }

    fn is_inline(&self, table: &str) -> bool {
        self.document.as_table().get(table).is_some_and(Item::is_inline_table)
    }
}
