//! Data that a drive loses in a power cut after a number of writes since the last flush.

use std::collections::BTreeMap;

use writecliff_base::{Nanos, Prng, SLOT_BYTES};
use writecliff_host_interface::{Command, Drive, Operation};
use writecliff_ssd::{DeviceConfig, Ssd, Volatile};

/// Label of the random generator for addresses.
const SEED_LABEL: u64 = 0x6c6f_7373;

/// Effects of one power cut, in slots of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Writes acknowledged since the last flush.
    pub confirmed: u64,
    /// Acknowledged writes that were lost.
    pub lost: u64,
    /// Program units whose programming was interrupted, and which are unreadable.
    pub torn_units: u64,
    /// Block erases that did not finish.
    pub interrupted_erases: u64,
    /// Slots programmed with capacitor power.
    pub saved: u64,
    /// Duration for which the capacitors powered the drive.
    pub hold_up: Nanos,
    /// Time from power-up until the drive accepts commands.
    pub rebuild: Nanos,
    /// Time from the first write to the power cut.
    pub elapsed: Nanos,
}

/// Cuts the power of a drive once for each number in `writes`: after that many random 4 KiB writes
/// at queue depth `queue_depth`, when the last write completes. Each run starts with a flush.
///
/// # Errors
/// Returns the reason why the drive's power cannot be cut.
pub fn losses(
    config: DeviceConfig,
    seed: u64,
    queue_depth: u32,
    writes: &[u64],
) -> Result<Vec<Loss>, String> {
    // The capacity may end within the last slot.
    let slots = config.user_capacity.0 / SLOT_BYTES;
    let mut ssd = Ssd::<Volatile>::recording(config).map_err(|e| e.to_string())?;
    if let Some(reason) = ssd.storage().refuses_power_cut(ssd.config()) {
        return Err(reason.to_owned());
    }
    let mut random = Prng::derive(seed, SEED_LABEL);
    Ok(writes.iter().map(|&count| loss(&mut ssd, &mut random, slots, queue_depth, count)).collect())
}

/// Writes acknowledged to the host, and writes reported as durable by the drive.
#[derive(Default)]
struct Ledger {
    /// Number and slot of the outstanding write, by tag.
    under_way: Vec<(u64, u32)>,
    /// Numbers of the acknowledged writes of each slot.
    confirmed: BTreeMap<u32, Vec<u64>>,
    /// Number below which a slot's writes, or the writes that replaced them, are on flash.
    durable_below: BTreeMap<u32, u64>,
    next: u64,
}

impl Ledger {
    fn submitted(&mut self, ssd: &mut Ssd<Volatile>, tag: u32, slot: u32) {
        let index = tag as usize;
        if index >= self.under_way.len() {
            self.under_way.resize(index + 1, (0, 0));
        }
        self.under_way[index] = (self.next, slot);
        self.next += 1;
        ssd.recorder_mut().numbered(tag, self.next);
    }

    fn completed(&mut self, ssd: &mut Ssd<Volatile>, tag: u32) {
        let (number, slot) = self.under_way[tag as usize];
        self.confirmed.entry(slot).or_default().push(number);
        self.note_durable(ssd);
    }

    fn note_durable(&mut self, ssd: &mut Ssd<Volatile>) {
        for durable in ssd.recorder_mut().take_durable() {
            for slot in durable.first.0..durable.first.0 + durable.slots {
                let below = self.durable_below.entry(slot).or_default();
                *below = durable.below.max(*below);
            }
        }
    }

    /// Returns the number of acknowledged writes that are not on flash.
    fn open_writes(&self) -> u64 {
        let is_open = |slot: &u32, number: u64| {
            self.durable_below.get(slot).is_none_or(|&below| number >= below)
        };
        let of_slot = |(slot, numbers): (&u32, &Vec<u64>)| {
            numbers.iter().filter(|&&number| is_open(slot, number)).count() as u64
        };
        self.confirmed.iter().map(of_slot).sum()
    }
}

fn loss(
    ssd: &mut Ssd<Volatile>,
    random: &mut Prng,
    slots: u64,
    queue_depth: u32,
    count: u64,
) -> Loss {
    let now = ssd.now();
    ssd.submit(now, Command::new(Operation::Flush, 0, 0));
    while ssd.step(Nanos::MAX).is_none() {}
    let started = ssd.now();
    let mut ledger = Ledger::default();
    let mut next = |ssd: &mut Ssd<Volatile>, ledger: &mut Ledger, at, tag| {
        let slot = random.below(slots);
        ledger.submitted(ssd, tag, slot as u32);
        let write = Command::new(Operation::Write, slot * SLOT_BYTES, SLOT_BYTES as u32);
        ssd.submit(at, Command { tag, ..write });
    };
    (0..queue_depth).for_each(|tag| next(ssd, &mut ledger, started, tag));
    let mut confirmed = 0;
    while confirmed < count {
        if let Some(done) = ssd.step(Nanos::MAX) {
            ledger.completed(ssd, done.tag);
            confirmed += 1;
            if confirmed < count {
                next(ssd, &mut ledger, done.at, done.tag);
            }
        }
    }
    let elapsed = ssd.now() - started;
    ledger.note_durable(ssd);
    let is_protected = ssd.config().controller.power_loss_protection;
    let cut = ssd.cut_power();
    // Slots programmed with capacitor power are not lost.
    let lost = if is_protected { cut.lost_slots } else { ledger.open_writes() };
    // If the drive has a cache, it acknowledges a write when the write enters the buffer.
    debug_assert!(!ssd.write_cache() || lost == cut.lost_slots, "{lost} lost, but {cut:?}");
    assert!(lost <= confirmed, "{lost} of {confirmed} confirmed writes are lost");
    Loss {
        confirmed,
        lost,
        torn_units: cut.torn.len() as u64,
        interrupted_erases: u64::from(cut.interrupted_erases),
        saved: cut.saved_slots,
        hold_up: cut.hold_up,
        rebuild: cut.rebuild.total(),
        elapsed,
    }
}

#[cfg(test)]
mod tests;
