//! Tests untrusted workload files, which must be read or rejected without a panic.

#[path = "../../base/tests/support/mutate.rs"]
mod mutate;

use mutate::{changes, corpus, mutated};
use proptest::prelude::*;
use writecliff_base::Bytes;
use writecliff_workload::WorkloadFile;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Checks that errors have one line and name the file, and that valid files can be resolved for
    /// a drive of any size.
    #[test]
    fn no_workload_file_does_harm(
        which in any::<prop::sample::Index>(),
        changes in changes(),
        capacity in any::<u64>(),
    ) {
        let texts = corpus("python/writecliff/profiles", ".toml");
        let text = mutated(&texts[which.index(texts.len())], &changes);
        match WorkloadFile::from_toml(&text, "sent.toml") {
            Ok(file) => {
                let json = file.resolved(Bytes(capacity)).to_json();
                prop_assert!(!json.is_empty());
            }
            Err(error) => {
                let message = error.to_string();
                prop_assert!(message.starts_with("sent.toml"), "{message}");
                prop_assert!(!message.contains('\n'), "{message}");
            }
        }
    }
}
