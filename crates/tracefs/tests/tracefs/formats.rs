//! `format` files.

use proptest::prelude::*;
use writecliff_tracefs::{Capture, EventFormat, Field, FormatError, PageLayout, Requests};

use crate::{HEADER_PAGE, formats, layout};

#[test]
fn fields_are_where_the_kernel_says() {
    let issue = &formats()[1];
    assert_eq!((issue.name.as_str(), issue.id), ("block_rq_issue", 2104));
    assert_eq!(issue.field("sector"), Ok(Field { offset: 16, size: 8, signed: false }));
    assert_eq!(issue.field("rwbs"), Ok(Field { offset: 34, size: 10, signed: false }));
    assert_eq!(issue.field("common_pid"), Ok(Field { offset: 4, size: 4, signed: true }));
    assert_eq!(issue.optional("error"), None);
}

#[test]
fn a_page_is_laid_out_as_the_kernel_says() {
    let field = |offset, size| Field { offset, size, signed: true };
    let expected = PageLayout { commit: field(8, 8), data_at: 16, size: 4096 };
    assert_eq!(layout(), expected);
    let bigger = HEADER_PAGE.replace("size:4080", "size:65520");
    assert_eq!(PageLayout::parse(&bigger).unwrap().size, 65536);
}

#[test]
fn what_is_missing_is_named() {
    assert_eq!(EventFormat::parse("name: x\n"), Err(FormatError::NoId));
    let broken = "ID: 7\nformat:\n\tfield:int dev;\toffset:eight;\tsize:4;\n";
    let text = "field:int dev;\toffset:eight;\tsize:4;".to_owned();
    assert_eq!(EventFormat::parse(broken), Err(FormatError::Field { line: 3, text }));
    let bare = EventFormat::parse("name: block_getrq\nID: 7\n").unwrap();
    let error = Capture::new(&[bare], Requests::new(0, 1)).unwrap_err();
    assert_eq!(error.to_string(), "event block_getrq has no field 'sector' on this kernel");
}

#[test]
fn an_event_of_another_kind_is_refused() {
    let other = EventFormat::parse("name: sched_switch\nID: 7\n").unwrap();
    assert!(Capture::new(&[other], Requests::new(0, 1)).is_err());
}

#[test]
fn numbers_have_their_size_and_sign() {
    let bytes = [0xfe, 0xff, 0xff, 0xff, 1, 0, 0, 0];
    let field = |offset, size, signed| Field { offset, size, signed }.number(&bytes) as i64;
    assert_eq!(field(0, 4, true), -2);
    assert_eq!(field(0, 4, false), 0xffff_fffe);
    assert_eq!(field(4, 4, true), 1);
    assert_eq!(field(6, 4, true), 0, "the event ends before");
    assert_eq!(field(usize::MAX, 4, true), 0);
}

#[test]
fn text_ends_at_its_zero_or_its_field() {
    let field = Field { offset: 2, size: 4, signed: false };
    assert_eq!(field.text(b"..fi\0o"), b"fi");
    assert_eq!(field.text(b"..fio2jobs"), b"fio2");
    assert_eq!(field.text(b"..f"), b"");
}

proptest! {
    #[test]
    fn no_text_breaks_the_parsers(
        lines in proptest::collection::vec(
            "ID: [0-9]{1,6}|\tfield:[a-z \\[\\];:0-9\u{7f}-\u{fff}]{0,60}|.{0,40}",
            0..12,
        ),
    ) {
        let text = lines.join("\n");
        let _ = EventFormat::parse(&text);
        let _ = PageLayout::parse(&text);
    }
}
