//! Mutations of parser inputs, for the property tests of all crates.

use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Values that are invalid in most positions of a text.
const VALUES: [&str; 30] = [
    "0",
    "1",
    "-1",
    "0.0",
    "1e308",
    "-1e308",
    "1e-320",
    "nan",
    "inf",
    "true",
    "[]",
    "[[]]",
    "{}",
    "\"\"",
    "\"x\"",
    "\"0 B\"",
    "\"1 ns\"",
    "\"9 EB\"",
    "\"1e999 s\"",
    "\"-5 %\"",
    "\"101 %\"",
    "9223372036854775807",
    "9223372036854775808",
    "4294967296",
    "1979-05-27",
    "[1, \"a\"]",
    "{ x = 1 }",
    "\"\\u0000\"",
    "65536",
    "1_0",
];

/// One mutation of a text.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Replaces the value in a line, which is the text after "=".
    Value(Index, &'static str),
    Drop(Index),
    Double(Index),
    Move(Index, Index),
    /// Replaces a character.
    Character(Index, char),
}

pub(crate) fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = any::<Index>;
    let change = prop_oneof![
        6 => (at(), select(&VALUES[..])).prop_map(|(at, value)| Change::Value(at, value)),
        1 => at().prop_map(Change::Drop),
        1 => at().prop_map(Change::Double),
        1 => (at(), at()).prop_map(|(from, to)| Change::Move(from, to)),
        1 => (at(), any::<char>()).prop_map(|(at, character)| Change::Character(at, character)),
    ];
    prop::collection::vec(change, 1..5)
}

pub(crate) fn mutated(text: &str, changes: &[Change]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for change in changes {
        if lines.is_empty() {
            break;
        }
        let count = lines.len();
        match change {
            Change::Value(at, value) => {
                let with: Vec<usize> = (0..count).filter(|&n| lines[n].contains(" = ")).collect();
                if !with.is_empty() {
                    let line = &mut lines[with[at.index(with.len())]];
                    let key = line.split(" = ").next().unwrap_or_default().to_owned();
                    *line = format!("{key} = {value}");
                }
            }
            Change::Drop(at) => {
                lines.remove(at.index(count));
            }
            Change::Double(at) => lines.insert(at.index(count), lines[at.index(count)].clone()),
            Change::Move(from, to) => {
                let line = lines.remove(from.index(count));
                lines.insert(to.index(count), line);
            }
            Change::Character(at, character) => {
                let line = &mut lines[at.index(count)];
                let ends: Vec<usize> = line.char_indices().map(|(at, _)| at).collect();
                if !ends.is_empty() {
                    let begin = ends[at.index(ends.len())];
                    let end = begin + line[begin..].chars().next().map_or(0, char::len_utf8);
                    line.replace_range(begin..end, &character.to_string());
                }
            }
        }
    }
    lines.join("\n")
}

/// Returns the contents of all files in a repository folder whose names end with `suffix`.
pub(crate) fn corpus(folder: &str, suffix: &str) -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut paths: Vec<_> =
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(suffix));
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}
