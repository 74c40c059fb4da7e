//! A drive that records its work, and a host that sends commands to it.

use writecliff_base::{Bytes, Nanos};
use writecliff_host_interface::placement::{
    Answer, DataPlacement, DataPlacementStatus, Directives, FdpConfiguration, FdpEvent,
    FdpEventType, FdpStatistics, HandleStatus, Isolation, Refusal, StreamParameters,
};
use writecliff_nvme::{
    Access, Address, Drive, Entry, ErrorEntry, ErrorLog, Health, Identity, Outcome,
    PlacementInterface, Reply, Request, Status, Subsystem, Work,
};

pub(crate) const NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff";
pub(crate) const HOST_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:host";
pub(crate) const DISCOVERY_NQN: &str = writecliff_nvme::DISCOVERY_NQN;
pub(crate) const CAPACITY: u64 = 1 << 30;
const HOST_ID: [u8; 16] = [7; 16];

pub(crate) struct TestStreams {
    pub(crate) enabled: bool,
    pub(crate) open: Vec<u16>,
    pub(crate) allocated: u16,
}

pub(crate) struct TestFdp {
    pub(crate) updated: Vec<u16>,
    pub(crate) enabled: Vec<(u16, FdpEventType)>,
}

const OTHER: Refusal = Refusal::OtherInterface { has: "another", wants: "this" };

impl TestDrive {
    fn of_streams(&mut self) -> Answer<&mut TestStreams> {
        self.streams.as_mut().ok_or(OTHER)
    }

    fn of_fdp(&mut self) -> Answer<&mut TestFdp> {
        self.fdp.as_mut().ok_or(OTHER)
    }
}

impl DataPlacement for TestDrive {
    fn interface_name(&self) -> &'static str {
        "test"
    }

    fn status(&mut self) -> Option<DataPlacementStatus> {
        None
    }
    fn directives(&self) -> Answer<Directives> {
        let (streams, fdp) = (self.streams.as_ref(), self.fdp.is_some());
        let has = |enabled| if fdp { Directives::DATA_PLACEMENT } else { u8::from(enabled) << 1 };
        Ok(Directives {
            supported: Directives::IDENTIFY | has(streams.is_some()),
            enabled: Directives::IDENTIFY | has(streams.is_some_and(|streams| streams.enabled)),
            persistent: Directives::IDENTIFY | has(false),
        })
    }
    fn enable_streams(&mut self, enabled: bool) -> Answer<()> {
        self.of_streams()?.enabled = enabled;
        Ok(())
    }
    fn stream_parameters(&mut self) -> Answer<StreamParameters> {
        let streams = self.of_streams()?;
        Ok(StreamParameters {
            limit: 8,
            available: 8 - streams.allocated,
            open: streams.open.len() as u16,
            write_size: Bytes(128 << 10),
            granularity: 9,
            allocated: streams.allocated,
            namespace_open: streams.open.len() as u16,
        })
    }
    fn stream_status(&mut self) -> Answer<Vec<u16>> {
        Ok(self.of_streams()?.open.clone())
    }
    fn allocate_streams(&mut self, wanted: u16) -> Answer<u16> {
        let streams = self.of_streams()?;
        if streams.allocated > 0 {
            return Err(Refusal::InvalidField("allocated".into()));
        }
        streams.allocated = wanted.min(8);
        Ok(streams.allocated)
    }
    fn release_stream(&mut self, identifier: u16) -> Answer<bool> {
        self.of_streams()?.open.retain(|&id| id != identifier);
        Ok(true)
    }
    fn release_stream_resources(&mut self) -> Answer<()> {
        self.of_streams()?.allocated = 0;
        Ok(())
    }
    fn fdp_configuration(&mut self) -> Answer<FdpConfiguration> {
        self.identity.fdp().cloned().ok_or(OTHER)
    }
    fn fdp_handle_status(&mut self) -> Answer<Vec<HandleStatus>> {
        self.of_fdp()?;
        let of = |placement_id| HandleStatus {
            placement_id,
            handle: placement_id + 4,
            time_remaining_s: 60,
            available: Bytes(1 << 20),
        };
        Ok((0..4).map(of).collect())
    }
    fn fdp_update(&mut self, placement_ids: &[u16]) -> Answer<u32> {
        self.of_fdp()?.updated.extend(placement_ids);
        Ok(placement_ids.len() as u32)
    }
    fn fdp_statistics(&mut self) -> Answer<FdpStatistics> {
        self.of_fdp()?;
        Ok(FdpStatistics { host_bytes: 1000, media_bytes: 2000, erased_bytes: 3000 })
    }
    fn fdp_events(&mut self, of_host: bool) -> Answer<Vec<FdpEvent>> {
        self.of_fdp()?;
        let kind =
            if of_host { FdpEventType::NotFullyWritten } else { FdpEventType::MediaReallocated };
        let moved = (!of_host).then_some(Bytes(64 << 10));
        let time = Nanos(5_000_000_000);
        Ok(vec![FdpEvent { kind, time, placement_id: Some(2), handle: Some(6), moved }])
    }
    fn fdp_enabled_events(&mut self, handle: u16) -> Answer<Vec<FdpEventType>> {
        let enabled = self.of_fdp()?.enabled.iter();
        Ok(enabled.filter(|(of, _)| *of == handle).map(|&(_, kind)| kind).collect())
    }
    fn fdp_enable_events(
        &mut self,
        handle: u16,
        kinds: &[FdpEventType],
        enabled: bool,
    ) -> Answer<()> {
        let fdp = self.of_fdp()?;
        fdp.enabled.retain(|(of, kind)| *of != handle || !kinds.contains(kind));
        if enabled {
            fdp.enabled.extend(kinds.iter().map(|&kind| (handle, kind)));
        }
        Ok(())
    }
}

