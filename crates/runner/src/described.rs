//! A parsed device file of any kind, and device files derived from it.

use writecliff_base::Bytes;
use writecliff_base::located::{Answer, Change, LocatedError, LocatedToml};
use writecliff_disk::device_file as disk;
use writecliff_scm::device_file as scm;
use writecliff_ssd::device_file as ssd;
use writecliff_ssd::device_file::ResizeError;

use crate::AnyConfig;

/// A checked device file.
#[derive(Debug)]
pub struct Device {
    toml: LocatedToml,
    config: AnyConfig,
}

/// Error of deriving a drive.
#[derive(Debug)]
pub enum DeriveError {
    /// Error at a line of the device file.
    Located(LocatedError),
    /// The file cannot be scaled to this size.
    Resize(ResizeError),
    /// The operation is only for drives with flash; the text names the kind of this drive.
    NotFlash(String),
    /// Invalid scale, with the values that are accepted.
    Scale(String),
}

impl From<LocatedError> for DeriveError {
    fn from(error: LocatedError) -> Self {
        Self::Located(error)
    }
}

impl Device {
    /// Parses and checks a device file. `file_name` is used in messages only.
    pub fn read(text: &str, file_name: &str) -> Answer<Self> {
        let toml = LocatedToml::parse(text, file_name)?;
        let config = AnyConfig::describe(&toml, 1)?;
        Ok(Self { toml, config })
    }

    /// Returns the parsed device file.
    pub fn toml(&self) -> &LocatedToml {
        &self.toml
    }

    /// Returns the checked configuration.
    pub fn config(&self) -> &AnyConfig {
        &self.config
    }

    /// Returns the configuration with `seed` for the drive's random choices.
    pub fn with_seed(&self, seed: u64) -> AnyConfig {
        let mut config = self.config.clone();
        match &mut config {
            AnyConfig::Ssd(ssd) => ssd.ftl.seed = seed,
            AnyConfig::Disk(disk) => disk.seed = seed,
            AnyConfig::Scm(_) => {} // makes no random choice
        }
        config
    }

    /// Returns the supported scale factors, largest first, without 1.
    pub fn scales(&self) -> Vec<f64> {
        match &self.config {
            AnyConfig::Ssd(config) => ssd::scales(config),
            AnyConfig::Disk(_) => disk::SCALES.to_vec(),
            AnyConfig::Scm(_) => scm::SCALES.to_vec(),
        }
    }

    /// Returns the smallest scale factor at which the drive can be simulated; 1 if it can be
    /// simulated unscaled.
    pub fn least_scale(&self) -> f64 {
        match &self.config {
            AnyConfig::Ssd(config) => ssd::least_scale(config),
            AnyConfig::Disk(_) | AnyConfig::Scm(_) => 1.0,
        }
    }

    /// Returns the supported scale nearest to `scale`.
    pub fn nearest_scale(&self, scale: f64) -> f64 {
        match &self.config {
            AnyConfig::Ssd(config) => ssd::nearest_scale(config, scale),
            AnyConfig::Disk(_) | AnyConfig::Scm(_) => {
                let distance = |candidate: &f64| (candidate / scale).ln().abs();
                let every = self.scales().into_iter().chain([1.0]);
                every.min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(1.0)
            }
        }
    }

    /// Returns the drive at 1/`scale` of its size, with the same performance for loads whose
    /// largest command is `largest_io`. Fails if the scale is not supported; see
    /// [`Self::nearest_scale`].
    pub fn scaled(&self, scale: f64, largest_io: Bytes) -> Result<Self, DeriveError> {
        let nearest = self.nearest_scale(scale);
        if (nearest / scale - 1.0).abs() > 1e-9 {
            let name = &self.config.identity().name;
            let message = format!("{name} cannot be scaled by {scale}; {nearest} is possible");
            return Err(DeriveError::Scale(message));
        }
        Ok(self.changed(&match &self.config {
            AnyConfig::Ssd(config) => ssd::scaled(config, scale, largest_io),
            AnyConfig::Disk(config) => disk::scaled(config, scale),
            AnyConfig::Scm(config) => scm::scaled(config, scale),
        })?)
    }

    /// Returns the drive with `streams` streams and, if `capacity` is given, about that capacity
    /// and `units` reclaim units.
    pub fn for_streams(
        &self,
        streams: u16,
        capacity: Option<Bytes>,
        units: Option<u64>,
    ) -> Result<Self, DeriveError> {
        let AnyConfig::Ssd(config) = &self.config else {
            let (name, what) = (&self.config.identity().name, self.config.without_flash());
            let message = format!("{name} is {} and has no streams", what.unwrap_or_default());
            return Err(DeriveError::NotFlash(message));
        };
        let mut changes = ssd::with_streams(&self.toml, config, streams);
        if let Some(capacity) = capacity {
            let resized = ssd::resized(config, capacity, streams, units);
            changes.extend(resized.map_err(DeriveError::Resize)?);
        }
        Ok(self.changed(&changes)?)
    }

    fn changed(&self, changes: &[Change]) -> Answer<Self> {
        let text = self.toml.changed(changes).expect("the tables of the changes are in the file");
        Self::read(&text, self.toml.file_name())
    }
}
