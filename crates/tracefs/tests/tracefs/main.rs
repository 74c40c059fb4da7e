//! Tests the crate against files and records of kernel 6.18, and against bytes that no kernel
//! writes.
//!
//! `recorded/*.format` and `header_page` are unmodified kernel files. `recorded/pages.hex` contains
//! the buffers of two processors recorded while a file system on a loop device was written: 16
//! writes of 4 KiB with `O_DIRECT`, 5 KiB with one fsync, then fstrim.

mod formats;
mod pages;
mod requests;
mod rwbs;

use writecliff_tracefs::{EventFormat, PageLayout};

pub(crate) const HEADER_PAGE: &str = include_str!("recorded/header_page");

pub(crate) fn formats() -> Vec<EventFormat> {
    [
        include_str!("recorded/block_getrq.format"),
        include_str!("recorded/block_rq_issue.format"),
        include_str!("recorded/block_rq_complete.format"),
        include_str!("recorded/block_rq_requeue.format"),
        include_str!("recorded/block_rq_merge.format"),
        include_str!("recorded/block_bio_frontmerge.format"),
        include_str!("recorded/block_bio_queue.format"),
        include_str!("recorded/block_bio_complete.format"),
    ]
    .map(|text| EventFormat::parse(text).unwrap())
    .to_vec()
}

pub(crate) fn layout() -> PageLayout {
    PageLayout::parse(HEADER_PAGE).unwrap()
}
