//! A served drive and its interface to the transports.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};
use writecliff_base::{Bytes, Nanos, SECTOR_BYTES, SLOT_BYTES};
use writecliff_contents::{Contents, ContentsError};
use writecliff_host_interface::Operation;
use writecliff_measure::Histogram;
use writecliff_nvme::{ErrorEntry, ErrorLog};
use writecliff_runner::{AnyConfig, AnyDrive};

use crate::clock::{Alarm, Clock};
use crate::core::{Client, Core};
use crate::journal::{Journal, Record};
use crate::request::{Done, Request, Tag};
use crate::statistics::{Life, Recent, Snapshot};
use crate::trace::Trace;

pub(crate) mod power;
mod session;

use power::{OpenSessions, PowerCut, undo_limit};
pub use session::{Session, SessionBatch};

/// Speed of the drive clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timing {
    /// One nanosecond of drive time takes `slow_down` nanoseconds of wall time; at least 1.
    #[allow(missing_docs, reason = "the variant defines it")]
    Real { slow_down: f64 },
    /// The drive state changes, but drive time does not advance, and requests complete immediately.
    Fast,
}

/// A served drive. Clones share the drive.
#[derive(Clone)]
pub struct Served {
    shared: Arc<Shared>,
}

/// State that all clones share.
///
/// Locks are acquired in the order core, queue of an [`crate::Outbox`], contents. No other lock is
/// acquired while one of the remaining mutexes is held.
struct Shared {
    core: Mutex<Core>,
    contents: RwLock<Contents>,
    alarm: Alarm,
    lateness: Mutex<Lateness>,
    open_sessions: Mutex<OpenSessions>,
    cuts: Mutex<Vec<PowerCut>>,
    config: AnyConfig,
    clock: Clock,
    capacity: Bytes,
    logical_block: AtomicU64,
    power: PowerHistory,
    errors: Mutex<ErrorLog>,
    refuses_trim: Option<&'static str>,
    /// `true` once the drive has become read-only.
    is_read_only: AtomicBool,
    /// Number of purges, which changes only under the lock of the contents.
    purges: AtomicU64,
    next_session: AtomicU32,
    sessions: AtomicUsize,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Shared {
    /// Returns the power history including the power cuts; each cut is followed by a power-up.
    fn power_history(&self) -> PowerHistory {
        let cuts = locked(&self.cuts).len() as u64;
        let PowerHistory { cycles, unsafe_shutdowns } = self.power;
        PowerHistory { cycles: cycles + cuts, unsafe_shutdowns: unsafe_shutdowns + cuts }
    }
}

/// Delay between the due time of completions and their transmission.
#[derive(Default)]
struct Lateness {
    all: Histogram,
    /// Lateness since the last call to `recent()`.
    recent: Histogram,
}

/// Components of a served drive, before and after serving.
pub struct ServedParts {
    /// The simulated drive.
    pub drive: AnyDrive,
    /// Contents, whose size equals the drive's capacity.
    pub contents: Contents,
    /// Logical block size of the current format, one of [`LOGICAL_BLOCKS`].
    pub logical_block: Bytes,
    /// Number of power-ups before the drive is served.
    pub power: PowerHistory,
    pub(crate) life: Life,
    /// Error log of the NVMe controller.
    pub errors: ErrorLog,
    /// Journal of the state file; see [`crate::state::open`].
    pub(crate) journal: Option<Journal>,
}

/// Power history of the drive, as in SMART. Starting to serve a drive counts as a power-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerHistory {
    /// Number of power-ups.
    pub cycles: u64,
    /// Number of power losses without a shutdown notification.
    pub unsafe_shutdowns: u64,
}

/// Supported logical block sizes; a new drive uses the first.
pub const LOGICAL_BLOCKS: [Bytes; 2] = [Bytes(SECTOR_BYTES), Bytes(SLOT_BYTES)];

impl ServedParts {
    /// Returns a drive with its contents, formatted like a new drive.
    pub fn new(drive: AnyDrive, contents: Contents) -> Self {
        let (power, life) = (PowerHistory::default(), Life::before(&drive));
        let (logical_block, errors, journal) = (LOGICAL_BLOCKS[0], ErrorLog::default(), None);
        Self { drive, contents, logical_block, power, life, errors, journal }
    }
}

