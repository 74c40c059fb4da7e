//! Records a program's file I/O. `writecliff capture` preloads this library into the program
//! (`LD_PRELOAD`), so that its functions override the C library functions of the same names. Each
//! override calls the real function and then records an event.
//!
//! All processes in a capture map one event file (`events`). A slot is claimed with one atomic
//! addition and filled without a lock. Threads, forked children and signal handlers therefore never
//! block each other, and the events of a killed process are not lost.
//!
//! Every hook preserves the `errno` of the real call and allocates no memory. Hooks use raw system
//! calls instead of hooked functions to avoid recursion.
//!
//! The state of a file is queried from the kernel at each call (`statx`, 0.2-0.4 us) instead of
//! being stored in a descriptor table. Descriptors are duplicated, inherited, passed over sockets
//! and closed in more ways than a table could track.

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

/// Runs `note` after a real call and restores that call's `errno`.
fn after(note: impl FnOnce()) {
    if events::active() {
        keeping_errno(note);
    }
}

fn keeping_errno<T>(call: impl FnOnce() -> T) -> T {
    let errno = errno();
    let result = call();
    set_errno(errno);
    result
}

fn errno() -> c_int {
    // SAFETY: the C library returns the address of errno, which is valid in every thread.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: c_int) {
    // SAFETY: the address of errno is valid in every thread.
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