pub(crate) struct TestDrive {
    pub(crate) identity: Identity,
    pub(crate) health: Health,
    pub(crate) errors: ErrorLog,
    pub(crate) now: Nanos,
    pub(crate) lba_format: u8,
    pub(crate) cache: bool,
    pub(crate) erasures: u32,
    pub(crate) is_broken: bool,
    pub(crate) resets: u32,
    pub(crate) shutdowns: u32,
    pub(crate) streams: Option<TestStreams>,
    pub(crate) fdp: Option<TestFdp>,
}

pub(crate) fn fdp_configuration() -> FdpConfiguration {
    FdpConfiguration {
        handles: [vec![Isolation::Initially; 7], vec![Isolation::Persistently]].concat(),
        placement_handles: vec![4, 5, 6, 7],
        reclaim_groups: 1,
        rgif: 0,
        reclaim_unit: Bytes(8 << 20),
        time_limit_s: 3600,
        volatile_cache: true,
    }
}

impl TestDrive {
    pub(crate) fn new(placement: PlacementInterface) -> Self {
        let is_streams = placement == PlacementInterface::Streams;
        let is_fdp = matches!(placement, PlacementInterface::Fdp(_));
        Self {
            identity: Identity {
                serial: "S1".into(),
                model: "simulated drive".into(),
                firmware: "1.0".into(),
                eui64: [1, 2, 3, 4, 5, 6, 7, 8],
                nguid: [9; 16],
                uuid: [10; 16],
                capacity: Bytes(CAPACITY),
                lba_formats: vec![Bytes(512), Bytes(4096)],
                volatile_cache: true,
                write_granularity: Bytes(64 << 10),
                atomic_write: Bytes(4096),
                warning_temperature: Some(70.0),
                rated_writes: Some(Bytes(1_752_000_000_000_000)),
                block_erase: true,
                crypto_erase: true,
                placement,
            },
            health: Health {
                temperature: Some(40.0),
                available_spare: 99,
                spare_threshold: 10,
                percentage_used: 12.9,
                host_read_bytes: 512_000 * 3,
                host_write_bytes: 512_000 * 4 + 1,
                host_read_commands: 31,
                host_write_commands: 41,
                media_write_bytes: 2_000_000_001,
                media_errors: 2,
                error_entries: 0,
                busy: Nanos(125_000_000_000),
                powered: Nanos(7_200_000_000_000),
                power_cycles: 5,
                unsafe_shutdowns: 3,
                throttled: Nanos(9_000_000_000),
                is_read_only: false,
            },
            errors: ErrorLog::default(),
            now: Nanos(10_000_000_000),
            lba_format: 0,
            cache: true,
            erasures: 0,
            is_broken: false,
            resets: 0,
            shutdowns: 0,
            streams: is_streams.then(|| TestStreams {
                enabled: false,
                open: vec![3, 9],
                allocated: 0,
            }),
            fdp: is_fdp.then(|| TestFdp { updated: Vec::new(), enabled: Vec::new() }),
        }
    }
}

