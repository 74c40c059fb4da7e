//! Records what a program does to files. `writecliff capture` has the dynamic linker load this
//! library first (`LD_PRELOAD`), so that its functions stand before those of the C library of the
//! same name: each calls the real one and then notes what happened.
//!
//! The notes go into one file that all processes of a capture have mapped (`events`): a place is
//! taken with one atomic addition and filled without any lock, so that threads, forked children and
//! signal handlers cannot wait for one another, and what a killed process noted is not lost.
//!
//! What holds in every hook: `errno` is that of the real call; nothing is allocated; nothing that
//! is hooked here is called for our own purposes (raw system calls are), so no hook runs in itself.
//!
//! State of a file is asked of the kernel at each call (`statx`, 0.2-0.4 us) instead of being kept
//! in a table of descriptors: descriptors are duplicated, inherited, passed over sockets and closed
//! in more ways than can be followed.

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

/// Runs `note` after a real call and leaves `errno` as that call left it.
fn after(note: impl FnOnce()) {
    if !events::active() {
        return;
    }
    let errno = errno();
    note();
    set_errno(errno);
}

fn errno() -> c_int {
    // SAFETY: the C library's own place for it, valid in every thread.
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
