//! Tests fitting traces to a drive.

use writecliff_issuer::traced::{Fit, Fitted, Fitting, Outside};
use writecliff_issuer::{Io, LENGTH_MAX_BYTES, Operation};
use writecliff_traces::{Operation as Traced, Record};

const FIT: Fit = Fit {
    capacity_bytes: 1 << 20,
    sector_bytes: 4096,
    outside: Outside::Skip,
    volume: None,
    speed: 1.0,
};

fn fitted(fit: Fit, records: &[Record]) -> (Vec<Io>, Fitted) {
    let (mut fitting, mut ios) = (Fitting::new(fit), Vec::new());
    assert!(fitting.take(records, |io| {
        ios.push(io);
        true
    }));
    (ios, fitting.fitted)
}

fn read(time_ns: i64, offset: u64, length: u64) -> Record {
    Record::new(time_ns, Traced::Read, offset, length)
}

#[test]
fn times_begin_at_the_first_io_and_follow_the_speed() {
    let records = [read(1000, 0, 4096), read(3000, 0, 4096), read(2000, 0, 4096)];
    let (ios, fit) = fitted(Fit { speed: 2.0, ..FIT }, &records);
    assert_eq!(ios.iter().map(|io| io.due_ns).collect::<Vec<_>>(), [0, 1000, 1000]);
    assert_eq!((fit.moved, fit.due_ns), (1, 1000));
    let (_, fit) = fitted(FIT, &[read(5, 0, 4096), read(-7, 0, 4096)]);
    assert_eq!((fit.moved, fit.due_ns), (1, 0), "a time before the first one");
}

#[test]
fn ios_are_widened_to_sectors() {
    let (ios, fit) = fitted(FIT, &[read(0, 512, 512), read(0, 4000, 200), read(0, 4096, 8192)]);
    let places: Vec<_> = ios.iter().map(|io| (io.offset, io.length)).collect();
    assert_eq!(places, [(0, 4096), (0, 8192), (4096, 8192)]);
    assert_eq!((fit.widened, fit.bytes[0]), (2, 20_480));
}

#[test]
fn what_is_beyond_the_end_is_left_out_or_wrapped_and_told() {
    let records = [
        read(0, (1 << 20) - 4096, 4096),
        read(1, (1 << 20) - 4096, 8192),
        read(2, u64::MAX / 2, 4096),
        read(3, 5 << 20, 2 << 20),
        read(4, u64::MAX - 100, 4096),
    ];
    let (ios, fit) = fitted(FIT, &records);
    assert_eq!((ios.len(), fit.outside), (1, 3));
    assert_eq!(fit.first_outside, Some(((1 << 20) - 4096, 8192)));
    assert_eq!(fit.end_bytes, u64::MAX);
    let (ios, fit) = fitted(Fit { outside: Outside::Wrap, ..FIT }, &records);
    assert_eq!((ios.len(), fit.outside), (3, 3), "one is longer than the drive");
    for io in ios {
        assert!(io.offset + io.length <= FIT.capacity_bytes);
        assert!(io.offset.is_multiple_of(FIT.sector_bytes));
    }
}

#[test]
fn operations_are_counted_and_one_volume_can_be_chosen() {
    let mut other = Record::new(9, Traced::Write, 0, 4096);
    other.volume = 1;
    let records = [
        Record::new(0, Traced::Flush, 0, 0),
        Record::new(1, Traced::Discard, 0, 1 << 19),
        Record::new(2, Traced::Discard, 8192, 0),
        read(3, 0, LENGTH_MAX_BYTES + 1),
        other,
    ];
    let (ios, fit) = fitted(FIT, &records);
    let operations: Vec<_> = ios.iter().map(|io| io.operation).collect();
    assert_eq!(operations, [Operation::Flush, Operation::Trim, Operation::Write]);
    assert_eq!((fit.ios, fit.too_long), ([0, 1, 1, 1], 1));
    let (ios, fit) = fitted(Fit { volume: Some(1), ..FIT }, &records);
    assert_eq!((ios.len(), fit.other_volumes, ios[0].due_ns), (1, 4, 0));
}
