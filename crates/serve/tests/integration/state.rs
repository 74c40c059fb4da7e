//! Tests of drive state files.

use std::fs;
use std::path::Path;

use writecliff_base::{Bytes, StreamId};
use writecliff_contents::{Contents, MemoryOptions};
use writecliff_host_interface::Operation;
use writecliff_runner::AnyDrive;
use writecliff_serve::{PowerHistory, Request, Served, ServedParts, Tag, Timing, state};

use crate::served::session;
use crate::support::{CAPACITY, drive, drive_with, scratch, serve};

fn empty() -> Contents {
    Contents::in_memory(Bytes(CAPACITY), MemoryOptions::default())
}

/// Returns the components of a drive where every second mebibyte is written.
fn used(contents: Contents) -> ServedParts {
    let served = Served::new(ServedParts::new(drive(), contents), Timing::Fast);
    let (session, _) = session(&served);
    for tag in 0..CAPACITY >> 21 {
        let offset = tag << 21;
        served.store(offset, &[tag as u8 + 1; 4096]).unwrap();
        let (operation, stream) = (Operation::Write, StreamId(1));
        let request = Request {
            tag: Tag::Number(tag),
            operation,
            offset,
            length: 4096,
            stream,
            durable: false,
            is_zeros: false,
        };
        session.batch().submit(request, None).unwrap();
    }
    drop(session);
    served.stop();
    served.into_parts().unwrap_or_else(|_| panic!("in use"))
}

fn bytes(parts: &ServedParts) -> (Vec<u8>, Vec<u8>) {
    (parts.drive.save(Vec::new()).unwrap(), parts.contents.save(Vec::new()).unwrap())
}

#[test]
fn a_saved_state_is_the_drive_with_its_data() {
    let path = scratch("state");
    let parts = used(empty());
    state::save(&parts, &path).unwrap();
    let mut again = ServedParts::new(drive(), empty());
    state::restore(&mut again, &path).unwrap();
    assert!(bytes(&again) == bytes(&parts));
    let served = Served::new(again, Timing::Fast);
    let mut data = [0; 4096];
    served.read(2 << 20, &mut data).unwrap();
    assert_eq!(data, [2; 4096]);
    served.stop();
    fs::remove_file(&path).unwrap();
}

#[test]
fn contents_in_a_file_stay_there() {
    let (path, file) = (scratch("state-beside"), scratch("contents"));
    let parts = used(Contents::in_file(Bytes(CAPACITY), &file).unwrap());
    state::save(&parts, &path).unwrap();
    let mut other = ServedParts::new(drive(), empty());
    state::restore(&mut other, &path).unwrap();
    assert_eq!(
        other.contents.used().unwrap(),
        empty().used().unwrap(),
        "the state has no contents"
    );
    // A file with only the drive state is also valid.
    fs::write(&path, drive().save(Vec::new()).unwrap()).unwrap();
    state::restore(&mut other, &path).unwrap();
    // A state with contents cannot be combined with contents in a file.
    let served = serve(drive(), Timing::Fast);
    served.stop();
    let parts = served.into_parts().unwrap_or_else(|_| panic!("in use"));
    state::save(&parts, &path).unwrap();
    let in_file = Contents::in_file(Bytes(CAPACITY), &file).unwrap();
    let error = state::restore(&mut ServedParts::new(drive(), in_file), &path).unwrap_err();
    assert!(error.to_string().contains("stores its data in a file"), "{error}");
    for path in [path, file] {
        fs::remove_file(path).unwrap();
    }
}

/// Returns the error from restoring the state for this drive.
fn refusal(drive: AnyDrive, path: &Path) -> String {
    let mut parts = ServedParts::new(drive, empty());
    state::restore(&mut parts, path).unwrap_err().to_string()
}

#[test]
fn the_size_of_a_logical_block_is_kept() {
    let path = scratch("state-block");
    let restored = || {
        let mut parts = ServedParts::new(drive(), empty());
        state::restore(&mut parts, &path).unwrap();
        (parts.logical_block, parts.contents.used().unwrap())
    };
    let mut parts = used(empty());
    parts.logical_block = Bytes(4096);
    state::save(&parts, &path).unwrap();
    let data = parts.contents.used().unwrap();
    assert_eq!(restored(), (Bytes(4096), data));
    // Other format versions are rejected, because the contents followed the drive state before
    // version 5.
    let (saved_drive, saved_contents) = bytes(&parts);
    for (rest, version) in [(&b"WCSERVE6"[..], '6'), (&saved_contents, '4')] {
        fs::write(&path, [&saved_drive, rest].concat()).unwrap();
        assert!(refusal(drive(), &path).contains(&format!("version '{version}'")));
    }
    // Other logical block sizes are rejected.
    parts.logical_block = Bytes(520);
    state::save(&parts, &path).unwrap();
    assert!(refusal(drive(), &path).contains("520 is not a valid logical block size"));
    fs::remove_file(&path).unwrap();
}

#[test]
fn power_ups_are_counted_across_servers() {
    let path = scratch("state-power");
    for ups in 1..4 {
        let mut parts = ServedParts::new(drive(), empty());
        if ups > 1 {
            state::restore(&mut parts, &path).unwrap();
        }
        let served = Served::new(parts, Timing::Fast);
        let expected = PowerHistory { cycles: ups, unsafe_shutdowns: 0 };
        assert_eq!(served.snapshot().power, expected);
        served.stop();
        let parts = served.into_parts().unwrap_or_else(|_| panic!("in use"));
        state::save(&parts, &path).unwrap();
    }
    // A file with only the drive state has no power-up times.
    fs::write(&path, drive().save(Vec::new()).unwrap()).unwrap();
    let mut parts = ServedParts::new(drive(), empty());
    state::restore(&mut parts, &path).unwrap();
    assert_eq!(parts.power, PowerHistory::default());
    fs::remove_file(&path).unwrap();
}

#[test]
fn states_of_others_and_damaged_ones_are_refused() {
    let path = scratch("state-bad");
    let parts = used(empty());
    state::save(&parts, &path).unwrap();
    let other = drive_with("command_time = \"2 us\"", "command_time = \"3 us\"");
    assert!(refusal(other, &path).contains("saved by a different device"));
    let good = fs::read(&path).unwrap();
    let (of_drive, of_contents) = bytes(&parts);
    let end = good.len() - of_contents.len();
    for at in [100, of_drive.len() + 4, of_drive.len() + 40, end - 10, end + 100, good.len() - 9] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&path, bad).unwrap();
        assert!(!refusal(drive(), &path).is_empty(), "byte {at}");
    }
    fs::write(&path, b"short").unwrap();
    assert!(!refusal(drive(), &path).is_empty());
    fs::remove_file(&path).unwrap();
    let nowhere = path.join("nowhere");
    assert!(state::save(&parts, &nowhere).is_err() && !nowhere.exists());
}
