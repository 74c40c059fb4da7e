//! Tests of the operation letters of a request.

use writecliff_tracefs::{Flags, Operation, parse_rwbs};

#[test]
fn letters_are_the_kernels() {
    let read = |text: &str| {
        let (operation, flags) = parse_rwbs(text.as_bytes(), 8);
        (operation, flags.0)
    };
    let (sync, meta) = (Flags::SYNC, Flags::META);
    assert_eq!(read("R"), (Operation::Read, 0));
    assert_eq!(read("RAM"), (Operation::Read, Flags::READAHEAD | meta));
    assert_eq!(read("WS"), (Operation::Write, sync));
    assert_eq!(read("WFS"), (Operation::Write, Flags::FUA | sync));
    assert_eq!(read("FWFSM"), (Operation::Write, Flags::PREFLUSH | Flags::FUA | sync | meta));
    assert_eq!(read("FF"), (Operation::Flush, Flags::PREFLUSH));
    assert_eq!(read("F"), (Operation::Flush, 0));
    assert_eq!(read("D"), (Operation::Discard, 0));
    assert_eq!(read("DS"), (Operation::Discard, sync));
    assert_eq!(read("DE"), (Operation::Discard, Flags::ERASE));
    assert_eq!(read("WZ"), (Operation::Discard, Flags::ZEROES));
    assert_eq!(read("NS"), (Operation::Discard, Flags::ZEROES | sync));
    assert_eq!(read("ZAS"), (Operation::Write, sync));
    assert_eq!(read("WSU"), (Operation::Write, sync | Flags::ATOMIC));
}

#[test]
fn what_moves_no_data_is_other() {
    for text in ["", "N", "ZR", "ZO", "?", "\u{7f}", "FX"] {
        let (operation, _) = parse_rwbs(text.as_bytes(), 0);
        assert!(matches!(operation, Operation::Other | Operation::Flush), "{text}");
    }
    assert_eq!(parse_rwbs(b"N", 0).0, Operation::Other);
}
