//! Tests of served drives: the interface to transports, and NBD with well-behaved and hostile
//! clients on loopback.

mod hostile;
mod nbd;
mod nbd_client;
mod same;
mod served;
mod state;
mod support;
