//! Commands on a drive whose mapping table does not fit into the controller.

use writecliff_base::StreamId;
use writecliff_host_interface::Cause;

use super::pages::Pages;
use super::{Found, LoadId, MappingCache, MappingCacheCounts, PageLoad, Traffic};
use crate::die::{medium_of, program_medium, sense_medium};
use crate::fill::NO_FILL;
use crate::mechanisms::{Access, Mechanism, Medium, Numbered, steps};
use crate::{DeviceConfig, FillId, FlashOperation, Lane, Recorder, Ssd};

impl MappingCache {
    /// Looks up a translation page. Unless the controller has it, returns the load to await.
    fn look_up<R: Recorder>(
        &mut self,
        drive: &mut Ssd<R>,
        page: u32,
        changes: bool,
    ) -> Option<&mut PageLoad> {
        let (access, traffic) = self.touch(page, changes);
        let load = match access {
            Found::Here => None,
            Found::Loading(load) => Some(load),
            Found::HostMemory => self.begin_load(page).inspect(|&load| {
                let received =
                    drive.commands.frontend.receive(drive.storage.backend.now, self.page_bytes());
                let at = received + self.config.host_memory_latency.unwrap_or_default();
                drive.storage.backend.queue.push(Lane::Arrived, at, Self::event(load));
            }),
            Found::Flash { die } => {
                let load = self.begin_load(page);
                load.inspect(|&load| self.read_page(drive, die, load, changes))
            }
        };
        self.carry(drive, traffic);
        self.loads.get_mut(usize::from(load?))?.as_mut()
    }

    /// Reads a translation page: as early as a host read, or for a write behind the die's work.
    fn read_page<R: Recorder>(&self, drive: &mut Ssd<R>, die: u16, load: LoadId, for_write: bool) {
        let operation = FlashOperation::Read {
            sense: sense_medium(medium_of(Self::NUMBER)),
            slots: self.config.page_slots() as u8,
            purpose: Self::request(load),
        };
        if for_write {
            drive.storage.backend.work(usize::from(die), operation);
        } else {
            drive.storage.backend.queue_read(usize::from(die), operation);
        }
    }

    /// Starts transfers that nothing waits for: of the host memory buffer, and programs.
    fn carry<R: Recorder>(&self, drive: &mut Ssd<R>, traffic: Traffic) {
        let (now, bytes) = (drive.storage.backend.now, self.page_bytes());
        for _ in 0..traffic.to_host {
            drive.commands.frontend.send(now, bytes, false);
        }
        for _ in 0..traffic.from_host {
            drive.commands.frontend.receive(now, bytes);
        }
        if let Some(die) = traffic.program {
            let page_type = program_medium(medium_of(Self::NUMBER));
            let operation = FlashOperation::Program { fill: NO_FILL, page_type };
            drive.storage.backend.work(usize::from(die), operation);
        }
    }
}

impl Mechanism for MappingCache {
    const STEPS: u8 = steps::READS | steps::WRITES;

    fn of(config: &DeviceConfig) -> Option<Box<Self>> {
        let section = config.sections.mapping_cache?;
        let geometry = &config.geometry;
        let lpns = section.entries_per_page() * config.indirection_slots;
        let count = (config.ftl.user_slots as u32).div_ceil(lpns);
        let per_program = geometry.slots_per_read_group / section.page_slots();
        let (dies, held) = (geometry.dies as u16, section.pages_held());
        assert!(per_program > 0 && held[0] > 0, "programs and the controller hold pages");
        Some(Box::new(Self {
            config: section,
            pages: Pages::new(count, held),
            lpns_per_page: lpns,
            leaving: Vec::new(),
            per_program: per_program as usize,
            program_slots: geometry.slots_per_read_group,
            die_of: (0..count).map(|page| (page / per_program % geometry.dies) as u16).collect(),
            dies,
            next_die: 0,
            loads: Vec::new(),
            counts: MappingCacheCounts::default(),
        }))
    }

    fn medium(config: &DeviceConfig) -> Option<Medium> {
        let section = config.sections.mapping_cache?;
        Some(Medium { read: section.read, program: section.program })
    }

    /// Looks up the translation pages of a read, which waits for those not in the controller.
    fn holds_read<R: Recorder>(&mut self, drive: &mut Ssd<R>, read: &Access<'_>) -> bool {
        let Some(number) = read.number else { return false };
        let mut waits = 0;
        for page in self.pages_of(read.first, read.slots) {
            if let Some(load) = self.look_up(drive, page, false) {
                load.commands.push(number);
                waits += 1;
            }
        }
        drive.commands.get(number).pending = waits;
        waits > 0
    }

    /// Changes the entries of a write, whose data stay in the buffer until these pages are loaded.
    fn before_write<R: Recorder>(&mut self, drive: &mut Ssd<R>, write: &Access<'_>) {
        let pages = self.pages_of(write.first, write.slots);
        if write.number.is_none() {
            for page in pages {
                self.touch(page, true);
            }
            return;
        }
        let frontier = drive.storage.front.frontier().unwrap_or_else(|| {
            let stream = drive.storage.routed(write.command.stream.0).unwrap_or(StreamId::DEFAULT);
            drive.storage.ftl.host_frontier(stream)
        });
        for page in pages {
            if let Some(load) = self.look_up(drive, page, true) {
                let fill = drive.storage.backend.fills.current(frontier);
                drive.storage.backend.fills.get(fill).reads_pending += 1;
                load.fills.push(fill);
            }
        }
    }

    /// Resumes the commands and writes that waited for a translation page.
    fn due<R: Recorder>(&mut self, drive: &mut Ssd<R>, load: u16) -> bool {
        let Some(loaded) = self.end_load(load) else { return false };
        for fill in loaded.fills {
            drive.storage.backend.waited(fill);
        }
        for number in loaded.commands {
            if drive.commands.arrived(number, Cause::MappingTable, &mut drive.storage.backend) {
                drive.read_held(number);
            }
        }
        false
    }

    fn purged(&mut self) {
        self.leaving.clear();
        self.pages.purged();
    }

    /// Empties the cache after a power cut; the table on flash is then complete again.
    fn powered_up(&mut self) {
        self.loads.clear();
        self.leaving.clear();
        self.pages.power_up();
    }

    fn own_slots<R: Recorder>(&self, _: &Ssd<R>) -> u64 {
        self.counts.written_slots
    }

    fn waiting_fills(&self) -> Vec<FillId> {
        self.loads.iter().flatten().flat_map(|load| &load.fills).copied().collect()
    }
}
