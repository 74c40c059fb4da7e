//! Tests of served drives: the interface to transports, and NBD and NVMe/TCP with
//! well-behaved and hostile clients on loopback.

mod crowd;
mod fuzz;
mod hostile;
mod nbd;
mod nbd_client;
mod nvme;
mod nvme_host;
mod power;
mod power_mapping;
mod read_errors;
mod read_only;
mod restart;
mod same;
mod served;
mod state;
mod support;
