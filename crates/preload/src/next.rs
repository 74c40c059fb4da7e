//! Finds the real function behind a hook: the next of that name in the linker's search order.
//!
//! All functions are looked up before the program starts. A lookup inside a hook would wait for the
//! linker's lock, which another thread may hold while waiting for the hook's thread.

use libc::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

pub(crate) struct Next {
    name: &'static str, // NUL-terminated
    address: AtomicPtr<c_void>,
}

impl Next {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, address: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Returns the function address; null if the C library has no such function.
    pub(crate) fn get(&self) -> *mut c_void {
        let address = self.address.load(Ordering::Relaxed);
        // Unknown only if another library calls the hook before this one is initialised.
        if address.is_null() { self.find() } else { address }
    }

    pub(crate) fn find(&self) -> *mut c_void {
        // SAFETY: the name is NUL-terminated.
        let address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr().cast::<c_char>()) };
        self.address.store(address, Ordering::Relaxed);
        address
    }
}

/// The real function `$name` with type `$type`; `None` if it does not exist.
macro_rules! real {
    ($name:ident as $type:ty) => {{
        static NEXT: $crate::next::Next = $crate::next::Next::new(concat!(stringify!($name), "\0"));
        extern "C" fn find() {
            NEXT.find();
        }
        #[used]
        #[unsafe(link_section = ".init_array")]
        static FIND: extern "C" fn() = find;
        let address = NEXT.get();
        if address.is_null() {
            $crate::set_errno(libc::ENOSYS);
            None
        } else {
            // SAFETY: the type matches the C library's declaration.
            Some(unsafe { std::mem::transmute::<*mut libc::c_void, $type>(address) })
        }
    }};
}

/// Defines hooks, which are functions that override the C library functions of the same names;
/// names joined by `|` share a signature. `result => note` evaluates `note` after the real call.
/// `|real| call` evaluates to the hook's result; `real()` calls the real function with the caller's
/// arguments. `as` specifies the type of a real function that is variadic in C. `=` specifies the
/// hook's result if the real function does not exist; the default is -1.
macro_rules! hook {
    (@type [$variadic:ty] $plain:ty) => { $variadic };
    (@type [] $plain:ty) => { $plain };
    (@none [$none:expr]) => { $none };
    (@none []) => { -1 };
    ($name:ident | $($more:ident)|+ ($($arg:tt)*) $($rest:tt)*) => {
        $crate::next::hook!($name($($arg)*) $($rest)*);
        $crate::next::hook!($($more)|+ ($($arg)*) $($rest)*);
    };
    ($name:ident($($arg:tt)*) -> $ret:ty $(= $none:expr)?, $result:ident => $note:expr) => {
        $crate::next::hook!($name($($arg)*) -> $ret $(= $none)?, |real| {
            let $result = real();
            $crate::after(|| $note);
            $result
        });
    };
    ($name:ident($($arg:ident: $type:ty),*) -> $ret:ty $(as $variadic:ty)? $(= $none:expr)?,
        |$real:ident| $call:expr) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $type),*) -> $ret {
            type Real = $crate::next::hook!(
                @type [$($variadic)?] unsafe extern "C" fn($($type),*) -> $ret
            );
            let Some(real) = $crate::next::real!($name as Real) else {
                return $crate::next::hook!(@none [$($none)?]);
            };
            // SAFETY: the caller's arguments are passed unchanged.
            let $real = || unsafe { real($($arg),*) };
            $call
        }
    };
}

pub(crate) use {hook, real};
