//! A device file of either kind, parsed once: what it describes, and device files derived from it.

use writecliff_base::Bytes;
use writecliff_base::located::{Change, LocatedError, LocatedToml};
use writecliff_disk::device_file as disk;
use writecliff_ssd::device_file as ssd;
use writecliff_ssd::device_file::ResizeError;

use crate::AnyConfig;

/// A checked device file.
#[derive(Debug)]
pub struct Device {
    toml: LocatedToml,
    config: AnyConfig,
}

/// Why there is no drive of another size: the wish, or the device file that came of it.
#[derive(Debug)]
pub enum DeriveError {
    Located(LocatedError),
    Resize(ResizeError),
    NotFlash(String),
}

impl From<LocatedError> for DeriveError {
    fn from(error: LocatedError) -> Self {
        Self::Located(error)
    }
}

impl Device {
    /// Parse and check a device file. `file_name` is for messages only.
    pub fn read(text: &str, file_name: &str) -> Result<Self, LocatedError> {
        let toml = LocatedToml::parse(text, file_name)?;
        let config = AnyConfig::describe(&toml, 1)?;
        Ok(Self { toml, config })
    }

    pub fn toml(&self) -> &LocatedToml {
        &self.toml
    }

    pub fn config(&self) -> &AnyConfig {
        &self.config
    }

    /// The description of a drive whose own random choices follow from `seed`.
    pub fn with_seed(&self, seed: u64) -> AnyConfig {
        let mut config = self.config.clone();
        match &mut config {
            AnyConfig::Ssd(ssd) => ssd.ftl.seed = seed,
            AnyConfig::Disk(disk) => disk.seed = seed,
        }
        config
    }

    /// Factors by which the drive can be made smaller, the largest first; 1 is not among them.
    pub fn scales(&self) -> Vec<f64> {
        match &self.config {
            AnyConfig::Ssd(config) => ssd::scales(config),
            AnyConfig::Disk(_) => disk::SCALES.to_vec(),
        }
    }

    /// The drive at 1/`scale` of its size, which answers as the whole one would under loads whose
    /// largest command is `largest_io`.
    pub fn scaled(&self, scale: f64, largest_io: Bytes) -> Result<Self, LocatedError> {
        self.changed(&match &self.config {
            AnyConfig::Ssd(config) => ssd::scaled(config, scale, largest_io),
            AnyConfig::Disk(config) => disk::scaled(config, scale),
        })
    }

    /// The drive with so many streams and, where `capacity` is given, with about that capacity and
    /// about so many reclaim `units`.
    pub fn for_streams(
        &self,
        streams: u16,
        capacity: Option<Bytes>,
        units: Option<u64>,
    ) -> Result<Self, DeriveError> {
        let AnyConfig::Ssd(config) = &self.config else {
            let name = &self.config.identity().name;
            return Err(DeriveError::NotFlash(format!("{name} is a hard disk and has no streams")));
        };
        let mut changes = ssd::with_streams(&self.toml, config, streams);
        if let Some(capacity) = capacity {
            let resized = ssd::resized(config, capacity, streams, units);
            changes.extend(resized.map_err(DeriveError::Resize)?);
        }
        Ok(self.changed(&changes)?)
    }

    fn changed(&self, changes: &[Change]) -> Result<Self, LocatedError> {
        let text = self.toml.changed(changes).expect("the tables of the changes are in the file");
        Self::read(&text, self.toml.file_name())
    }
}
