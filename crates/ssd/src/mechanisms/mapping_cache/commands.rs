//! Commands on a drive whose mapping table does not fit into the controller.

use writecliff_base::{Lpn, StreamId};
use writecliff_flash::geometry::SLOT_BYTES;
use writecliff_host_interface::{Cause, Command};

use crate::attribution::Recorder;
use crate::event::{Lane, SsdEvent};
use crate::front::Front;
use crate::mechanisms::mapping_cache::{Found, LoadId, MappingCache, Traffic};
use crate::ssd::Ssd;

impl<R: Recorder> Ssd<R> {
    /// Looks up a read; returns whether it has to wait for parts of the mapping table.
    pub(crate) fn waits_for_mapping(&mut self, number: u16, first: Lpn, slots: u32) -> bool {
        let Some(mut cache) = self.mapping_cache.take() else { return false };
        let mut waits = 0;
        for page in cache.pages_of(first, slots) {
            if let Some(load) = self.look_up(&mut cache, page, false).and_then(|l| cache.load(l)) {
                load.commands.push(number);
                waits += 1;
            }
        }
        self.mapping_cache = Some(cache);
        self.commands.get(number).pending = waits;
        waits > 0
    }

    /// Changes the entries of a write that is about to be placed. Its data stay in the buffer until
    /// the controller has the translation pages that map them.
    pub(crate) fn map_write(&mut self, command: &Command, first: Lpn, slots: u32) {
        let Some(mut cache) = self.mapping_cache.take() else { return };
        let frontier = self.front.frontier().unwrap_or_else(|| {
            let stream = self.routed(command.stream.0).unwrap_or(StreamId::DEFAULT);
            self.ftl.host_frontier(stream)
        });
        for page in cache.pages_of(first, slots) {
            if let Some(load) = self.look_up(&mut cache, page, true).and_then(|l| cache.load(l)) {
                let fill = self.backend.fills.current(frontier);
                self.backend.fills.get(fill).reads_pending += 1;
                load.fills.push(fill);
            }
        }
        self.mapping_cache = Some(cache);
    }

    /// Changes the entries of a write on the fast-forward clock.
    pub(crate) fn fast_forward_mapping(&mut self, command: &Command) {
        let Some(cache) = &mut self.mapping_cache else { return };
        let slot = u64::from(SLOT_BYTES);
        let first = Lpn((command.offset / slot) as u32);
        let end = (command.offset + u64::from(command.length)).div_ceil(slot) as u32;
        for page in cache.pages_of(first, end - first.0) {
            cache.touch(page, true);
        }
    }

    /// Looks up a page; returns the load to wait for, if it is not in the controller.
    fn look_up(&mut self, cache: &mut MappingCache, page: u32, changes: bool) -> Option<LoadId> {
        let (found, traffic) = cache.touch(page, changes);
        let load = self.load_found(cache, page, found, changes);
        self.carry_mapping(cache, traffic);
        load
    }

    fn load_found(
        &mut self,
        cache: &mut MappingCache,
        page: u32,
        found: Found,
        for_write: bool,
    ) -> Option<LoadId> {
        match found {
            Found::Here => None,
            Found::Loading(load) => Some(load),
            Found::HostMemory => {
                let load = cache.begin_load(page)?;
                let received = self.frontend.receive(self.backend.now, cache.page_bytes());
                let at = received + cache.host_latency();
                self.backend.queue.push(Lane::Arrived, at, SsdEvent::MappingFetched { load });
                Some(load)
            }
            Found::Flash { die } => {
                let load = cache.begin_load(page)?;
                self.backend.read_mapping(die, cache.config.page_slots(), load, for_write);
                Some(load)
            }
        }
    }

    /// Starts transfers that no command waits for: copies to and from the host memory buffer, and
    /// programs of changed pages.
    fn carry_mapping(&mut self, cache: &MappingCache, traffic: Traffic) {
        let (now, bytes) = (self.backend.now, cache.page_bytes());
        for _ in 0..traffic.to_host {
            self.frontend.send(now, bytes, false);
        }
        for _ in 0..traffic.from_host {
            self.frontend.receive(now, bytes);
        }
        if let Some(die) = traffic.program {
            self.backend.program_mapping(die);
        }
    }

    /// Handles the arrival of a translation page in the controller.
    #[cold]
    pub(crate) fn mapping_loaded(&mut self, load: LoadId) {
        let Some(loaded) = self.mapping_cache.as_mut().and_then(|cache| cache.end_load(load))
        else {
            return;
        };
        for fill in loaded.fills {
            self.backend.waited(fill);
        }
        for number in loaded.commands {
            let command = self.commands.get(number);
            command.pending -= 1;
            if command.pending == 0 {
                self.backend.recorder.spent(number, Cause::MappingTable, self.backend.now);
                self.read_mapped(number);
            }
        }
    }

    /// Slots programmed to write parts of the mapping table back.
    pub(crate) fn mapping_slots(&self) -> u64 {
        self.mapping_cache.as_ref().map_or(0, |cache| cache.counts.written_slots)
    }
}
