//! Errors while reading and writing traces.

use std::path::Path;

/// A one-line message for the user, with a suggested correction if one is known.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct TraceError {
    /// Problem description, with file and line.
    pub message: String,
    /// Suggested correction; `None` if none is known.
    pub hint: Option<String>,
}

impl TraceError {
    pub(crate) fn new(message: impl Into<String>, hint: Option<String>) -> Self {
        Self { message: message.into(), hint }
    }

    pub(crate) fn io(path: &Path, error: &std::io::Error) -> Self {
        let text = match error.kind() {
            std::io::ErrorKind::NotFound => "no such file".to_owned(),
            std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            _ => error.to_string(),
        };
        Self::new(format!("{}: {text}", path.display()), None)
    }
}
