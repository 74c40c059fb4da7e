//! Table of a located file, with typed look-ups that record the requested keys.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::ops::RangeInclusive;
use std::rc::Rc;

use toml_edit::{Item, TableLike, Value};

use super::{Answer, LocatedError, Source};
use crate::keys::Kind;
use crate::similarity::nearest;
use crate::units::QuantityError;

/// Looks up keys by [`Kind`]: an absent key is `None`, or an error of [`Table::required`].
///
/// Call [`Table::finish`] on every table: a key that was never requested is a typing error.
///
/// All tables of a file share a record of the values read. [`Table::canonical`] converts this
/// record into a text that is equal for files with the same meaning.
#[must_use = "call finish() so that unknown keys are rejected"]
pub struct Table<'a> {
    source: &'a Source,
    items: &'a dyn TableLike,
    /// Dotted path of this table; empty for the root table.
    path: String,
    line: usize,
    asked: RefCell<Vec<String>>,
    record: Record,
}

/// The values read so far, by dotted key.
type Record = Rc<RefCell<BTreeMap<String, String>>>;

impl<'a> Table<'a> {
    pub(super) fn new(
        source: &'a Source,
        items: &'a dyn TableLike,
        path: String,
        line: usize,
    ) -> Self {
        let (asked, record) = (RefCell::default(), Record::default());
        Self { source, items, path, line, asked, record }
    }

    fn inner(&self, items: &'a dyn TableLike, path: String, line: usize) -> Self {
        Self { record: Rc::clone(&self.record), ..Self::new(self.source, items, path, line) }
    }

    /// Returns every value read from the file, as `key = value` lines, without the `documentary`
    /// keys. Documentary keys describe the drive but do not affect its behaviour. The canonical
    /// text does not depend on the notation of a value ("1 GiB" or "1024 MiB").
    pub fn canonical(&self, documentary: &[&str]) -> String {
        let record = self.record.borrow();
        let lines = record.iter().filter(|(key, _)| !documentary.contains(&key.as_str()));
        lines.map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join("\n")
    }

    #[expect(clippy::unnecessary_wraps, reason = "its callers return the value as an option")]
    fn read<T: Debug>(&self, key: &str, value: T) -> Option<T> {
        self.record.borrow_mut().insert(self.join(key), format!("{value:?}"));
        Some(value)
    }

    /// Returns the value read for `key`, or `default` if the file does not have the key. A file
    /// that states the default has the same canonical text as a file without the key.
    pub fn otherwise<T: PartialEq>(&self, key: &str, value: Option<T>, default: T) -> T {
        match value {
            Some(value) if value != default => value,
            _ => {
                self.record.borrow_mut().remove(&self.join(key));
                default
            }
        }
    }

    /// Returns the value read for `key`, which must be present if and only if `is_needed` is
    /// `true`.
    ///
    /// # Errors
    /// Returns the error `refusal` if the key is present but not needed.
    pub fn needed_if<T>(
        &self,
        is_needed: bool,
        key: &str,
        value: Option<T>,
        refusal: impl Display,
    ) -> Answer<Option<T>> {
        match value {
            Some(_) if !is_needed => Err(self.error(key, refusal, None)),
            None if is_needed => Err(self.missing(key)),
            value => Ok(value),
        }
    }

    /// Returns the dotted path of this table in the file; empty for the root table.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the line of the table's header, or of the key of an inline table.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns `true` if the key is present, and marks it as requested.
    pub fn has(&self, key: &str) -> bool {
        self.item(key).is_some()
    }

