//! A workload file: steps that run on a drive in sequence.

use serde::Serialize;
use writecliff_base::Bytes;

use crate::check::SpecError;
use crate::spec::WorkloadSpec;
use crate::toml_form;

/// A workload file with one or more steps. Python checks the names of preconditions and of limited
/// figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadFile {
    /// Name of the workload in results.
    pub name: String,
    pub(crate) precondition: Option<String>,
    /// Limits on figures of the run, for example `"iops >= 100000"`.
    pub expect: Vec<String>,
    pub(crate) steps: Vec<FileStep>,
}

/// One step of a workload file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileStep {
    pub(crate) workload: WorkloadSpec,
    /// Idle time in ns, which ends with a single read; 0 for a step with I/O.
    pub rest_ns: u64,
    /// `false` if the step only prepares the drive state.
    pub measured: bool,
    /// `true` if the workload is one round, which is repeated until steady state or `max_rounds`.
    pub until_steady: bool,
    pub(crate) max_rounds: u64,
}

impl WorkloadFile {
    /// Parses and validates a TOML workload file (see `toml_form`); `file_name` is used in messages
    /// only.
    pub fn from_toml(text: &str, file_name: &str) -> Result<Self, SpecError> {
        toml_form::read(text, file_name)
    }

    /// Returns the file for a drive of capacity `capacity`, with percentages of the drive converted
    /// to bytes.
    #[must_use]
    pub fn resolved(mut self, capacity: Bytes) -> Self {
        for step in &mut self.steps {
            step.workload = step.workload.resolved(capacity);
        }
        self
    }

    /// Serializes to the JSON that Python's `load_workload` reads.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain fields with text keys always serialise")
    }
}