impl Drive for TestDrive {
    fn identity(&self) -> &Identity {
        &self.identity
    }
    fn now(&self) -> Nanos {
        self.now
    }
    fn health(&self) -> Health {
        Health { error_entries: self.errors.count, ..self.health }
    }
    fn error_log(&self) -> ErrorLog {
        self.errors.clone()
    }
    fn log_error(&mut self, entry: ErrorEntry) {
        self.errors.add(entry);
    }
    fn lba_format(&self) -> u8 {
        self.lba_format
    }
    fn write_cache(&self) -> bool {
        self.cache
    }
    fn set_write_cache(&mut self, enabled: bool) {
        self.cache = enabled;
    }
    fn erase(&mut self) -> Result<(), Status> {
        if self.is_broken {
            return Err(Status::INTERNAL_ERROR);
        }
        self.erasures += 1;
        Ok(())
    }
    fn format(&mut self, lba_format: u8) -> Result<(), Status> {
        self.erase()?;
        self.lba_format = lba_format;
        Ok(())
    }
    fn shutdown(&mut self) {
        self.shutdowns += 1;
    }
    fn controller_reset(&mut self) {
        self.resets += 1;
    }
    fn placement(&mut self, ask: &mut dyn FnMut(&mut dyn DataPlacement)) {
        ask(self);
    }
}

/// Builder of a submission queue entry.
#[derive(Clone, Copy)]
pub(crate) struct Command(pub(crate) [u8; 64]);

impl Command {
    pub(crate) fn new(opcode: u8) -> Self {
        let mut entry = [0; 64];
        entry[0] = opcode;
        entry[2] = 0x34;
        entry[3] = 0x12;
        Self(entry)
    }
    pub(crate) fn dword(mut self, number: usize, value: u32) -> Self {
        self.0[number * 4..number * 4 + 4].copy_from_slice(&value.to_le_bytes());
        self
    }
    pub(crate) fn nsid(self, nsid: u32) -> Self {
        self.dword(1, nsid)
    }
    pub(crate) fn id(mut self, id: u16) -> Self {
        self.0[2..4].copy_from_slice(&id.to_le_bytes());
        self
    }
}

pub(crate) fn identify(cns: u32) -> Command {
    Command::new(0x06).dword(10, cns)
}

/// Returns a Get Log Page command for `bytes` bytes.
pub(crate) fn log(id: u32, bytes: u32) -> Command {
    Command::new(0x02).nsid(u32::MAX).dword(10, id | (bytes / 4 - 1) << 16)
}

/// Returns an I/O command for `count` blocks, starting at `lba`.
pub(crate) fn blocks(opcode: u8, lba: u64, count: u32) -> Command {
    let command = Command::new(opcode).nsid(1).dword(10, lba as u32).dword(11, (lba >> 32) as u32);
    command.dword(12, count - 1)
}

pub(crate) fn connect_command(queue: u16, entries: u16) -> Command {
    let mut command = Command::new(0x7f);
    command.0[4] = 1;
    command.0[42..44].copy_from_slice(&queue.to_le_bytes());
    command.0[44..46].copy_from_slice(&(entries.wrapping_sub(1)).to_le_bytes());
    command
}

pub(crate) fn connect_data(controller: u16, subsystem: &str, host: &str) -> Vec<u8> {
    let mut data = vec![0; 1024];
    data[..16].copy_from_slice(&HOST_ID);
    data[16..18].copy_from_slice(&controller.to_le_bytes());
    data[256..256 + subsystem.len()].copy_from_slice(subsystem.as_bytes());
    data[512..512 + host.len()].copy_from_slice(host.as_bytes());
    data
}

pub(crate) fn access() -> Access {
    Access {
        nqn: NQN.into(),
        hosts: None,
        addresses: vec![Address {
            transport: 3,
            family: 1,
            address: "127.0.0.1".into(),
            service: "4420".into(),
        }],
        in_capsule: 8192,
        queues: 4,
        controllers: 3,
    }
}

/// A host with a controller that has admin queue 0 and I/O queue 1.
pub(crate) struct Host {
    pub(crate) subsystem: Subsystem<TestDrive>,
    pub(crate) controller: u16,
}

impl Host {
    pub(crate) fn new(placement: PlacementInterface) -> Self {
        Self::of(TestDrive::new(placement))
    }

    pub(crate) fn fdp() -> Self {
        Self::new(PlacementInterface::Fdp(fdp_configuration()))
    }

    pub(crate) fn of(drive: TestDrive) -> Self {
        let mut subsystem = Subsystem::new(drive, access());
        let controller = attach(&mut subsystem, HOST_NQN);
        let mut host = Self { subsystem, controller };
        host.connect_queue(1);
        host
    }