    /// Returns all keys in file order, without marking them as requested.
    pub fn keys(&self) -> Vec<&'a str> {
        self.items.iter().map(|(key, _)| key).collect()
    }

    /// Returns an error at the line of `key`, or at the line of the table if the key is absent.
    pub fn error(&self, key: &str, message: impl Display, hint: Option<String>) -> LocatedError {
        self.source.error(self.line_of(key), format!("{key}: {message}"), hint)
    }

    /// Returns the error for a missing key. Suggests a similar key of the table if one exists.
    pub fn missing(&self, key: &str) -> LocatedError {
        let location =
            if self.path.is_empty() { String::new() } else { format!(" in {}", self.path) };
        let asked = self.asked.borrow();
        let others = self.keys().into_iter().filter(|other| !asked.iter().any(|a| a == other));
        let hint = nearest(key, others).map(|other| {
            format!("line {} has '{other}': did you mean '{key}'?", self.line_of(other))
        });
        self.source.error(self.line, format!("missing key '{key}'{location}"), hint)
    }

    /// Returns the value of a required key.
    pub fn required<K: Kind>(&self, key: &str, kind: &K) -> Answer<K::Value> {
        kind.read(self, key)?.ok_or_else(|| self.missing(key))
    }

    /// Converts the value of a key; if the type is wrong, the error names `wanted`.
    pub(crate) fn value<T: Debug>(
        &self,
        key: &str,
        wanted: &str,
        convert: impl Fn(&'a Item) -> Option<T>,
    ) -> Answer<Option<T>> {
        let Some(item) = self.item(key) else { return Ok(None) };
        let value = convert(item).ok_or_else(|| self.wrong(key, item, wanted, None))?;
        Ok(self.read(key, value))
    }

    /// Reads a string; returns `None` if the key is absent.
    pub fn text(&self, key: &str) -> Answer<Option<&'a str>> {
        self.value(key, "text in quotes", Item::as_str)
    }

    /// Returns a number with a unit; `example` shows the notation in errors.
    pub(crate) fn quantity<T: Debug>(
        &self,
        key: &str,
        example: &'static str,
        parse: impl Fn(&str) -> Result<T, QuantityError>,
    ) -> Answer<Option<T>> {
        let Some(text) = self.quantity_text(key, example)? else { return Ok(None) };
        let value = parse(text).map_err(|error| self.bad_quantity(key, &error))?;
        Ok(self.read(key, value))
    }

    /// Returns a list of numbers with units; `example` shows the notation in errors.
    pub(crate) fn quantities<T: Debug>(
        &self,
        key: &str,
        example: &'static str,
        parse: impl Fn(&str) -> Result<T, QuantityError>,
    ) -> Answer<Option<Vec<T>>> {
        self.list(key, |value, line| {
            let text = value.as_str().ok_or_else(|| self.bare_number(key, line, example))?;
            parse(text).map_err(|error| self.bad_quantity(key, &error))
        })
    }

    pub(crate) fn is_list(&self, key: &str) -> bool {
        self.item(key).is_some_and(|item| item.as_array().is_some())
    }

    pub(crate) fn percent(&self, key: &str) -> Answer<Option<f64>> {
        let Some(text) = self.quantity_text(key, "\"7 %\"")? else { return Ok(None) };
        let value = parse_percent(text).ok_or_else(|| {
            let meant = text.trim().parse().map_or_else(|_| "\"7 %\"".to_owned(), share_text);
            self.error(key, format!("'{text}' is not a percentage"), Some(format!("write {meant}")))
        })?;
        Ok(self.read(key, value))
    }

    pub(crate) fn integer(&self, key: &str, range: &RangeInclusive<u64>) -> Answer<Option<u64>> {
        let Some(value) = self.value(key, "a whole number", Item::as_integer)? else {
            return Ok(None);
        };
        let inside = u64::try_from(value).ok().filter(|value| range.contains(value));
        let outside = || self.error(key, format!("{value} is outside {}", limits(range, "")), None);
        inside.map(Some).ok_or_else(outside)
    }

    pub(crate) fn choice<T: Clone>(&self, key: &str, choices: &[(&str, T)]) -> Answer<Option<T>> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
            return Ok(Some(choice.clone()));
        }
        let names: Vec<&str> = choices.iter().map(|&(name, _)| name).collect();
        let hint = nearest(text, names.iter().copied()).map(|n| format!("did you mean '{n}'?"));
        let message = format!("'{text}' is not one of {}", names.join(", "));
        Err(self.error(key, message, hint))
    }

    pub(crate) fn numbers(
        &self,
        key: &str,
        range: &RangeInclusive<f64>,
    ) -> Answer<Option<Vec<f64>>> {
        self.list(key, |value, line| {
            let number = value.as_float().or_else(|| value.as_integer().map(|i| i as f64));
            let number = number
                .ok_or_else(|| self.source.error(line, format!("{key}: not a number"), None))?;
            self.in_range(key, number, range, "")
        })
    }

    pub(crate) fn integers(
        &self,
        key: &str,
        range: &RangeInclusive<u64>,
    ) -> Answer<Option<Vec<u64>>> {
        self.list(key, |value, line| {
            let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
            number.filter(|number| range.contains(number)).ok_or_else(|| {
                let (least, most) = (range.start(), range.end());
                let what = format!("{key}: not a whole number from {least} to {most}");
                self.source.error(line, what, None)
            })
        })
    }

    /// Returns a table `[key]` or `key = { ... }`.
    pub fn optional_table(&self, key: &str) -> Answer<Option<Table<'a>>> {
        let Some(item) = self.item(key) else { return Ok(None) };
        let items = item.as_table_like().ok_or_else(|| {
            self.wrong(key, item, &format!("a table, [{}]", self.join(key)), None)
        })?;
        Ok(Some(self.inner(items, self.join(key), self.line_of(key))))
    }

    /// Returns the tables `[[key]]` or `key = [{ ... }, { ... }]`; empty if the key is absent.
    pub fn array_of_tables(&self, key: &str) -> Answer<Vec<Table<'a>>> {
        let Some(item) = self.item(key) else { return Ok(Vec::new()) };
        let wrong = || self.wrong(key, item, &format!("tables, [[{}]]", self.join(key)), None);
        let parts: Vec<(&'a dyn TableLike, Option<usize>)> = match item {
            Item::ArrayOfTables(tables) => {
                tables.iter().map(|t| (t as &dyn TableLike, t.span().map(|s| s.start))).collect()
            }
            Item::Value(Value::Array(values)) => values
                .iter()
                .map(|v| Some((v.as_inline_table()? as &dyn TableLike, v.span().map(|s| s.start))))
                .collect::<Option<_>>()
                .ok_or_else(wrong)?,
            _ => return Err(wrong()),
        };
        let table = |(i, (items, start)): (usize, (&'a dyn TableLike, Option<usize>))| {
            let line = start.map_or_else(|| self.line_of(key), |start| self.source.line_of(start));
            self.inner(items, format!("{}[{i}]", self.join(key)), line)
        };
        Ok(parts.into_iter().enumerate().map(table).collect())
    }

    /// Reads a required table.
    pub fn required_table(&self, key: &str) -> Answer<Table<'a>> {
        self.optional_table(key)?.ok_or_else(|| self.missing(key))
    }

    /// Rejects the first key that was never requested and suggests the most similar requested key.
    pub fn finish(self) -> Answer<()> {
        let asked = self.asked.borrow();
        let Some(key) = self.keys().into_iter().find(|key| !asked.iter().any(|a| a == key)) else {
            return Ok(());
        };
        let location =
            if self.path.is_empty() { String::new() } else { format!(" in {}", self.path) };
        let absent = asked.iter().map(String::as_str).filter(|key| !self.items.contains_key(key));
        let hint = match nearest(key, absent) {
            Some(key) => format!("did you mean '{key}'?"),
            None => format!("known keys here: {}", asked.join(", ")),
        };
        Err(self.source.error(
            self.line_of(key),
            format!("unknown key '{key}'{location}"),
            Some(hint),
        ))
    }

    fn item(&self, key: &str) -> Option<&'a Item> {
        let mut asked = self.asked.borrow_mut();
        if !asked.iter().any(|a| a == key) {
            asked.push(key.to_owned());
        }
        self.items.get(key).filter(|item| !item.is_none())
    }

    fn list<T: Debug>(
        &self,
        key: &str,
        convert: impl Fn(&Value, usize) -> Answer<T>,
    ) -> Answer<Option<Vec<T>>> {
        let Some(item) = self.item(key) else { return Ok(None) };
        let values =
            item.as_array().ok_or_else(|| self.wrong(key, item, "a list, [..., ...]", None))?;
        let line = |v: &Value| v.span().map_or(self.line, |span| self.source.line_of(span.start));
        let converted = values.iter().map(|value| convert(value, line(value)));
        Ok(self.read(key, converted.collect::<Answer<Vec<T>>>()?))
    }

    fn join(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Returns the line of a key, or the line of the table if the key is absent.
    pub fn line_of(&self, key: &str) -> usize {
        let Some((position, item)) = self.items.get_key_value(key) else { return self.line };
        // A header key has the span of its header; of a dotted key, only the key itself has a span.
        let span = position.span().or_else(|| item.span());
        span.map_or(self.line, |span| self.source.line_of(span.start))
    }

    fn quantity_text(&self, key: &str, example: &'static str) -> Answer<Option<&'a str>> {
        let Some(item) = self.item(key) else { return Ok(None) };
        if let Some(value) = number(item) {
            // A percentage has only one unit, so the hint can contain the number.
            let share = example.ends_with("%\"").then(|| share_text(value));
            let meant = share.as_deref().unwrap_or(example);
            return Err(self.bare_number(key, self.line_of(key), meant));
        }
        let wanted = format!("a number with a unit, such as {example}");
        item.as_str().map(Some).ok_or_else(|| self.wrong(key, item, &wanted, None))
    }

    fn bare_number(&self, key: &str, line: usize, example: &str) -> LocatedError {
        let message = format!("{key}: a number with a unit must be a quoted string");
        self.source.error(line, message, Some(format!("write, for example, {key} = {example}")))
    }

    fn bad_quantity(&self, key: &str, error: &QuantityError) -> LocatedError {
        self.error(key, error, error.hint())
    }

    /// Checks a value against limits that depend on other keys.
    pub fn in_range(
        &self,
        key: &str,
        value: f64,
        range: &RangeInclusive<f64>,
        unit: &str,
    ) -> Answer<f64> {
        if range.contains(&value) {
            return Ok(value);
        }
        Err(self.error(key, format!("{value}{unit} is outside {}", limits(range, unit)), None))
    }

    fn wrong(&self, key: &str, item: &Item, wanted: &str, hint: Option<String>) -> LocatedError {
        let actual = match item.type_name() {
            "string" => "text",
            "inline table" => "a table",
            other => other,
        };
        self.error(key, format!("expected {wanted}, found {actual}"), hint)
    }
}

pub(crate) fn number(item: &Item) -> Option<f64> {
    item.as_float().or_else(|| item.as_integer().map(|i| i as f64))
}

fn limits<T: Display>(range: &RangeInclusive<T>, unit: &str) -> String {
    format!("{}{unit} to {}{unit}", range.start(), range.end())
}

/// Returns the percentage that a bare number may stand for: `"70 %"` for 0.7 and for 70.
fn share_text(value: f64) -> String {
    let pct = if value > 0.0 && value < 1.0 { 100.0 * value } else { value };
    format!("\"{} %\"", (1e9 * pct).round() / 1e9) // 7 for 0.07, not 7.000000000000001
}

/// Parses `"7 %"` or `"7%"` as 7.0; returns `None` for any other text.
pub(super) fn parse_percent(text: &str) -> Option<f64> {
    text.trim().strip_suffix('%')?.trim_end().parse().ok().filter(|value: &f64| value.is_finite())
}
