//! What a drive loses if its power is cut after so many writes since the last flush.

use writecliff_base::{Nanos, Prng, StreamId};
use writecliff_host_interface::{Command, Content, Operation};
use writecliff_ssd::{DeviceConfig, Ssd, Volatile};

const SLOT: u32 = 4096;
/// Label of the random generator for addresses.
const SEED_LABEL: u64 = 0x6c6f_7373;

/// One cut. Slots are of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Writes confirmed since the last flush.
    pub confirmed: u64,
    /// Of these, writes that were lost.
    pub lost: u64,
    pub torn_units: u64,
    pub interrupted_erases: u64,
    /// Slots that the capacitors let the drive program, and how long they had to last.
    pub saved: u64,
    pub hold_up: Nanos,
    pub rebuild: Nanos,
    /// From the first write to the cut.
    pub elapsed: Nanos,
}

/// Cuts the power of one drive after each of `writes` random writes of 4 KiB with `queue_depth`
/// outstanding, in the moment in which the last one is confirmed; before each run there is a flush.
///
/// # Errors
/// Returns why the drive's power cannot be cut.
pub fn losses(
    config: DeviceConfig,
    seed: u64,
    queue_depth: u32,
    writes: &[u64],
) -> Result<Vec<Loss>, String> {
    let slots = u64::from(config.ftl.user_slots);
    let mut ssd = Ssd::<Volatile>::recording(config).map_err(|e| e.to_string())?;
    if let Some(reason) = ssd.refuses_power_cut() {
        return Err(reason.to_owned());
    }
    let mut random = Prng::derive(seed, SEED_LABEL);
    Ok(writes.iter().map(|&count| loss(&mut ssd, &mut random, slots, queue_depth, count)).collect())
}

fn loss(
    ssd: &mut Ssd<Volatile>,
    random: &mut Prng,
    slots: u64,
    queue_depth: u32,
    count: u64,
) -> Loss {
    let now = ssd.now();
    ssd.submit(now, command(Operation::Flush, 0, 0));
    while ssd.step(Nanos::MAX).is_none() {}
    let started = ssd.now();
    let mut next = |ssd: &mut Ssd<Volatile>, at| {
        ssd.submit(at, command(Operation::Write, random.below(slots) * u64::from(SLOT), SLOT));
    };
    for _ in 0..queue_depth {
        next(ssd, started);
    }
    let mut confirmed = 0;
    while confirmed < count {
        if let Some(done) = ssd.step(Nanos::MAX) {
            confirmed += 1;
            if confirmed < count {
                next(ssd, done.at);
            }
        }
    }
    let elapsed = ssd.now() - started;
    let cut = ssd.cut_power();
    Loss {
        confirmed,
        // What was in the buffer had been confirmed before it got there, or with it.
        lost: if ssd.write_cache() { cut.lost_slots.min(confirmed) } else { 0 },
        torn_units: cut.torn.len() as u64,
        interrupted_erases: u64::from(cut.interrupted_erases),
        saved: cut.saved_slots,
        hold_up: cut.hold_up,
        rebuild: cut.rebuild.total(),
        elapsed,
    }
}

fn command(operation: Operation, offset: u64, length: u32) -> Command {
    let (content, stream) = (Content::INCOMPRESSIBLE, StreamId::DEFAULT);
    Command { operation, offset, length, content, stream, queue: 0, tag: 0 }
}
