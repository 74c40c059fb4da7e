//! Tests untrusted device files, which must be read or rejected without a panic.

use proptest::prelude::*;
use writecliff_disk::{Disk, device_file};

use crate::mutate::{changes, corpus, mutated};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_device_file_does_harm(which in any::<prop::sample::Index>(), changes in changes()) {
        let texts = corpus("python/writecliff/devices", "00.toml");
        let text = mutated(&texts[which.index(texts.len())], &changes);
        match device_file::read(&text, "sent.toml", 1) {
            Ok(config) => {
                let _ = Disk::new(config);
            }
            Err(error) => {
                let message = error.to_string();
                prop_assert!(message.starts_with("sent.toml"), "{message}");
                prop_assert!(!message.contains('\n'), "{message}");
            }
        }
    }
}
