//! Tests the errors for mistyped files and the values read from correct files.

use super::*;
use crate::keys::{Choice, Integer, Kind, Numbers, Percent, PositiveRate, Size, Text, Time, Times};
use crate::units::{Bytes, Nanos};

const DRIVE: &str = r#"name = "small"  # made up

[flash]
# Micron B16A, data sheet table 5
page_size = "16 KiB"
read_time = "75 us"      # typical,
                         # not maximum
planes = 2
pages.per_block = 576  # three bits a cell

[[host.queue]]
depth = 32
weights = [1, 2.5]
"#;

fn failure<T>(text: &str, read: impl Fn(&Table<'_>) -> Result<T, LocatedError>) -> LocatedError {
    let toml = LocatedToml::parse(text, "d.toml").unwrap();
    let root = toml.root();
    read(&root).err().unwrap_or_else(|| root.finish().unwrap_err())
}

#[test]
fn a_correct_file_reads_typed() {
    let toml = LocatedToml::parse(DRIVE, "d.toml").unwrap();
    let root = toml.root();
    assert_eq!(root.required("name", &Text).unwrap(), "small");
    let flash = root.required_table("flash").unwrap();
    assert_eq!(flash.required("page_size", &Size).unwrap(), Bytes(16_384));
    assert_eq!(flash.required("read_time", &Time).unwrap(), Nanos(75_000));
    assert_eq!(flash.required("planes", &Integer(1..=8)).unwrap(), 2);
    let pages = flash.required_table("pages").unwrap();
    assert_eq!(pages.required("per_block", &Integer(1..=4096)).unwrap(), 576);
    assert_eq!(PositiveRate.read(&flash, "channel").unwrap(), None);
    pages.finish().unwrap();
    flash.finish().unwrap();
    let host = root.required_table("host").unwrap();
    let queues = host.array_of_tables("queue").unwrap();
    assert_eq!(queues.len(), 1);
    assert_eq!((queues[0].path(), queues[0].line()), ("host.queue[0]", 11));
    assert_eq!(queues[0].required("depth", &Integer(1..=1024)).unwrap(), 32);
    let weights = Numbers(0.0..=10.0).read(&queues[0], "weights").unwrap();
    assert_eq!(weights, Some(vec![1.0, 2.5]));
    host.finish().unwrap();
    root.finish().unwrap();
}

#[test]
fn an_unknown_key_is_reported_with_line_and_most_similar_key() {
    let error = failure("size = \"1 MiB\"\nplane = 2\n", |t| {
        t.required("size", &Size)?;
        Integer(1..=8).read(t, "planes")
    });
    assert_eq!(error.to_string(), "d.toml:2: unknown key 'plane'");
    assert_eq!(error.hint.as_deref(), Some("did you mean 'planes'?"));
}

#[test]
fn an_unknown_key_without_a_similar_one_gets_the_list_of_keys() {
    let error = failure("colour = 1\n", |t| Integer(1..=8).read(t, "planes"));
    assert_eq!(error.hint.as_deref(), Some("known keys here: planes"));
}

#[test]
fn unknown_keys_of_inner_tables_name_the_table() {
    let toml = LocatedToml::parse("a = 1\n[x.y]\n\nz = 1\n", "d.toml").unwrap();
    let inner = toml.root().required_table("x").unwrap().required_table("y").unwrap();
    assert_eq!(inner.finish().unwrap_err().to_string(), "d.toml:4: unknown key 'z' in x.y");
}

#[test]
fn a_bare_k_is_rejected_with_both_interpretations() {
    let error = failure("\nblock = \"4k\"\n", |t| t.required("block", &Size));
    assert_eq!(error.line, 2);
    assert!(error.message.starts_with("block: '4k' has the unit 'k'"), "{error}");
    let hint = error.hint.unwrap();
    assert!(hint.ends_with("write \"4 kB\" or \"4 KiB\""), "{hint}");
}

#[test]
fn unknown_units_get_the_most_similar_unit() {
    let time = failure("t = \"5 sec\"", |t| t.required("t", &Time));
    assert_eq!(time.hint.as_deref(), Some("did you mean \"5 s\"?"));
    let micro = failure("t = \"5 µs\"", |t| t.required("t", &Time));
    assert_eq!(micro.hint.as_deref(), Some("did you mean \"5 us\"?"));
    let rate = failure("r = \"5 Mb/s\"", |t| PositiveRate.read(t, "r"));
    assert_eq!(rate.hint.as_deref(), Some("did you mean \"5 MB/s\"?"));
}

#[test]
fn a_number_without_a_unit_is_rejected() {
    let error = failure("block = 4096", |t| t.required("block", &Size));
    assert_eq!(error.to_string(), "d.toml:1: block: a number with a unit must be a quoted string");
    assert_eq!(error.hint.as_deref(), Some("write, for example, block = \"16 KiB\""));
    for (text, meant) in
        [("70", "70"), ("0.7", "70"), ("0.07", "7"), ("\"70\"", "70"), ("\"x\"", "7")]
    {
        let share = failure(&format!("s = {text}"), |t| Percent(0.0..=100.0).read(t, "s"));
        let hint = share.hint.unwrap();
        assert!(hint.ends_with(&format!(" \"{meant} %\"")), "{hint}");
    }
}

#[test]
fn ranges_types_and_choices_are_checked() {
    let range = failure("n = 9", |t| t.required("n", &Integer(1..=8)));
    assert_eq!(range.message, "n: 9 is outside 1 to 8");
    let negative = failure("n = -1", |t| t.required("n", &Integer(1..=8)));
    assert_eq!(negative.message, "n: -1 is outside 1 to 8");
    let kind = failure("n = \"9\"", |t| t.required("n", &Integer(1..=8)));
    assert_eq!(kind.message, "n: expected a whole number, found text");
    let share = failure("op = \"120 %\"", |t| Percent(0.0..=100.0).read(t, "op"));
    assert_eq!(share.message, "op: 120 % is outside 0 % to 100 %");
    let choices = &[("greedy", 1), ("fifo", 2)];
    let choice = failure("gc = \"gredy\"", |t| Choice(choices).read(t, "gc"));
    assert_eq!(choice.to_string(), "d.toml:1: gc: 'gredy' is not one of greedy, fifo");
    assert_eq!(choice.hint.as_deref(), Some("did you mean 'greedy'?"));
    let table = failure("flash = 3", |t| t.required_table("flash").map(|_| ()));
    assert_eq!(table.message, "flash: expected a table, [flash], found integer");
}

#[test]
fn a_syntax_error_is_reported_with_its_line() {
    let error = LocatedToml::parse("a = 1\nb = \n", "d.toml").unwrap_err();
    assert_eq!((error.file.as_str(), error.line), ("d.toml", 2));
    let twice = LocatedToml::parse("a = 1\nb = 2\na = 3\n", "d.toml").unwrap_err();
    assert_eq!(twice.line, 3, "{twice}");
}

#[test]
fn inline_tables_are_tables() {
    let text = "sizes = [\n  { size = \"4 KiB\" },\n  { sise = \"8 KiB\" },\n]\n";
    let toml = LocatedToml::parse(text, "d.toml").unwrap();
    let tables = toml.root().array_of_tables("sizes").unwrap();
    assert_eq!(tables[0].required("size", &Size).unwrap(), Bytes(4096));
    let error = tables[1].required("size", &Size).unwrap_err();
    assert_eq!(error.to_string(), "d.toml:3: missing key 'size' in sizes[1]");
}

#[test]
fn comments_beside_and_above_are_found() {
    let toml = LocatedToml::parse(DRIVE, "d.toml").unwrap();
    let entries = toml.documented();
    let entry = |key: &str| entries.iter().find(|e| e.key == key).unwrap();
    assert_eq!(entry("name").comment, "made up");
    assert_eq!(entry("flash.page_size").value, "\"16 KiB\"");
    assert_eq!(entry("flash.page_size").comment, "Micron B16A, data sheet table 5");
    assert_eq!(entry("flash.read_time").comment, "typical, not maximum");
    assert_eq!((entry("flash.planes").comment.as_str(), entry("flash.planes").line), ("", 8));
    assert_eq!(entry("flash.pages.per_block").comment, "three bits a cell");
    assert_eq!(entry("host.queue[0].depth").value, "32");
    assert!(entries.is_sorted_by_key(|e| e.line));
}

#[test]
fn a_hash_inside_a_value_does_not_start_a_comment() {
    let toml = LocatedToml::parse("a = \"x # y\"\nb = 1 # z\r\n", "d.toml").unwrap();
    let comments: Vec<String> = toml.documented().into_iter().map(|e| e.comment).collect();
    assert_eq!(comments, ["", "z"]);
}

#[test]
fn the_canonical_text_has_every_requested_value() {
    let canonical = |text: &str| {
        let toml = LocatedToml::parse(text, "d.toml").unwrap();
        let root = toml.root();
        root.required("name", &Text).unwrap();
        let flash = root.required_table("flash").unwrap();
        flash.required("page", &Size).unwrap();
        let planes = Integer(1..=8).read(&flash, "planes").unwrap();
        flash.otherwise("planes", planes, 1);
        Times.read(&flash, "read").unwrap();
        root.canonical(&["name"])
    };
    let text = "name = \"a\"\n[flash]\npage = \"1 KiB\"\nplanes = 2\nread = [\"1 us\"]\n";
    let base = canonical(text);
    assert_eq!(base, "flash.page = Bytes(1024)\nflash.planes = 2\nflash.read = [Nanos(1000)]");
    assert_eq!(canonical(&text.replace("1 KiB", "1024 B").replace("\"a\"", "\"b\"")), base);
    let implied = canonical(&text.replace("planes = 2\n", ""));
    assert_eq!(canonical(&text.replace("planes = 2", "planes = 1")), implied);
    assert_eq!(implied, "flash.page = Bytes(1024)\nflash.read = [Nanos(1000)]");
}

#[test]
fn changes_preserve_all_other_text() {
    let toml = LocatedToml::parse(DRIVE, "d.toml").unwrap();
    let mut plain = Change::new("flash.planes", 4, "");
    plain.source = None;
    let changes = [
        plain,
        Change::new("name", "large", "made up, too"),
        Change::new("flash.read_time", "80 us", "measured"),
        Change::new("flash.erase", "3 ms", "new"),
    ];
    let text = toml.changed(&changes).unwrap();
    let expected = DRIVE
        .replace("\"small\"  # made up", "\"large\"  # made up, too")
        .replace("\"75 us\"      # typical,\n", "\"80 us\"  # measured\n")
        .replace("                         # not maximum\n", "")
        .replace("planes = 2\n", "planes = 4\n")
        .replace("bits a cell\n", "bits a cell\nerase = \"3 ms\"  # new\n");
    assert_eq!(text, expected);
    let absent = toml.changed(&[Change::new("motor.rpm", 7200, "")]);
    assert_eq!(absent.unwrap_err(), "motor.rpm");
}

#[test]
fn changes_inside_an_inline_table_omit_comments() {
    let toml = LocatedToml::parse("link = { queues = 1, depth = 2 } # x\n", "d.toml").unwrap();
    let text = toml.changed(&[Change::new("link.queues", 4, "why")]).unwrap();
    assert_eq!(text, "link = { queues = 4, depth = 2 } # x\n");
}