const FAILED: &str = "the simulated drive has failed";

/// Locks a mutex whose state is consistent even after its holder panicked.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Served {
    /// Starts to serve a drive.
    pub fn new(parts: ServedParts, timing: Timing) -> Self {
        let ServedParts { mut drive, mut contents, logical_block, power, .. } = parts;
        let config = drive.any_config();
        let capacity = config.user_capacity();
        assert_eq!(contents.capacity(), capacity, "contents of another drive");
        let undo_bytes = undo_limit(&mut drive, timing);
        let (refuses_trim, is_read_only) = (drive.refuses_trim(), drive.is_read_only());
        let mut core = Core::new(drive, timing, contents.keep_undo(undo_bytes), undo_bytes);
        (core.life, core.journal) = (parts.life, parts.journal);
        let shared = Arc::new(Shared {
            clock: core.clock,
            refuses_trim,
            is_read_only: AtomicBool::new(is_read_only),
            core: Mutex::new(core),
            contents: RwLock::new(contents),
            alarm: Alarm::new(),
            lateness: Mutex::default(),
            open_sessions: Mutex::default(),
            cuts: Mutex::default(),
            config,
            capacity,
            logical_block: AtomicU64::new(logical_block.0),
            power: PowerHistory { cycles: power.cycles + 1, ..power },
            errors: Mutex::new(parts.errors),
            purges: AtomicU64::new(0),
            next_session: AtomicU32::new(0),
            sessions: AtomicUsize::new(0),
            thread: Mutex::new(None),
        });
        let served = Self { shared };
        let timed = served.clone();
        let thread = std::thread::Builder::new().name("drive".to_owned());
        let thread = thread.spawn(move || timed.keep_time()).expect("a thread can be started");
        *locked(&served.shared.thread) = Some(thread);
        served
    }

    /// Runs the drive's own thread, which does due work while no other thread submits requests.
    fn keep_time(&self) {
        while self.shared.alarm.wait(&self.shared.clock) {
            drop(self.locked());
        }
    }

    /// Lets the calling thread, which is awake, do the drive thread's work until the value is
    /// dropped. Returns `None` if another thread is already doing this work.
    pub(crate) fn attend(&self) -> Option<DriveDriver> {
        self.shared.alarm.attend().then(|| DriveDriver { served: self.clone() })
    }

    /// Returns the locked drive. After a panic in the simulator, the drive state is invalid, so
    /// every caller also panics. The panic hook runs only for the first panic.
    fn core(&self) -> MutexGuard<'_, Core> {
        let core = self.shared.core.lock();
        core.unwrap_or_else(|_| resume_unwind(Box::new(FAILED)))
    }

    /// Returns the drive, simulated up to the current time, with its lock held.
    fn locked(&self) -> Batch<'_> {
        let arrived = self.shared.clock.wall();
        let mut batch = Batch { served: self, core: Some(self.core()), arrived };
        let now = self.shared.clock.drive_time(arrived);
        let core = batch.core();
        self.cut_in_time(core, now);
        core.advance(now);
        batch
    }

    /// Returns the drive configuration.
    pub fn config(&self) -> &AnyConfig {
        &self.shared.config
    }

    /// Returns the capacity that clients can address.
    pub fn capacity(&self) -> Bytes {
        self.shared.capacity
    }

    /// Returns the logical block size, which NBD ignores because its requests are in bytes.
    pub fn logical_block(&self) -> Bytes {
        Bytes(self.shared.logical_block.load(Ordering::Relaxed))
    }

    pub(crate) fn set_logical_block(&self, size: Bytes) {
        self.locked().core().note(Record::Format(size));
        self.shared.logical_block.store(size.0, Ordering::Relaxed);
    }

    pub(crate) fn error_log(&self) -> ErrorLog {
        locked(&self.shared.errors).clone()
    }

    pub(crate) fn log_error(&self, entry: ErrorEntry) {
        locked(&self.shared.errors).add(entry);
        self.locked().core().note(Record::Error(entry));
    }

    /// Returns the reason why the drive does not support TRIM; `None` if it supports TRIM.
    pub fn refuses_trim(&self) -> Option<&'static str> {
        self.shared.refuses_trim
    }

    /// Returns the current contents of a range.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), ContentsError> {
        let contents = self.shared.contents.read().unwrap_or_else(PoisonError::into_inner);
        contents.read(offset, into)
    }

    fn contents(&self) -> RwLockWriteGuard<'_, Contents> {
        self.shared.contents.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores data without a request to the drive.
    pub fn store(&self, offset: u64, data: &[u8]) -> Result<(), ContentsError> {
        self.contents().write(offset, data)
    }

    /// Stores zeros at an offset.
    pub fn store_zeros(&self, offset: u64, length: u64) -> Result<(), ContentsError> {
        self.contents().deallocate(offset, length)
    }

    /// Calls `administer` with the drive, simulated up to the current time. A caller that needs an
    /// idle drive must first check [`Snapshot::outstanding`] or wait for its own requests.
    pub fn with_drive<T>(&self, administer: impl FnOnce(&mut AnyDrive) -> T) -> T {
        self.administer(Core::settle, administer)
    }

    /// Calls `administer` with a drive without outstanding requests; the drive first completes
    /// them, regardless of their completion times.
    pub fn with_drained_drive<T>(&self, administer: impl FnOnce(&mut AnyDrive) -> T) -> T {
        self.administer(Core::drain, administer)
    }

    fn administer<T>(&self, prepare: fn(&mut Core), ask: impl FnOnce(&mut AnyDrive) -> T) -> T {
        let mut batch = self.locked();
        let core = batch.core();
        prepare(core);
        let answer = ask(&mut core.drive);
        core.catch_up();
        answer
    }

    /// Makes all written data durable, and lets the drive complete its requests.
    pub(crate) fn shut_down(&self) {
        let mut batch = self.locked();
        let core = batch.core();
        core.flush_all();
        core.drive.quiesce();
        core.catch_up();
    }

    /// Purges the drive and its data after all outstanding requests have completed. Writes whose
    /// data are stored but that have not been submitted are rejected later.
    pub fn purge(&self) -> Result<(), ContentsError> {
        let mut batch = self.locked();
        let arrived = batch.arrived;
        let core = batch.core();
        core.drain();
        core.drive.purge();
        core.note(Record::Purge);
        core.catch_up();
        let mut contents = self.contents();
        self.shared.purges.fetch_add(1, Ordering::Relaxed);
        let length = self.shared.capacity.0;
        contents.deallocate(0, length)?;
        core.durable_all(&mut contents);
        let purge = Request::new(Tag::NONE, Operation::Trim, 0, length);
        core.keep(u32::MAX, &purge, arrived);
        Ok(())
    }

    /// Returns the current statistics.
    pub fn snapshot(&self) -> Snapshot {
        let mut batch = self.locked();
        let core = batch.core();
        let now = core.drive.now();
        let meters = core.drive.meters(now);
        let contents = self.shared.contents.read().unwrap_or_else(PoisonError::into_inner);
        Snapshot {
            wall: self.shared.clock.wall(),
            drive_time: now,
            slow_down: self.shared.clock.slow_down,
            operations: core.operations.clone(),
            lateness: locked(&self.shared.lateness).all.clone(),
            counters: core.drive.counters(),
            data_placement: core.drive.data_placement_status(),
            streams: core.by_stream.clone(),
            moved: core.moved_by_stream(),
            power: self.shared.power_history(),
            life: core.life,
            error_entries: locked(&self.shared.errors).count,
            free_units: meters.free_units,
            celsius: meters.celsius,
            sessions: self.shared.sessions.load(Ordering::Relaxed),
            outstanding: core.outstanding(),
            used: contents.used().unwrap_or_default(),
        }
    }

    /// Returns the statistics since the last call.
    pub fn recent(&self) -> Recent {
        let operations = std::mem::take(&mut self.core().recent);
        let lateness = std::mem::take(&mut locked(&self.shared.lateness).recent);
        Recent { operations, lateness }
    }

    /// Starts recording a trace of client requests; [`Self::take_trace`] must be called frequently.
    pub fn keep_trace(&self) {
        self.core().trace.get_or_insert_default();
    }

    /// Returns the requests since the last call, in submission order. The memory of `empty` is
    /// reused for subsequent requests.
    pub fn take_trace(&self, empty: Trace) -> Option<Trace> {
        let trace = &mut self.core().trace;
        trace.as_mut().map(|trace| std::mem::replace(trace, empty))
    }

    /// Rejects further requests and lets the drive complete the outstanding requests.
    pub fn stop(&self) {
        let mut batch = self.locked();
        batch.core().stopped = true;
        batch.core().drain();
        drop(batch);
        self.shared.alarm.stop();
        let thread = locked(&self.shared.thread).take();
        if let Some(thread) = thread {
            thread.join().expect("the drive's thread does not panic");
        }
    }

    /// Returns the drive and its contents after [`Self::stop`], or `Err` while sessions share it.
    pub fn into_parts(self) -> Result<ServedParts, Self> {
        let shared = Arc::try_unwrap(self.shared).map_err(|shared| Self { shared })?;
        let power = shared.power_history();
        let core = shared.core.into_inner().expect("the simulated drive has not failed");
        let errors = shared.errors.into_inner().unwrap_or_else(PoisonError::into_inner);
        let contents = shared.contents.into_inner().unwrap_or_else(PoisonError::into_inner);
        let logical_block = Bytes(shared.logical_block.into_inner());
        let Core { drive, life, journal, .. } = core;
        Ok(ServedParts { drive, contents, logical_block, power, life, errors, journal })
    }

    /// Notifies clients of completions, and measures their lateness.
    fn notify(&self, mut done: Vec<(Client, Done)>) {
        done.sort_by_key(|(client, _)| client.number);
        for of_client in done.chunk_by(|(a, _), (b, _)| a.number == b.number) {
            let replies = &of_client[0].0.replies;
            for (_, done) in of_client {
                replies.completed(done);
            }
            replies.send();
        }
        let sent = self.shared.clock.wall();
        let mut lateness = locked(&self.shared.lateness);
        for (_, done) in &done {
            let late = sent.saturating_sub(done.due).0;
            lateness.all.record(late);
            lateness.recent.record(late);
        }
    }
}

