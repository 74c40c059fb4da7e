//! Identify command (Base 2.1, 5.1.13; NVM Command Set 1.1, 4.1.5).

pub(crate) mod controller;
mod lists;
mod namespace;

use crate::command::Entry;
use crate::controller::Kind;
use crate::page::Page;
use crate::status::Refusal;
use crate::subsystem::{Answer, Answered, Context, own_namespace};

/// Base specification version implemented by the controller: 2.1.
pub(crate) const VERSION: u32 = 0x0002_0100;
/// Size of every Identify data structure in bytes.
pub(crate) const IDENTIFY_BYTES: usize = 4096;
/// The only endurance group.
pub(crate) const ENDURANCE_GROUP: u16 = 1;

const NAMESPACE: u8 = 0x00;
const CONTROLLER: u8 = 0x01;
const ACTIVE_NAMESPACES: u8 = 0x02;
const DESCRIPTORS: u8 = 0x03;
const NAMESPACE_OF_SET: u8 = 0x05;
const CONTROLLER_OF_SET: u8 = 0x06;
const ACTIVE_NAMESPACES_OF_SET: u8 = 0x07;
const INDEPENDENT_NAMESPACE: u8 = 0x08;
const ALLOCATED_NAMESPACES: u8 = 0x10;
const ALLOCATED_NAMESPACE: u8 = 0x11;
const CONTROLLERS_OF_NAMESPACE: u8 = 0x12;
const CONTROLLERS: u8 = 0x13;
const ENDURANCE_GROUPS: u8 = 0x19;
const ALLOCATED_NAMESPACES_OF_SET: u8 = 0x1a;
const ALLOCATED_NAMESPACE_OF_SET: u8 = 0x1b;
const COMMAND_SETS: u8 = 0x1c;

pub(crate) fn execute(context: &Context<'_>, entry: Entry<'_>) -> Answered {
    let structure = entry.bits(10, 0, 7) as u8;
    let page = match (context.controller.kind, structure) {
        (_, CONTROLLER) => controller::page(context),
        (Kind::Discovery, _) => return Err(Refusal::field(10)),
        (Kind::Io, structure) => io_controller(context, entry, structure)?,
    };
    debug_assert_eq!(page.len(), IDENTIFY_BYTES);
    Ok(Answer::data(page.into_bytes()))
}

fn io_controller(context: &Context<'_>, entry: Entry<'_>, cns: u8) -> Result<Page, Refusal> {
    if of_command_set(cns) && entry.bits(11, 24, 31) != 0 {
        return Err(Refusal::field(11)); // only the NVM command set is supported
    }
    Ok(match cns {
        // The only namespace is allocated and active, so both types of lists are equal.
        NAMESPACE | ALLOCATED_NAMESPACE => {
            own_namespace(entry)?;
            namespace::page(context)
        }
        ACTIVE_NAMESPACES
        | ACTIVE_NAMESPACES_OF_SET
        | ALLOCATED_NAMESPACES
        | ALLOCATED_NAMESPACES_OF_SET => lists::namespaces(entry.nsid())?,
        DESCRIPTORS => {
            own_namespace(entry)?;
            namespace::descriptors(context.drive.identity())
        }
        NAMESPACE_OF_SET | ALLOCATED_NAMESPACE_OF_SET => {
            own_namespace(entry)?;
            namespace::of_nvm_command_set(context)
        }
        INDEPENDENT_NAMESPACE => {
            own_namespace(entry)?;
            namespace::independent(context)
        }
        CONTROLLER_OF_SET => controller::of_nvm_command_set(),
        CONTROLLERS_OF_NAMESPACE => {
            own_namespace(entry)?;
            lists::controllers(&context.shared.ids, entry.bits(10, 16, 31) as u16)
        }
        CONTROLLERS => lists::controllers(&context.shared.ids, entry.bits(10, 16, 31) as u16),
        ENDURANCE_GROUPS => lists::endurance_groups(entry.bits(11, 0, 15) as u16),
        COMMAND_SETS => lists::command_sets(),
        _ => return Err(Refusal::field(10)),
    })
}

fn of_command_set(cns: u8) -> bool {
    matches!(
        cns,
        NAMESPACE_OF_SET
            | CONTROLLER_OF_SET
            | ACTIVE_NAMESPACES_OF_SET
            | ALLOCATED_NAMESPACES_OF_SET
            | ALLOCATED_NAMESPACE_OF_SET
    )
}
