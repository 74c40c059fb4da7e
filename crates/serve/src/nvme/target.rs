//! NVM subsystem of a served drive, and the connections of its hosts.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use writecliff_nvme::{Access, Address, Association, Subsystem};
use writecliff_nvme_tcp::Limits;

use super::drive::{SimulatedDrive, nqn};
use super::replier::Replier;
use crate::listener;
use crate::request::Replies;
use crate::served::{Served, locked};

/// Maximum number of I/O queues per host, and maximum number of hosts. Each queue is a connection,
/// and a listener has at most a thousand connections.
const QUEUES: u16 = 32;
const CONTROLLERS: u16 = 64;
/// Address families and transport type in the discovery log page (Base 2.1, 5.1.12.3.1).
const TCP: u8 = 3;
const IPV4: u8 = 1;
const IPV6: u8 = 2;

/// Serial number of the drive, and the hosts allowed to connect.
#[derive(Clone, Debug, Default)]
pub struct TargetOptions {
    /// Serial number, at most 20 characters.
    pub serial: String,
    /// Qualified names of the hosts allowed to connect; `None` allows every host.
    pub hosts: Option<Vec<String>>,
}

/// A connection whose queue is connected.
struct Connected {
    association: Association,
    replier: Arc<Replier>,
}

/// A served drive as an NVM subsystem.
pub struct Target {
    subsystem: Mutex<Subsystem<SimulatedDrive>>,
    connected: Mutex<Vec<Connected>>,
    began: Instant,
}

impl Target {
    /// Returns a subsystem with one namespace for `served`.
    pub fn new(served: &Served, options: TargetOptions) -> Arc<Self> {
        let drive = SimulatedDrive::new(served, &options.serial);
        let access = Access {
            nqn: nqn(writecliff_nvme::Drive::identity(&drive)),
            hosts: options.hosts,
            addresses: Vec::new(),
            in_capsule: Limits::default().in_capsule,
            queues: QUEUES,
            controllers: CONTROLLERS,
        };
        let subsystem = Mutex::new(Subsystem::new(drive, access));
        Arc::new(Self { subsystem, connected: Mutex::default(), began: Instant::now() })
    }

    /// Reports the target's addresses, except for Unix sockets, to the discovery service.
    pub fn advertise<'a>(&self, addresses: impl Iterator<Item = &'a listener::Address>) {
        let tcp = addresses.filter_map(|address| match address {
            listener::Address::Unix(_) => None,
            listener::Address::Tcp(host, port) => Some(Address {
                transport: TCP,
                family: if host.contains(':') { IPV6 } else { IPV4 },
                address: host.clone(),
                service: port.to_string(),
            }),
        });
        self.subsystem().advertise(tcp.collect());
    }

    /// Returns the subsystem's qualified name.
    pub fn nqn(&self) -> String {
        self.subsystem().nqn().to_owned()
    }

    pub(super) fn subsystem(&self) -> MutexGuard<'_, Subsystem<SimulatedDrive>> {
        locked(&self.subsystem)
    }

    /// Returns the time since the target was created in milliseconds, for keep-alive timers.
    pub(super) fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    pub(super) fn joined(&self, association: Association, replier: &Arc<Replier>) {
        let replier = Arc::clone(replier);
        locked(&self.connected).push(Connected { association, replier });
    }

    /// Handles the end of a queue's connection. The end of the admin queue's connection removes the
    /// controller and its I/O queues.
    pub(super) fn left(&self, association: Association) {
        let Association { controller, queue, .. } = association;
        if queue == 0 {
            self.subsystem().disconnect(controller);
        } else {
            self.subsystem().disconnect_queue(controller, queue);
        }
        let mut connected = locked(&self.connected);
        connected.retain(|other| other.association != association);
        if queue == 0 {
            let others =
                connected.iter().filter(|other| other.association.controller == controller);
            others.for_each(|other| other.replier.sever());
        }
    }

    /// Sends the completions of event requests, and closes queues that a reset has deleted. This
    /// method is called after commands on an admin queue, and periodically.
    pub(super) fn tend(&self) {
        let (replies, gone) = {
            let mut subsystem = self.subsystem();
            let replies = subsystem.poll();
            let connected = locked(&self.connected);
            let is_gone = |connection: &&Connected| {
                let Association { controller, queue, .. } = connection.association;
                !subsystem.is_connected(controller, queue)
            };
            let gone = connected.iter().filter(is_gone);
            (replies, gone.map(|gone| Arc::clone(&gone.replier)).collect::<Vec<_>>())
        };
        for replier in gone {
            replier.sever();
        }
        for reply in replies {
            let connected = locked(&self.connected);
            let admin = connected.iter().find(|connection| {
                connection.association.controller == reply.controller
                    && connection.association.queue == 0
            });
            if let Some(admin) = admin {
                let admin = Arc::clone(&admin.replier);
                drop(connected);
                admin.reply(&reply);
                admin.send();
            }
        }
    }

    /// Returns the maximum time that the admin queue's connection may wait; `None` if its
    /// keep-alive timeout has expired.
    pub(super) fn keep_alive_timeout(&self, association: Association) -> Option<Duration> {
        const TEND: Duration = Duration::from_secs(1);
        if association.queue > 0 {
            return Some(TEND);
        }
        let limit = self.subsystem().keep_alive(association.controller);
        let Some(limit) = limit else { return Some(TEND) };
        let connected = locked(&self.connected);
        let of_host =
            connected.iter().filter(|c| c.association.controller == association.controller);
        let last_received = of_host
            .map(|connection| connection.replier.last_received.load(Ordering::Relaxed))
            .max()
            .unwrap_or(0);
        let left = (last_received + u64::from(limit)).checked_sub(self.now_ms())?;
        Some(Duration::from_millis(left + 1).min(TEND))
    }
}