/// Does due work in place of the drive's thread.
pub(crate) struct DriveDriver {
    served: Served,
}

impl DriveDriver {
    /// Does due work; returns `true` if more work is due so soon that the thread should wait.
    pub(crate) fn is_needed(&self) -> bool {
        let Shared { alarm, clock, .. } = &*self.served.shared;
        if alarm.is_due(clock) {
            drop(self.served.locked());
        }
        alarm.is_soon(clock)
    }
}

impl Drop for DriveDriver {
    fn drop(&mut self) {
        self.served.shared.alarm.leave();
    }
}

/// Ends all connections if the simulator panics, so that no client waits forever for a reply.
struct Severing<'a>(&'a Served);

impl Drop for Severing<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.sever_sessions();
        }
    }
}

/// The locked drive. Dropping the lock delivers the completions, except during a panic, when the
/// drive state is inconsistent and the journal does not record the pending requests.
struct Batch<'a> {
    served: &'a Served,
    core: Option<MutexGuard<'a, Core>>,
    arrived: Nanos,
}

impl Batch<'_> {
    fn core(&mut self) -> &mut Core {
        self.core.as_mut().expect("taken only when dropped")
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let _severing = Severing(self.served);
        let Some(mut core) = self.core.take() else { return };
        if std::thread::panicking() {
            return;
        }
        core.write_journal(self.arrived);
        let done = std::mem::take(&mut core.done);
        if core.drive.is_read_only() {
            self.served.shared.is_read_only.store(true, Ordering::Relaxed);
        }
        {
            let mut durable = core.take_durable().peekable();
            if durable.peek().is_some() {
                let mut contents = self.served.contents();
                durable.for_each(|range| range.note(&mut contents));
            }
        }
        if !core.stopped {
            let next = core.next_due();
            self.served.shared.alarm.set(next);
        }
        drop(core);
        if !done.is_empty() {
            self.served.notify(done);
        }
    }
}
