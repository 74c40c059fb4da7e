//! Tests of contents: comparison of all storage types with an array, memory use, saving and errors.

use super::*;
use proptest::prelude::*;
use std::path::PathBuf;

const MIB: u64 = 1 << 20;

/// Path of a temporary file, which is removed when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("writecliff-contents-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn plain(capacity: u64) -> Contents {
    Contents::in_memory(Bytes(capacity), MemoryOptions::default())
}

fn compressed(capacity: u64) -> Contents {
    Contents::in_memory(Bytes(capacity), MemoryOptions { compress: true, limit: None })
}

fn all(contents: &Contents) -> Vec<u8> {
    let mut data = vec![0xee; contents.capacity().0 as usize];
    contents.read(0, &mut data).unwrap();
    data
}

#[derive(Clone, Debug)]
enum Action {
    Write { offset: usize, length: usize, fill: u8, noisy: bool },
    Deallocate { offset: usize, length: usize },
}

/// The size is not a multiple of the page size, so the last page is short.
const SMALL: usize = 300 * 1024 + 512;

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let range = (0..SMALL, 0..40_000_usize).prop_map(|(o, l)| (o, l.min(SMALL - o)));
    let write = (range.clone(), 0..4_u8, any::<bool>())
        .prop_map(|((offset, length), fill, noisy)| Action::Write { offset, length, fill, noisy });
    let free = range.prop_map(|(offset, length)| Action::Deallocate { offset, length });
    prop::collection::vec(prop_oneof![3 => write, 1 => free], 1..40)
}

