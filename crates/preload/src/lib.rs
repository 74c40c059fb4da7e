//! Records the file I/O of a program. `writecliff capture` has the dynamic linker load this library
//! first (`LD_PRELOAD`), so that its functions hide those of the C library with the same names:
//! each calls the real function and then records an event.
//!
//! Events go to one file that all processes of a capture have mapped (`events`): a slot is claimed
//! with one atomic addition and filled without a lock, so that threads, forked children and signal
//! handlers never wait for one another, and the events of a killed process are not lost.
//!
//! Every hook keeps the `errno` of the real call, allocates nothing, and calls no hooked function
//! itself (it uses raw system calls), so that hooks do not recurse.
//!
//! The state of a file is queried from the kernel at each call (`statx`, 0.2-0.4 us) instead of
//! kept in a table of descriptors: descriptors are duplicated, inherited, passed over sockets and
//! closed in more ways than can be followed.

#![allow(clippy::missing_safety_doc)]

mod data;
mod events;
mod files;
mod hints;
mod names;
mod namespace;
mod next;
mod stdio;
mod text;

use libc::c_int;

/// Run `note` after a real call and restore the `errno` of that call.
fn after(note: impl FnOnce()) {
    if !events::active() {
        return;
    }
    let errno = errno();
    note();
    set_errno(errno);
}

fn errno() -> c_int {
    // SAFETY: the C library's own address of it, valid in every thread.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value };
}

extern "C" fn begin() {
    events::begin();
    if events::active() {
        names::begin();
    }
}

extern "C" fn end() {
    if events::active() {
        stdio::flush_all();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
