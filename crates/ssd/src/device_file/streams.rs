//! Changes the number of streams of a drive.

use writecliff_base::located::{Change, List, LocatedToml};

use crate::DeviceConfig;

const SOURCE: &str = "for the number of streams";

/// Returns the changes to the device file `toml` for `streams` streams. The buffer must hold the
/// open program units of all streams. Placement limits are preserved as far as they fit.
pub fn with_streams(toml: &LocatedToml, config: &DeviceConfig, streams: u16) -> Vec<Change> {
    let mut changes = vec![Change::new("ftl.streams", i64::from(streams), SOURCE)];
    let groups = config.geometry.reclaim_groups as u16;
    let needed = config.buffer_needed(streams.saturating_mul(groups));
    if needed > config.controller.write_buffer {
        changes.push(Change::new("controller.write_buffer", format!("{} B", needed.0), SOURCE));
    }
    let Some(section) = &config.data_placement else { return changes };
    let (open, handles) = ("data_placement.open_streams", "data_placement.handles");
    if toml.has(open) {
        let limit = section.open_streams.min(streams - 1);
        changes.push(Change::new(open, i64::from(limit), SOURCE));
    }
    if toml.has(handles) {
        let fitting = section.handles.iter().filter(|&&handle| handle < streams);
        let mut fitting: Vec<i64> = fitting.map(|&handle| handle.into()).collect();
        if fitting.is_empty() {
            fitting.push(0);
        }
        changes.push(Change::new(handles, fitting.into_iter().collect::<List>(), SOURCE));
    }
    changes
}
