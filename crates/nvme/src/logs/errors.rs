//! Error Information (01h; Base 2.1, 5.1.12.1.2), newest first.

use crate::controller::{Controller, ERROR_ENTRIES};
use crate::page::Page;

const ENTRY: usize = 64;
/// Parameter Error Location of an error that is not about one byte of the command.
const NO_LOCATION: u16 = 0xffff;

pub(super) fn page(controller: &Controller) -> Page {
    let mut page = Page::new(ENTRY * ERROR_ENTRIES);
    for (n, error) in controller.errors.iter().enumerate() {
        let at = ENTRY * n;
        page.u64(at, error.number);
        page.u16(at + 8, error.queue);
        page.u16(at + 10, error.command_id);
        page.u16(at + 12, error.status.field(false));
        page.u16(at + 14, error.byte.map_or(NO_LOCATION, u16::from));
        page.u64(at + 16, error.lba);
        page.u32(at + 24, error.nsid);
        page.u8(at + 31, error.opcode);
        page.u8(at + 63, 1); // the version that has the opcode
    }
    page
}
