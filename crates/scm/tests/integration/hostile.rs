//! Tests untrusted device files, which must be read or rejected without a panic.

use proptest::prelude::*;
use writecliff_scm::{Scm, device_file};

use crate::mutate::{changes, corpus, mutated};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_device_file_does_harm(changes in changes()) {
        let texts = corpus("crates/runner/tests/device_hash", "scm.toml");
        let text = mutated(&texts[0], &changes);
        match device_file::read(&text, "sent.toml") {
            Ok(config) => {
                let _ = Scm::new(config);
            }
            Err(error) => {
                let message = error.to_string();
                prop_assert!(message.starts_with("sent.toml"), "{message}");
                prop_assert!(!message.contains('\n'), "{message}");
            }
        }
    }
}
