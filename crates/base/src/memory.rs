//! Large arrays on huge pages.
//!
//! A drive's maps are gigabytes that are accessed at random. On 4 KiB pages nearly every access
//! would miss the address translation cache besides the data cache; on 2 MiB pages it does not.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};

/// Types of which all-zero bytes are a value.
///
/// # Safety
/// Every bit pattern of zeros must be a valid value, and the type must have a size.
pub unsafe trait Zeroed: Copy {}

// SAFETY: plain integers.
unsafe impl Zeroed for u32 {}

/// An array of zeros that costs memory only where it is written.
pub fn zeroed<T: Zeroed>(length: usize) -> Vec<T> {
    if length == 0 {
        return Vec::new();
    }
    let layout = Layout::array::<T>(length).expect("an array that fits the address space");
    // All of it is in use from the start, so length and capacity are one.
    #[allow(clippy::same_length_and_capacity)]
    // SAFETY: the layout has a size, as `Zeroed` promises for `T` and the length is above 0. The
    // vector gets memory of just its layout from the global allocator, all of it valid values.
    unsafe {
        let start = alloc_zeroed(layout).cast::<T>();
        if start.is_null() {
            handle_alloc_error(layout);
        }
        advise_huge_pages(start, length);
        Vec::from_raw_parts(start, length, length)
    }
}

/// An array of `value`.
pub fn filled<T: Copy>(value: T, length: usize) -> Vec<T> {
    let mut array = Vec::with_capacity(length);
    // Before the first write: memory that is there already stays on the pages that it has.
    advise_huge_pages(array.as_ptr(), length);
    array.resize(length, value);
    array
}

/// Ask for huge pages; whoever does not know them goes without.
#[cfg(target_os = "linux")]
fn advise_huge_pages<T>(start: *const T, length: usize) {
    const PAGE: usize = 4096;
    let (begin, bytes) = (start as usize, length * size_of::<T>());
    let first = begin.next_multiple_of(PAGE);
    let Some(bytes) = bytes.checked_sub(first - begin).map(|b| b / PAGE * PAGE) else { return };
    // SAFETY: the range lies inside an allocation, and this advice does not change what is in it.
    unsafe { libc::madvise(first as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages<T>(_: *const T, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_any_length_hold_what_they_should() {
        for length in [0, 1, 1000, 3 << 20] {
            let zeros = zeroed::<u32>(length);
            assert!(zeros.len() == length && zeros.iter().all(|&n| n == 0));
            let ones = filled(1_u32, length);
            assert!(ones.len() == length && ones.iter().all(|&n| n == 1));
        }
    }
}
