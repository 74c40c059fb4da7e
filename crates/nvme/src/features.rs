//! Get Features and Set Features (Base 2.1, 5.1.11 and 5.1.25).

use crate::admin::whole_page;
use crate::command::{ALL_NAMESPACES, Entry, NSID, Request};
use crate::controller::{Features, Kind};
use crate::drive::Identity;
use crate::events::{NAMESPACE_NOTICES, SMART_WARNINGS};
use crate::fdp;
use crate::page::read;
use crate::status::{Refusal, Status};
use crate::subsystem::{Answer, Answered, Context};

const ARBITRATION: u8 = 0x01;
const POWER: u8 = 0x02;
const TEMPERATURE: u8 = 0x04;
const ERROR_RECOVERY: u8 = 0x05;
const WRITE_CACHE: u8 = 0x06;
const QUEUES: u8 = 0x07;
const WRITE_ATOMICITY: u8 = 0x0a;
const ASYNC_EVENTS: u8 = 0x0b;
const TIMESTAMP: u8 = 0x0e;
const KEEP_ALIVE: u8 = 0x0f;
const COMMAND_SET_PROFILE: u8 = 0x19;
pub(crate) const FDP: u8 = 0x1d;
const FDP_EVENTS: u8 = 0x1e;
const HOST_IDENTIFIER: u8 = 0x81;

// Feature capabilities, as returned by Get Features.
const SAVEABLE: u32 = 1;
pub(crate) const OF_NAMESPACE: u32 = 1 << 1;
const CHANGEABLE: u32 = 1 << 2;

/// Granularity that keep-alive timeouts are rounded up to (KAS).
const KEEP_ALIVE_UNIT_MS: u32 = 1000;

/// Returns the capabilities of a feature; `None` if the controller does not support it.
pub(crate) fn capabilities(feature: u8, kind: Kind, identity: &Identity) -> Option<u32> {
    if kind == Kind::Discovery {
        return matches!(feature, ASYNC_EVENTS | KEEP_ALIVE).then_some(CHANGEABLE);
    }
    match feature {
        ARBITRATION | POWER | TEMPERATURE | QUEUES | WRITE_ATOMICITY | ASYNC_EVENTS | TIMESTAMP
        | KEEP_ALIVE | COMMAND_SET_PROFILE => Some(CHANGEABLE),
        ERROR_RECOVERY => Some(CHANGEABLE | OF_NAMESPACE),
        WRITE_CACHE => identity.volatile_cache.then_some(CHANGEABLE),
        FDP => identity.fdp().map(|_| CHANGEABLE | SAVEABLE),
        FDP_EVENTS => identity.fdp().map(|_| CHANGEABLE | OF_NAMESPACE),
        HOST_IDENTIFIER => Some(0),
        _ => None,
    }
}

fn capability(context: &Context<'_>, feature: u8) -> Result<u32, Refusal> {
    let capability = capabilities(feature, context.controller.kind, context.drive.identity());
    capability.ok_or(Refusal::field(10))
}

pub(crate) fn get(context: &mut Context<'_>, request: Request<'_>) -> Answered {
    let entry = request.entry;
    let feature = entry.bits(10, 0, 7) as u8;
    let supported = capability(context, feature)?;
    if supported & OF_NAMESPACE != 0 && entry.nsid() != NSID && entry.nsid() != ALL_NAMESPACES {
        return Err(Refusal::at(Status::INVALID_NAMESPACE, 4));
    }
    let features = match entry.bits(10, 8, 10) {
        0 => context.controller.features,
        // Only features that never change are saveable, so a saved value equals the default.
        1 | 2 => {
            if feature == WRITE_CACHE {
                return Ok(Answer::result(1));
            }
            Features::new(context.controller.kind, context.drive.identity())
        }
        3 => return Ok(Answer::result(supported)),
        _ => return Err(Refusal::field(10)),
    };
    match feature {
        TIMESTAMP => {
            whole_page(request, 8)?;
            // The timestamp has 48 bits, in milliseconds. Bits 3:1 of the next byte are its origin.
            let origin = u64::from(features.timestamp.is_some());
            let timestamp = features.timestamp_of(context.drive.now()) | origin << 49;
            Ok(Answer::data(timestamp.to_le_bytes().to_vec()))
        }
        FDP => {
            fdp::own_group(entry)?;
            Ok(Answer::result(1)) // The feature is enabled with configuration 0.
        }
        FDP_EVENTS => fdp::get_events(context, request),
        HOST_IDENTIFIER => {
            let is_extended = entry.flag(11, 0); // Required over fabrics.
            if !is_extended {
                return Err(Refusal::field(11));
            }
            whole_page(request, 16)?;
            Ok(Answer::data(context.controller.host.id.to_vec()))
        }
        _ => value(context, entry, feature, &features).map(Answer::result),
    }
}

