//! Discovery log page (70h; Base 2.1, 5.1.12.3.1).

use crate::page::Page;
use crate::subsystem::Access;

const RECORD: usize = 1024;
/// Subsystem Type: an NVM subsystem without further discovery services.
const NVM_SUBSYSTEM: u8 = 2;
/// Port and controller: the only port, and a controller that the subsystem chooses.
const PORT: u16 = 1;
const DYNAMIC: u16 = 0xffff;
/// Admin Max SQ Size.
const ADMIN_ENTRIES: u16 = 32;

pub(super) fn page(access: &Access) -> Page {
    let mut page = Page::new(RECORD * (1 + access.addresses.len()));
    // The records never change while the server runs, so the generation counter is constant.
    page.u64(0, 1);
    page.u64(8, access.addresses.len() as u64);
    for (n, address) in access.addresses.iter().enumerate() {
        let at = RECORD * (1 + n);
        page.u8(at, address.transport);
        page.u8(at + 1, address.family);
        page.u8(at + 2, NVM_SUBSYSTEM);
        page.u16(at + 4, PORT);
        page.u16(at + 6, DYNAMIC);
        page.u16(at + 8, ADMIN_ENTRIES);
        page.text(at + 32, 32, &address.service);
        page.name(at + 256, 256, &access.nqn);
        page.text(at + 512, 256, &address.address);
    }
    page
}
