//! A served drive behind an NVMe controller.

use writecliff_base::Nanos;
use writecliff_host_interface::placement::DataPlacement;
use writecliff_nvme::{Drive, ErrorEntry, ErrorLog, Failure, Health, Identity};
use writecliff_runner::Counters;

use super::identity;
use crate::served::{LOGICAL_BLOCKS, Served};
use crate::statistics::Snapshot;

/// Available spare of a drive that does not model bad blocks, in percent.
const ALL_SPARE: u8 = 100;
/// Available spare threshold in percent, set to a common value for data-centre drives.
const SPARE_THRESHOLD: u8 = 10;

/// A served drive as seen by its controller.
pub struct SimulatedDrive {
    served: Served,
    identity: Identity,
}

impl SimulatedDrive {
    /// Returns the drive with identifiers derived from `serial`.
    pub fn new(served: &Served, serial: &str) -> Self {
        let identity = identity::of(served.config(), serial);
        Self { served: served.clone(), identity }
    }
}

impl Drive for SimulatedDrive {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn now(&self) -> Nanos {
        self.served.with_drive(|drive| drive.now())
    }

    fn health(&self) -> Health {
        health(&self.served.snapshot())
    }

    fn error_log(&self) -> ErrorLog {
        self.served.error_log()
    }

    fn log_error(&mut self, entry: ErrorEntry) {
        self.served.log_error(entry);
    }

    fn lba_format(&self) -> u8 {
        let size = self.served.logical_block();
        LOGICAL_BLOCKS.iter().position(|&other| other == size).map_or(0, |index| index as u8)
    }

    fn write_cache(&self) -> bool {
        self.served.with_drive(|drive| drive.write_cache())
    }

    fn set_write_cache(&mut self, enabled: bool) {
        self.served.with_drive(|drive| drive.set_write_cache(enabled));
    }

    /// Purges the drive, which takes the simulated drive no time.
    fn erase(&mut self) -> Result<(), Failure> {
        self.served.purge().map_err(|_| Failure::Internal)
    }

    fn format(&mut self, lba_format: u8) -> Result<(), Failure> {
        self.erase()?;
        self.served.set_logical_block(LOGICAL_BLOCKS[usize::from(lba_format)]);
        Ok(())
    }

    fn shutdown(&mut self) {
        self.served.shut_down();
    }

    fn controller_reset(&mut self) {
        self.served.with_drained_drive(|drive| drive.controller_reset());
    }

    fn placement(&mut self, ask: &mut dyn FnMut(&mut dyn DataPlacement)) {
        self.served
            .with_drive(|drive| drive.data_placement().map(|mut commands| ask(&mut *commands)));
    }
}

/// Returns the SMART data accumulated since the drive was new.
fn health(of: &Snapshot) -> Health {
    let life = of.life;
    let mut health = Health {
        temperature: of.celsius,
        available_spare: ALL_SPARE,
        spare_threshold: SPARE_THRESHOLD,
        host_read_bytes: life.read_bytes,
        host_write_bytes: life.write_bytes,
        media_write_bytes: of.counters.nand_write_bytes().unwrap_or(0),
        host_read_commands: life.read_commands,
        host_write_commands: life.write_commands,
        error_entries: of.error_entries,
        busy: life.busy,
        powered: of.drive_time,
        power_cycles: of.power.cycles,
        unsafe_shutdowns: of.power.unsafe_shutdowns,
        ..Health::default()
    };
    if let Counters::Ssd(ssd) = &of.counters {
        health.percentage_used = ssd.wear.percentage_used;
        health.throttled = ssd.thermal.map_or(Nanos::ZERO, |thermal| thermal.throttled);
        if let Some(bad) = ssd.bad_blocks {
            health.available_spare = bad.available_spare_pct.ceil().clamp(0.0, 100.0) as u8;
            health.is_read_only = bad.counts.read_only != 0;
        }
        let unrecovered = match (ssd.die_parity, ssd.ecc) {
            (Some(parity), _) => parity.counts.unrecovered,
            (None, ecc) => ecc.map_or(0, |ecc| ecc.uncorrectable_reads),
        };
        let reported = ssd.integrity.map_or(0, |integrity| integrity.reported_reads);
        health.media_errors = unrecovered + reported;
    }
    if let Counters::Scm(scm) = &of.counters {
        health.media_write_bytes = scm.media.write_bytes;
    }
    health
}