fn value(
    context: &Context<'_>,
    entry: Entry<'_>,
    feature: u8,
    features: &Features,
) -> Result<u32, Refusal> {
    Ok(match feature {
        ARBITRATION => features.arbitration,
        POWER => features.workload_hint << 5,
        TEMPERATURE => {
            let is_under = threshold(entry)?;
            u32::from(if is_under { features.under } else { features.over })
        }
        ERROR_RECOVERY => features.error_recovery,
        WRITE_CACHE => u32::from(context.drive.write_cache()),
        QUEUES => {
            let queues = u32::from(features.queues.unwrap_or(context.shared.access.queues) - 1);
            queues | queues << 16
        }
        WRITE_ATOMICITY => features.write_atomicity,
        ASYNC_EVENTS => features.async_events,
        KEEP_ALIVE => features.keep_alive_ms,
        _ => 0, // Command Profile 0 selects the NVM command set.
    })
}

pub(crate) fn set(context: &mut Context<'_>, request: Request<'_>) -> Answered {
    let entry = request.entry;
    let feature = entry.bits(10, 0, 7) as u8;
    let supported = capability(context, feature)?;
    let is_saved = entry.flag(10, 31);
    if is_saved && supported & SAVEABLE == 0 {
        return Err(Refusal::at(Status::FEATURE_NOT_SAVEABLE, 40));
    }
    if feature == HOST_IDENTIFIER {
        return Err(Status::SEQUENCE_ERROR.into()); // The Connect command sets the host identifier.
    }
    if supported & OF_NAMESPACE == 0 && !matches!(entry.nsid(), 0 | ALL_NAMESPACES) {
        return Err(Refusal::at(Status::FEATURE_NOT_OF_NAMESPACE, 4));
    }
    if supported & OF_NAMESPACE != 0 && !matches!(entry.nsid(), NSID | ALL_NAMESPACES) {
        return Err(Refusal::at(Status::INVALID_NAMESPACE, 4));
    }
    match feature {
        WRITE_CACHE => context.drive.set_write_cache(entry.flag(11, 0)),
        QUEUES => return queues(context, entry),
        TIMESTAMP => {
            let bytes = read(request.first(8)?, 0).unwrap_or_default();
            let milliseconds = u64::from_le_bytes(bytes) & ((1 << 48) - 1);
            context.controller.features.timestamp = Some((milliseconds, context.drive.now()));
        }
        FDP => {
            fdp::own_group(entry)?;
            // The host cannot change the configuration of an endurance group that has a namespace.
            return Err(Status::SEQUENCE_ERROR.into());
        }
        FDP_EVENTS => fdp::set_events(context, request)?,
        COMMAND_SET_PROFILE if entry.bits(11, 0, 8) != 0 => {
            return Err(Refusal::at(Status::COMMAND_SET_REJECTED, 44));
        }
        COMMAND_SET_PROFILE => {}
        _ => set_value(&mut context.controller.features, entry, feature)?,
    }
    Ok(Answer::OK)
}

fn set_value(features: &mut Features, entry: Entry<'_>, feature: u8) -> Result<(), Refusal> {
    match feature {
        ARBITRATION => features.arbitration = entry.dword(11),
        POWER => {
            if entry.bits(11, 0, 4) != 0 {
                return Err(Refusal::field(11)); // The controller has only power state 0.
            }
            features.workload_hint = entry.bits(11, 5, 7);
        }
        TEMPERATURE => {
            let value = entry.bits(11, 0, 15) as u16;
            let is_under = threshold(entry)?;
            *(if is_under { &mut features.under } else { &mut features.over }) = value;
        }
        ERROR_RECOVERY => {
            let reports_deallocated = entry.flag(11, 16); // Unsupported (see NSFEAT).
            if reports_deallocated {
                return Err(Refusal::field(11));
            }
            features.error_recovery = entry.bits(11, 0, 15);
        }
        // AWUN equals AWUPF, so disabling normal write atomicity has no effect.
        WRITE_ATOMICITY => features.write_atomicity = entry.bits(11, 0, 0),
        ASYNC_EVENTS => {
            features.async_events = entry.dword(11) & (SMART_WARNINGS | NAMESPACE_NOTICES);
        }
        _ => {
            let rounded = u64::from(entry.dword(11)).next_multiple_of(KEEP_ALIVE_UNIT_MS.into());
            features.keep_alive_ms = u32::try_from(rounded).unwrap_or(u32::MAX);
        }
    }
    Ok(())
}

/// Returns `true` for the under threshold; only the composite temperature has thresholds.
fn threshold(entry: Entry<'_>) -> Result<bool, Refusal> {
    let (sensor, kind) = (entry.bits(11, 16, 19), entry.bits(11, 20, 21));
    let is_known = matches!(sensor, 0 | 0xf) && kind <= 1;
    if is_known { Ok(kind == 1) } else { Err(Refusal::field(11)) }
}

/// Executes Number of Queues (0's based): the host gets the requested number, up to the limit.
fn queues(context: &mut Context<'_>, entry: Entry<'_>) -> Answered {
    let wanted = entry.bits(11, 0, 15).max(entry.bits(11, 16, 31));
    if entry.bits(11, 0, 15) == 0xffff || entry.bits(11, 16, 31) == 0xffff {
        return Err(Refusal::field(11));
    }
    if !context.controller.queues.is_empty() {
        return Err(Status::SEQUENCE_ERROR.into());
    }
    let granted = (wanted + 1).min(u32::from(context.shared.access.queues));
    context.controller.features.queues = Some(granted as u16);
    Ok(Answer::result((granted - 1) | (granted - 1) << 16))
}
