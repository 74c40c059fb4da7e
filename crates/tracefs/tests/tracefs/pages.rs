//! Tests of ring buffer pages.

use proptest::prelude::*;
use writecliff_tracefs::{
    Capture, EventFormat, Field, Operation, PageLayout, Records, Request, Requests,
};

use crate::{formats, layout};

/// Returns the recorded pages, which are stored as hexadecimal digits.
fn recorded() -> Vec<u8> {
    let digits: Vec<u8> = include_str!("recorded/pages.hex")
        .bytes()
        .filter_map(|letter| char::from(letter).to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Returns a page that starts at `time_ns` and contains `data`.
fn page(time_ns: u64, commit: u64, data: &[u8]) -> Vec<u8> {
    let mut page = time_ns.to_le_bytes().to_vec();
    page.extend(commit.to_le_bytes());
    page.extend(data);
    page.resize(4096, 0);
    page
}

fn header(kind: u32, delta: u32) -> [u8; 4] {
    (kind | delta << 5).to_le_bytes()
}

#[test]
fn all_kinds_of_records_keep_the_time() {
    let mut data = Vec::new();
    data.extend(header(1, 5));
    data.extend(*b"abcd");
    data.extend(header(30, 3)); // 2 << 27 plus 3 ns later.
    data.extend(2u32.to_le_bytes());
    data.extend(header(0, 0)); // The event is preceded by its length.
    data.extend(12u32.to_le_bytes());
    data.extend(*b"ABCDEFGH");
    data.extend(header(29, 7)); // This event is discarded.
    data.extend(8u32.to_le_bytes());
    data.extend(*b"gone");
    data.extend(header(31, 9)); // An absolute timestamp.
    data.extend(100u32.to_le_bytes());
    data.extend(header(1, 1));
    data.extend(*b"last");
    let page = page(1000, data.len() as u64, &data);
    let records: Vec<_> = Records::of(&page, layout()).collect();
    let later = 1005 + (2 << 27) + 3;
    let absolute = (100 << 27) + 9 + 1;
    assert_eq!(records, [(1005, &b"abcd"[..]), (later, b"ABCDEFGH"), (absolute, b"last")]);
}

#[test]
fn the_end_of_the_data_ends_the_records() {
    let mut data = header(1, 5).to_vec();
    data.extend(*b"abcd");
    let used = data.len() as u64;
    data.extend(header(1, 5));
    data.extend(*b"old!");
    assert_eq!(Records::of(&page(0, used, &data), layout()).count(), 1);
    assert_eq!(Records::of(&page(0, used + 3, &data), layout()).count(), 1);
    assert_eq!(Records::of(&page(0, u64::from(u32::MAX) >> 4, &data), layout()).count(), 2);
    assert_eq!(Records::of(&page(0, used, &data)[..10], layout()).count(), 0);
}

#[test]
fn losses_are_read_from_the_page() {
    let data = [header(1, 0).to_vec(), b"abcd".to_vec(), 42u64.to_le_bytes().to_vec()].concat();
    let counted = page(0, 8 | 1 << 31 | 1 << 30, &data);
    assert_eq!(Records::of(&counted, layout()).lost, 42);
    assert_eq!(Records::of(&counted, layout()).count(), 1);
    assert_eq!(Records::of(&page(0, 8 | 1 << 31, &data), layout()).lost, 1);
    assert_eq!(Records::of(&page(0, 8, &data), layout()).lost, 0);
}

/// Returns the requests of recorded pages.
fn requests(pages: &[u8], layout: PageLayout) -> (Vec<Request>, Capture) {
    let mut capture = Capture::new(&formats(), Requests::new(0, u64::MAX)).unwrap();
    for page in pages.chunks(4096) {
        for (time_ns, event) in Records::of(page, layout) {
            capture.record(time_ns, event);
        }
    }
    capture.settle(u64::MAX);
    capture.requests.finish();
    let requests = capture.requests.take().collect();
    (requests, capture)
}

#[test]
fn recorded_pages_give_the_requests_that_were_made() {
    let (requests, capture) = requests(&recorded(), layout());
    let name = |request: &Request| capture.names.words[request.event.name as usize].as_str();
    let direct: Vec<_> = requests
        .iter()
        .filter(|request| {
            request.event.operation == Operation::Write
                && name(request) == "dd"
                && request.event.sectors == 8
        })
        .collect();
    assert_eq!(direct.len(), 16);
    let places: std::collections::BTreeSet<_> =
        direct.iter().map(|request| request.event.sector).collect();
    assert_eq!(places.len(), 16);
    for request in &requests {
        assert!(
            request.event.time_ns <= request.issue_ns && request.issue_ns <= request.complete_ns,
            "{request:?}"
        );
        assert_eq!(request.event.errno, 0);
    }
    assert!(requests.windows(2).all(|pair| pair[0].event.time_ns <= pair[1].event.time_ns));
    let by =
        |operation| requests.iter().filter(|request| request.event.operation == operation).count();
    assert!(by(Operation::Discard) > 0 && by(Operation::Flush) > 0);
    assert!(requests.iter().any(|request| name(request).starts_with("jbd2/")));
    let flushes = requests.iter().filter(|request| request.event.operation == Operation::Flush);
    assert!(flushes.into_iter().all(|request| !name(request).starts_with("kworker")));
    let anomalies = capture.requests.anomalies;
    assert_eq!((anomalies.open, anomalies.unissued, anomalies.unknown_completions), (0, 0, 0));
}

#[test]
fn other_events_are_rows_of_their_fields() {
    let format = |name: &str, id: u16| {
        let text = format!(
            "name: {name}\nID: {id}\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
             \tfield:unsigned long index;\toffset:8;\tsize:8;\tsigned:0;\n"
        );
        EventFormat::parse(&text).unwrap()
    };
    let mut capture = Capture::new(&[], Requests::new(0, 1)).unwrap();
    let fields = ["index".to_owned(), "order".to_owned()]; // Older kernels do not report the order.
    capture.rows.add_format(&format("added", 7), &fields).unwrap();
    capture.rows.add_format(&format("removed", 8), &fields[..1]).unwrap();
    for (time_ns, id) in [(10_u64, 8_u16), (11, 7), (12, 9)] {
        let mut event = id.to_le_bytes().to_vec();
        event.extend([0, 0, 5, 0, 0, 0]);
        event.extend((100 + time_ns).to_le_bytes());
        capture.record(time_ns, &event);
    }
    let rows = capture.rows.take();
    assert_eq!((rows.time_ns, rows.kind, rows.width), (vec![10, 11], vec![1, 0], 2));
    assert_eq!((rows.thread_id, rows.values), (vec![5, 5], vec![110, 0, 111, 0]));
    assert_eq!((capture.rows.time_ns.len(), capture.rows.width, capture.events), (0, 2, 3));
}

proptest! {
    /// Tests that no bytes cause a panic, and that a page never yields more records than fit.
    #[test]
    fn no_bytes_break_a_page(
        bytes in proptest::collection::vec(any::<u8>(), 0..5000),
        changes in proptest::collection::vec((0..12_288_usize, any::<u8>()), 0..200),
    ) {
        let count = Records::of(&bytes, layout()).count();
        prop_assert!(count <= bytes.len() / 4);
        let mut broken = recorded();
        for (at, byte) in changes {
            broken[at] = byte;
        }
        requests(&broken, layout());
        let commit = Field { offset: 9000, ..layout().commit };
        let odd = PageLayout { commit, data_at: 4090, size: 4096 };
        requests(&broken, odd);
    }
}
