//! A parsed device file of any drive type, and device files derived from it.

use writecliff_base::Bytes;
use writecliff_base::located::{Answer, Change, LocatedToml};
use writecliff_disk::device_file as disk;
use writecliff_scm::device_file as scm;
use writecliff_ssd::device_file as ssd;
use writecliff_ssd::device_file::DeriveError;

use crate::AnyConfig;

/// A validated device file.
#[derive(Debug)]
pub struct Device {
    toml: LocatedToml,
    config: AnyConfig,
}

impl Device {
    /// Parses and validates a device file. `file_name` is used in messages only.
    pub fn read(text: &str, file_name: &str) -> Answer<Self> {
        let toml = LocatedToml::parse(text, file_name)?;
        let config = AnyConfig::describe(&toml, 1)?;
        Ok(Self { toml, config })
    }

    /// Returns the parsed device file.
    pub fn toml(&self) -> &LocatedToml {
        &self.toml
    }

    /// Returns the validated configuration.
    pub fn config(&self) -> &AnyConfig {
        &self.config
    }

    /// Returns the configuration with `seed` for the drive's random choices.
    pub fn with_seed(&self, seed: u64) -> AnyConfig {
        let mut config = self.config.clone();
        match &mut config {
            AnyConfig::Ssd(ssd) => ssd.ftl.seed = seed,
            AnyConfig::Disk(disk) => disk.seed = seed,
            AnyConfig::Scm(_) => {} // SCM drives make no random choices.
        }
        config
    }

    /// Returns the supported scale factors in descending order, excluding 1.
    pub fn scales(&self) -> Vec<f64> {
        match &self.config {
            AnyConfig::Ssd(config) => ssd::scales(config),
            AnyConfig::Disk(_) => disk::SCALES.to_vec(),
            AnyConfig::Scm(_) => scm::SCALES.to_vec(),
        }
    }

    /// Returns the smallest scale factor that allows the drive to be simulated; 1 if it can be
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

    /// Returns the drive at 1/`scale` of its size, with the same performance for workloads whose
    /// largest command is `largest_io`. Returns an error if the scale is not supported; see
    /// [`Self::nearest_scale`].
    pub fn scaled(&self, scale: f64, largest_io: Bytes) -> Result<Self, DeriveError> {
        let nearest = self.nearest_scale(scale);
        if (nearest / scale - 1.0).abs() > 1e-9 {
            let name = &self.config.identity().name;
            let message = format!("{name} cannot be scaled by {scale}, only by {nearest}");
            return Err(DeriveError { message, hint: None });
        }
        Ok(self.changed(&match &self.config {
            AnyConfig::Ssd(config) => ssd::scaled(config, scale, largest_io),
            AnyConfig::Disk(config) => disk::scaled(config, scale),
            AnyConfig::Scm(config) => scm::scaled(config, scale),
        })?)
    }

    /// Returns the drive with `streams` streams; if `capacity` is given, the drive has
    /// approximately that capacity and `units` reclaim units.
    pub fn for_streams(
        &self,
        streams: u16,
        capacity: Option<Bytes>,
        units: Option<u64>,
    ) -> Result<Self, DeriveError> {
        let AnyConfig::Ssd(config) = &self.config else {
            let (name, what) = (&self.config.identity().name, self.config.without_flash());
            let message = format!("{name} is {} and has no streams", what.unwrap_or_default());
            return Err(DeriveError { message, hint: None });
        };
        let mut changes = ssd::with_streams(&self.toml, config, streams);
        if let Some(capacity) = capacity {
            changes.extend(ssd::resized(config, capacity, streams, units)?);
        }
        Ok(self.changed(&changes)?)
    }

    fn changed(&self, changes: &[Change]) -> Answer<Self> {
        let text = self.toml.changed(changes).expect("the tables of the changes are in the file");
        Self::read(&text, self.toml.file_name())
    }
}