    pub(crate) fn connect_queue(&mut self, queue: u16) {
        let reply =
            connect(&mut self.subsystem, connect_command(queue, 128), self.controller, HOST_NQN);
        assert_eq!(reply.status, Status::SUCCESS);
    }

    pub(crate) fn drive(&mut self) -> &mut TestDrive {
        &mut self.subsystem.drive
    }

    pub(crate) fn send(
        &mut self,
        queue: u16,
        command: Command,
        data: &[u8],
        buffer: u32,
    ) -> Outcome {
        let entry = Entry(&command.0);
        self.subsystem.submit(self.controller, queue, Request { entry, data, buffer })
    }

    /// Executes an admin command with a large buffer; the command must complete immediately.
    pub(crate) fn admin(&mut self, command: Command) -> Reply {
        self.admin_with(command, &[])
    }

    pub(crate) fn admin_with(&mut self, command: Command, data: &[u8]) -> Reply {
        match self.send(0, command, data, 1 << 20) {
            Outcome::Done(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// Executes an admin command that must succeed, and returns its data.
    pub(crate) fn page(&mut self, command: Command) -> Vec<u8> {
        let reply = self.admin(command);
        assert_eq!(reply.status, Status::SUCCESS);
        reply.data
    }

    pub(crate) fn work(&mut self, command: Command, data: &[u8]) -> Work {
        match self.send(1, command, data, 1 << 20) {
            Outcome::Work(ticket, work) => {
                let reply = ticket.success();
                assert_eq!((reply.status, reply.command_id), (Status::SUCCESS, 0x1234));
                work
            }
            other => panic!("{other:?}"),
        }
    }

    /// Returns the status of a command that requires no work of the drive.
    pub(crate) fn status(
        &mut self,
        queue: u16,
        command: Command,
        data: &[u8],
        buffer: u32,
    ) -> Status {
        match self.send(queue, command, data, buffer) {
            Outcome::Done(reply) => reply.status,
            Outcome::Held => Status::SUCCESS,
            Outcome::Work(ticket, _) => ticket.success().status,
        }
    }

    pub(crate) fn fail(&mut self, command: Command, data: &[u8], failure: Status) -> Reply {
        match self.send(1, command, data, 1 << 20) {
            Outcome::Work(ticket, _) => self.subsystem.fail(ticket, failure),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn connect(
    subsystem: &mut Subsystem<TestDrive>,
    command: Command,
    controller: u16,
    host: &str,
) -> Reply {
    let data = connect_data(controller, NQN, host);
    subsystem.connect(Request { entry: Entry(&command.0), data: &data, buffer: 1024 }).1
}

/// Connects an admin queue and enables the controller, as Linux does.
pub(crate) fn attach(subsystem: &mut Subsystem<TestDrive>, host: &str) -> u16 {
    let reply = connect(subsystem, connect_command(0, 32), 0xffff, host);
    assert_eq!(reply.status, Status::SUCCESS);
    let controller = reply.result as u16;
    configure(subsystem, controller, ENABLED);
    controller
}

pub(crate) const ENABLED: u32 = 1 | 6 << 4 | 6 << 16 | 4 << 20;

/// Sets Controller Configuration with Property Set.
pub(crate) fn configure(subsystem: &mut Subsystem<TestDrive>, controller: u16, value: u32) {
    let command = Command::new(0x7f).dword(11, 0x14).dword(12, value);
    let request = Request { entry: Entry(&command.0), data: &[], buffer: 0 };
    match subsystem.submit(controller, 0, request) {
        Outcome::Done(reply) => assert_eq!(reply.status, Status::SUCCESS),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn u16_at(page: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(page[at..at + 2].try_into().unwrap())
}

pub(crate) fn u32_at(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(page[at..at + 4].try_into().unwrap())
}

pub(crate) fn u64_at(page: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(page[at..at + 8].try_into().unwrap())
}

/// Returns the little-endian number of `bytes` bytes at `at`.
pub(crate) fn number(page: &[u8], at: usize, bytes: usize) -> u128 {
    page[at..at + bytes].iter().rev().fold(0, |number, &byte| number << 8 | u128::from(byte))
}

/// Compares fields, given as name, offset, size and expected value, and reports all differences.
pub(crate) fn assert_fields(page: &[u8], fields: &[(&str, usize, usize, u128)]) {
    let wrong: Vec<_> = fields
        .iter()
        .map(|&(name, at, bytes, expected)| (name, expected, number(page, at, bytes)))
        .filter(|(_, expected, actual)| expected != actual)
        .collect();
    assert!(wrong.is_empty(), "name, expected, found: {wrong:x?}");
}
