//! Large arrays on huge pages.
//!
//! A drive's mapping tables take gigabytes and are accessed randomly. With 4 KiB pages, nearly
//! every access would miss both the TLB and the data cache; 2 MiB pages avoid the TLB misses.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};

/// Types for which all-zero bytes are a valid value.
///
/// # Safety
/// A value of all-zero bytes must be valid, and the type must not be zero-sized.
pub unsafe trait Zeroed: Copy {}

// SAFETY: all-zero bytes are a valid value of plain integers.
unsafe impl Zeroed for u32 {}

/// Returns an array of zeros that occupies memory only where it has been written.
pub fn zeroed<T: Zeroed>(length: usize) -> Vec<T> {
    const { assert!(size_of::<T>() > 0, "`Zeroed` excludes types without a size") };
    if length == 0 {
        return Vec::new();
    }
    let layout = Layout::array::<T>(length).expect("an array that fits the address space");
    // The whole array is initialised at allocation, so length and capacity are equal.
    #[allow(clippy::same_length_and_capacity)]
    // SAFETY: the layout size is not zero because `Zeroed` guarantees a nonzero size for `T`, and
    // the length is above 0. The global allocator returned this memory with exactly this layout,
    // and all its values are valid.
    unsafe {
        let start = alloc_zeroed(layout).cast::<T>();
        if start.is_null() {
            handle_alloc_error(layout);
        }
        advise_huge_pages(start, length);
        Vec::from_raw_parts(start, length, length)
    }
}

/// Returns an array filled with `value`.
pub fn filled<T: Copy>(value: T, length: usize) -> Vec<T> {
    let mut array = Vec::with_capacity(length);
    // Huge pages must be requested before the first write: mapped memory keeps its page size.
    advise_huge_pages(array.as_ptr(), length);
    array.resize(length, value);
    array
}

/// Requests huge pages if the system supports them.
#[cfg(target_os = "linux")]
fn advise_huge_pages<T>(start: *const T, length: usize) {
    const MEMORY_PAGE: usize = 4096;
    let (begin, bytes) = (start as usize, length * size_of::<T>());
    let first = begin.next_multiple_of(MEMORY_PAGE);
    let Some(bytes) = bytes.checked_sub(first - begin).map(|b| b / MEMORY_PAGE * MEMORY_PAGE)
    else {
        return;
    };
    // SAFETY: the range lies inside an allocation, whose contents this advice does not change.
    unsafe { libc::madvise(first as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages<T>(_: *const T, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_any_length_have_the_right_values() {
        for length in [0, 1, 1000, 3 << 20] {
            let zeros = zeroed::<u32>(length);
            assert!(zeros.len() == length && zeros.iter().all(|&n| n == 0));
            let ones = filled(1_u32, length);
            assert!(ones.len() == length && ones.iter().all(|&n| n == 1));
        }
    }
}
