//! Tests untrusted device files and saved states: they are read or rejected, and never cause a
//! panic.

use proptest::prelude::*;
use writecliff_ssd::{Drive, device_file};

use crate::common::{self, SLC, drive};
use crate::mutate::{changes, corpus, mutated};

/// Returns the device files to mutate: the drive of these tests and the presets.
fn texts() -> Vec<String> {
    let mut texts = corpus("python/writecliff/devices", "tlc-120.toml");
    texts.extend(corpus("python/writecliff/devices", "tlc-960.toml"));
    texts.push(common::DRIVE.to_owned());
    texts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Checks that an error has one line and names the file. Checks that valid files can also be
    /// scaled down, as quick tests require.
    #[test]
    fn no_device_file_does_harm(which in any::<prop::sample::Index>(), changes in changes()) {
        let texts = texts();
        let text = mutated(&texts[which.index(texts.len())], &changes);
        if let Err(error) = device_file::read(&text, "sent.toml", 1) {
            let message = error.to_string();
            prop_assert!(message.starts_with("sent.toml"), "{message}");
            prop_assert!(!message.contains('\n'), "{message}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Tests that a state that was changed in any way is rejected, and that the drive stays intact.
    #[test]
    fn no_state_does_harm(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
        more in prop::collection::vec(any::<u8>(), 0..9),
        slc in any::<bool>(),
    ) {
        let changes: &[(&str, &str)] = if slc { &SLC } else { &[] };
        let whole = drive(changes).save(Vec::new()).unwrap();
        let mut state = whole.clone();
        for (at, flip) in &flips {
            let at = at.index(state.len());
            state[at] ^= flip;
        }
        if let Some(cut) = &cut {
            let at = cut.index(state.len());
            state.splice(at.., more.iter().copied());
        }
        let mut other = drive(changes);
        let restored = other.restore_from(&mut state.as_slice());
        if state != whole && !state.starts_with(&whole) {
            prop_assert!(restored.is_err());
        }
    }
}