fn bytes(offset: usize, length: usize, fill: u8, noisy: bool) -> Vec<u8> {
    let mut word = (offset * 2_654_435_761 + usize::from(fill)) as u64 | 1;
    let mut next = || {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word as u8
    };
    (0..length).map(|_| if noisy { next() } else { fill }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After any sequence of operations, all storage types hold the same data as a plain array,
    /// even after a save and a restore to another type.
    #[test]
    fn contents_are_an_array(actions in actions()) {
        let scratch = Scratch::new("array");
        let file = Contents::in_file(Bytes(SMALL as u64), &scratch.0).unwrap();
        let mut kinds = [plain(SMALL as u64), compressed(SMALL as u64), file];
        let mut model = vec![0; SMALL];
        for action in actions {
            match action {
                Action::Write { offset, length, fill, noisy } => {
                    let data = bytes(offset, length, fill, noisy);
                    model[offset..offset + length].copy_from_slice(&data);
                    for kind in &mut kinds {
                        kind.write(offset as u64, &data).unwrap();
                    }
                }
                Action::Deallocate { offset, length } => {
                    model[offset..offset + length].fill(0);
                    for kind in &mut kinds {
                        kind.deallocate(offset as u64, length as u64).unwrap();
                    }
                }
            }
        }
        let saved: Vec<Vec<u8>> = kinds.iter().map(|kind| kind.save(Vec::new()).unwrap()).collect();
        for (kind, saved) in kinds.iter_mut().zip([&saved[1], &saved[2], &saved[0]]) {
            prop_assert!(all(kind) == model);
            kind.write(0, &vec![1; SMALL]).unwrap();
            kind.restore(&saved[..]).unwrap();
            prop_assert!(all(kind) == model);
        }
        prop_assert!(saved[0] == saved[1] && saved[1] == saved[2], "one form, whatever the kind");
    }
}

#[test]
fn what_is_empty_takes_no_space() {
    for mut contents in [plain(64 * MIB), compressed(64 * MIB)] {
        let empty = contents.used().unwrap();
        contents.write(5 * MIB, &vec![0; 9_000]).unwrap();
        assert_eq!(contents.used().unwrap(), empty, "zeros are not kept");
        contents.write(5 * MIB + 100, &vec![7; 3 * MIB as usize]).unwrap();
        assert!(contents.used().unwrap() > empty);
        contents.deallocate(0, 64 * MIB).unwrap();
        assert_eq!(contents.used().unwrap(), empty);
        contents.write(0, &[1; 512]).unwrap();
        contents.deallocate(0, 512).unwrap();
        assert_eq!(contents.used().unwrap(), empty, "a page of zeros is not kept either");
    }
}

#[test]
fn compressible_data_take_less() {
    let data: Vec<u8> = (0..MIB).map(|n| (n / 64) as u8).collect();
    let (mut loose, mut tight) = (plain(MIB), compressed(MIB));
    loose.write(0, &data).unwrap();
    tight.write(0, &data).unwrap();
    assert!(tight.used().unwrap().0 * 4 < loose.used().unwrap().0);
    assert!(all(&tight) == data);
}

#[test]
fn a_limit_is_kept_and_named() {
    let options = MemoryOptions { compress: false, limit: Some(Bytes(2 * MIB)) };
    let mut contents = Contents::in_memory(Bytes(64 * MIB), options);
    let error = contents.write(0, &vec![9; 3 * MIB as usize]).unwrap_err();
    assert!(error.to_string().contains("exceed the memory limit of 2 MiB"), "{error}");
    assert!(contents.used().unwrap() <= Bytes(2 * MIB));
    contents.write(0, &vec![8; MIB as usize]).unwrap();
    contents.deallocate(0, MIB).unwrap();
    contents.write(32 * MIB, &vec![8; MIB as usize / 2]).unwrap();
}

/// Returns the memory that this process uses, in bytes.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// A 960 GB drive with 4 GB of data fits in 8 GB of memory in the worst case, when the data are
/// single pages at random positions. The test uses 1/64 of the data because memory use is
/// proportional to the number of pages and their tables.
#[test]
fn a_large_drive_in_little_memory() {
    const DATA: u64 = (4_000_000_000 >> 6) / 4096 * 4096;
    let before = resident();
    let mut contents = plain(960_000_000_000);
    let empty = contents.used().unwrap().0;
    let stride = contents.capacity().0 / (DATA / 4096) / 4096 * 4096;
    for page in 0..DATA / 4096 {
        contents.write(page * stride, &[0x5a; 4096]).unwrap();
    }
    let used = contents.used().unwrap().0;
    let in_full = empty + (used - empty) * 64;
    assert!(in_full < 4_100_000_000, "{in_full} bytes for 4 GB");
    let grown = resident() - before;
    assert!(grown < used + used / 4, "{grown} bytes resident, {used} counted");
}

#[test]
fn what_is_out_of_range_is_refused() {
    let mut contents = plain(MIB);
    let mut into = [0; 2];
    for offset in [MIB - 1, MIB, u64::MAX, u64::MAX - 1] {
        assert!(matches!(
            contents.read(offset, &mut into),
            Err(ContentsError::OutOfRange { capacity: MIB, .. })
        ));
        assert!(contents.write(offset, &into).is_err());
        assert!(contents.deallocate(offset, 2).is_err());
    }
    assert!(contents.deallocate(1, u64::MAX).is_err());
}

#[test]
fn a_file_keeps_its_data_and_refuses_another_size() {
    let scratch = Scratch::new("kept");
    let mut contents = Contents::in_file(Bytes(8 * MIB), &scratch.0).unwrap();
    contents.write(3 * MIB, b"kept").unwrap();
    contents.sync().unwrap();
    assert!(contents.used().unwrap() < Bytes(MIB), "the file is sparse");
    drop(contents);
    let mut read = [0; 4];
    Contents::in_file(Bytes(8 * MIB), &scratch.0).unwrap().read(3 * MIB, &mut read).unwrap();
    assert_eq!(&read, b"kept");
    let error = Contents::in_file(Bytes(MIB), &scratch.0).err().unwrap().to_string();
    assert!(error.contains("has 8388608 bytes, but the drive has 1048576"), "{error}");
}

#[test]
fn damaged_or_foreign_contents_are_refused() {
    let mut contents = plain(MIB);
    contents.write(0, &bytes(1, 9_000, 1, true)).unwrap();
    let saved = contents.save(Vec::new()).unwrap();
    for at in [9, saved.len() / 2, saved.len() - 12] {
        let mut bad = saved.clone();
        bad[at] ^= 1;
        assert!(plain(MIB).restore(&bad[..]).is_err(), "byte {at}");
    }
    assert!(plain(MIB).restore(&saved[..saved.len() / 2]).is_err());
    let error = plain(2 * MIB).restore(&saved[..]).unwrap_err().to_string();
    assert_eq!(error, "saved contents have 1048576 bytes, but the drive has 2097152");
}

#[test]
fn a_mirror_has_every_change() {
    let capacity = 3 * MIB + 512;
    let file = Scratch::new("mirror");
    let mut contents = compressed(capacity);
    contents.write(0, &vec![1; 20_000]).unwrap();
    contents.mirror_to(&file.0).unwrap();
    contents.write(capacity - 512, &[2; 512]).unwrap();
    contents.write(MIB + 100, &[3; 9000]).unwrap();
    contents.deallocate(2048, 6144).unwrap();
    // A process that is killed at this point would leave the file in this state.
    let mut restored = plain(capacity);
    restored.write(2 * MIB, &[9; 4096]).unwrap();
    restored.restore_mirror(&file.0).unwrap();
    assert!(all(&restored) == all(&contents));
    restored.write(MIB, &[4; 4096]).unwrap();
    restored.keep_undo(Bytes(MIB));
    restored.write(0, &[5; 4096]).unwrap();
    restored.power_cut(Loses::All).unwrap();
    let mut again = plain(capacity);
    again.restore_mirror(&file.0).unwrap();
    assert!(all(&again) == all(&restored));
    let mut first = [0; 1];
    again.read(0, &mut first).unwrap();
    assert_eq!(first, [1], "what a power cut undoes, it undoes in the mirror");
    assert!(plain(MIB).restore_mirror(&file.0).is_err(), "another capacity");
}
