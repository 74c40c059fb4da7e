//! Provides the unpacked bytes of a trace file, one member at a time.

mod blktrace_files;
pub(crate) mod packed;
mod tar;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::TraceError;

use packed::{Bytes, BytesRead, unpacked};
use tar::{MemberBytes, Tar, is_tar};

/// A file with one trace, or an archive of traces.
pub(crate) struct Source {
    path: PathBuf,
    read: BytesRead,
    /// Number of bytes in the file, or in all files that are read as one trace.
    size_bytes: u64,
    tar: Option<Tar>,
    /// The file itself if it is not an archive, until it is returned.
    only: Option<Bytes>,
    /// Archive member to read; `None` to read all members.
    member: Option<String>,
}

pub(crate) struct Member {
    /// Name of the member in the archive; empty for a plain file.
    pub(crate) name: String,
    pub(crate) bytes: Bytes,
}

impl Source {
    pub(crate) fn open(path: &Path, member: Option<&str>) -> Result<Self, TraceError> {
        let io = |error: std::io::Error| TraceError::io(path, &error);
        let kind = std::fs::metadata(path).map_err(io)?;
        if !kind.is_file() {
            let what = if kind.is_dir() { "a folder" } else { "not a regular file" };
            let hint = "specify a trace file, or an archive (tar) of trace files".to_owned();
            return Err(TraceError::new(format!("{}: is {what}", path.display()), Some(hint)));
        }
        if kind.len() == 0 {
            return Err(TraceError::new(format!("{}: is empty", path.display()), None));
        }
        let file = File::open(path).map_err(io)?;
        let read = BytesRead::default();
        let (bytes, size_bytes): (Bytes, u64) = if let Some(files) = blktrace_files::beside(path) {
            let merged = blktrace_files::merged(&files, &read).map_err(io)?;
            let size_bytes = merged.size_bytes;
            (Box::new(merged), size_bytes)
        } else {
            let bytes = unpacked(read.of(file), &read);
            (bytes.map_err(|error| unpacking(path, &error))?, kind.len())
        };
        let (bytes, tar) = is_tar(bytes).map_err(|error| unpacking(path, &error))?;
        if !tar && member.is_some() {
            let message =
                format!("{}: the file is not an archive, so it has no members", path.display());
            return Err(TraceError::new(message, None));
        }
        let member = member.map(str::to_owned);
        let (tar, only) = if tar { (Some(Tar::new(bytes)), None) } else { (None, Some(bytes)) };
        Ok(Self { path: path.to_owned(), read, size_bytes, tar, only, member })
    }

    /// Returns the next trace; `None` at the end. The previous trace can then no longer be read.
    pub(crate) fn next(&mut self) -> Result<Option<Member>, TraceError> {
        if let Some(bytes) = self.only.take() {
            return Ok(Some(Member { name: String::new(), bytes }));
        }
        let Some(tar) = &mut self.tar else { return Ok(None) };
        loop {
            let next = tar.next().map_err(|error| unpacking(&self.path, &error))?;
            let Some(name) = next else { return Ok(None) };
            if self.member.as_ref().is_some_and(|wanted| *wanted != name) {
                continue;
            }
            let bytes: Box<dyn Read + Send> = Box::new(MemberBytes(tar.clone()));
            let bytes =
                unpacked(bytes, &self.read).map_err(|error| unpacking(&self.path, &error))?;
            return Ok(Some(Member { name, bytes }));
        }
    }

    /// Returns the number of packed bytes read from the file, and the file size. If a file grows
    /// during reading, the number of bytes read exceeds the size.
    pub(crate) fn read_of_file(&self) -> (u64, u64) {
        (self.read.count(), self.size_bytes)
    }

    pub(crate) fn is_archive(&self) -> bool {
        self.tar.is_some()
    }
}

/// Returns the unpacking error, which is most often a truncated file.
pub(crate) fn unpacking(path: &Path, error: &std::io::Error) -> TraceError {
    let text = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the packed data are truncated".to_owned(),
        _ => error.to_string(),
    };
    TraceError::new(format!("{}: {text}", path.display()), None)
}
