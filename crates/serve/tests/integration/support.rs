//! Served drives and sockets for tests.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use writecliff_contents::{Contents, MemoryOptions};
use writecliff_runner::{AnyDrive, Device};
use writecliff_serve::{Address, Listener, Served, ServedParts, Timing, nbd};

pub(crate) const CAPACITY: u64 = 64 << 20;
pub(crate) const REAL: Timing = Timing::Real { slow_down: 1.0 };

/// Returns the test drive, with one line of its device file replaced.
pub(crate) fn drive_with(line: &str, by: &str) -> AnyDrive {
    let text = include_str!("drive.toml").replace(line, by);
    AnyDrive::new(Device::read(&text, "drive.toml").unwrap().with_seed(1), false).unwrap()
}

/// Returns a drive that records the changes undone by a power cut, with one line of its device file
/// replaced.
pub(crate) fn losing_power(line: &str, by: &str) -> AnyDrive {
    losing_power_and(&[(line, by)])
}

/// Returns such a drive with several lines replaced.
pub(crate) fn losing_power_and(changes: &[(&str, &str)]) -> AnyDrive {
    let text = include_str!("drive.toml").to_owned();
    let text = changes.iter().fold(text, |text, (line, by)| text.replace(line, by));
    let device = Device::read(&text, "drive.toml").unwrap();
    AnyDrive::losing_power(device.with_seed(1)).unwrap()
}

pub(crate) fn drive() -> AnyDrive {
    drive_with("", "")
}

pub(crate) fn disk() -> AnyDrive {
    let text = include_str!("../../../runner/tests/device_hash/disk.toml");
    AnyDrive::new(Device::read(text, "disk.toml").unwrap().with_seed(1), false).unwrap()
}

pub(crate) fn scm() -> AnyDrive {
    let text = include_str!("../../../runner/tests/device_hash/scm.toml");
    AnyDrive::new(Device::read(text, "scm.toml").unwrap().with_seed(1), false).unwrap()
}

pub(crate) fn serve(drive: AnyDrive, timing: Timing) -> Served {
    let capacity = drive.any_config().user_capacity();
    let contents = Contents::in_memory(capacity, MemoryOptions::default());
    Served::new(ServedParts::new(drive, contents), timing)
}

/// Returns a path for a file of a test.
pub(crate) fn scratch(name: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("writecliff-{name}-{}-{number}", std::process::id()))
}

/// A served drive with an NBD listener on a Unix socket.
pub(crate) struct Server {
    pub served: Served,
    pub path: PathBuf,
    listener: Option<Listener>,
}

impl Server {
    pub(crate) fn new(timing: Timing) -> Self {
        Self::of(drive(), timing)
    }

    pub(crate) fn of(drive: AnyDrive, timing: Timing) -> Self {
        let path = scratch("socket");
        let served = serve(drive, timing);
        let address = Address::Unix(path.clone());
        let listener = Listener::new(&served, &address, nbd::connection).unwrap();
        Self { served, path, listener: Some(listener) }
    }

    /// Ends all connections, stops the drive and checks its invariants.
    pub(crate) fn end(mut self) -> AnyDrive {
        self.served.stop();
        drop(self.listener.take());
        assert!(!self.path.exists(), "the socket is removed");
        let parts =
            self.served.into_parts().unwrap_or_else(|_| panic!("the drive is still in use"));
        parts.drive.check_invariants().unwrap();
        parts.drive
    }
}

/// Wait timeout: longer than a busy machine needs, even for a backtrace.
pub(crate) const WAIT_LIMIT: Duration = Duration::from_secs(300);

/// Waits until `condition` returns `true`, for at most [`WAIT_LIMIT`].
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < WAIT_LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns `true` in a process that runs only the test `name`; otherwise, runs the test in such a
/// process and waits for it. Used by tests that measure the memory of their process, which
/// concurrent tests would otherwise share.
pub(crate) fn is_alone(name: &str) -> bool {
    const MARK: &str = "WRITECLIFF_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(MARK, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{name}, in a process of its own: {status}");
    false
}
