//! Tests drives with more flash than 32-bit page numbers can address: such drives can be described,
//! and simulated scaled down.

use writecliff_base::located::LocatedToml;
use writecliff_base::{Bytes, Nanos};
use writecliff_ssd::{DeviceConfig, Ssd, device_file};

use crate::common::{DRIVE, assert_refused};

/// Returns the drive with round numbers, but with other capacities and numbers of blocks with
/// 65,536 pages each.
fn large(user: &str, blocks: u32) -> String {
    DRIVE
        .replace("40 MiB", user)
        .replace("blocks_per_plane = 64", &format!("blocks_per_plane = {blocks}"))
        .replace("pages_per_block = 16", "pages_per_block = 65536")
}

fn read(text: &str) -> DeviceConfig {
    device_file::read(text, "drive.toml", 1).unwrap()
}

fn scaled(text: &str, scale: f64) -> DeviceConfig {
    let toml = LocatedToml::parse(text, "drive.toml").unwrap();
    let changes = device_file::scaled(&read(text), scale, Bytes(4096));
    read(&toml.changed(&changes).unwrap())
}

#[test]
fn such_a_drive_is_described_whole_and_made_smaller() {
    let text = large("28 TiB", 8192);
    let whole = read(&text);
    assert_eq!(whole.geometry.raw_bytes(), Bytes(32 << 40));
    assert_eq!(whole.ftl.user_slots, 28 << 28);
    let refused = Ssd::new(whole.clone()).err().unwrap();
    assert_eq!(refused.key, "blocks_per_plane");
    assert!(refused.message.contains("cannot be simulated at full capacity"), "{refused}");
    let small = scaled(&text, 16_384.0);
    assert_eq!(small.geometry.raw_bytes(), Bytes(2 << 30));
    assert!((small.overprovisioning() - whole.overprovisioning()).abs() < 1e-6);
    assert!(Ssd::new(small).is_ok());
}

#[test]
fn a_smaller_drive_erases_for_as_long_where_reads_wait_for_steps() {
    let text = DRIVE.replace("pages_per_block = 16", "pages_per_block = 256");
    let text = text.replace("40 MiB", "640 MiB");
    let timing = scaled(&text, 64.0).timing;
    assert_eq!((timing.erase, timing.erase_portions), (Nanos(46_875), 1));
    let part = "rated_cycles = 1000\nerase_suspend = \"20 us\"\nerase_suspend_step = \"1 ms\"";
    let text = text.replace("rated_cycles = 1000", part);
    let timing = scaled(&text, 64.0).timing;
    assert_eq!((timing.erase, timing.erase_portions), (Nanos(3_000_000), 64));
    assert_eq!(timing.erase_suspend_step, Nanos(1_000_000));
    // The longer erase time compensates for rounding the portion count from 2.67 to 3.
    let timing = scaled(&text, 128.0 / 48.0).timing;
    assert_eq!((timing.erase, timing.erase_portions), (Nanos(3_375_000), 3));
}

#[test]
fn the_least_scale_leaves_two_terabytes() {
    let least = |user, blocks| device_file::least_scale(&read(&large(user, blocks)));
    assert!((least("28 TiB", 8192) - 16.0).abs() < 1e-9, "1.92 TB");
    assert!((least("30 TiB", 8192) - 32.0).abs() < 1e-9, "1.03 TB; at 1/16 it would be 2.06");
    assert!((least("14 TiB", 4095) - 1.0).abs() < 1e-9, "15.996 TiB of flash");
    assert!(least("14 TiB", 4096) > 1.0, "16 TiB of flash");
}

#[test]
fn an_slc_cache_has_page_numbers_too() {
    let cache = "[slc_cache]\nsize = \"4 GiB\"\nprogram = \"200 us\"\nread = \"25 us\"\n[link]";
    let text = large("14 TiB", 4095).replace("[link]", cache);
    assert_eq!(Ssd::new(read(&text)).err().unwrap().key, "blocks_per_plane");
    assert!(Ssd::new(scaled(&text, 16_384.0)).is_ok());
}

#[test]
fn no_drive_is_larger_than_a_pebibyte() {
    assert_refused(&large("1025 TiB", 8192), "drive.toml:5", "it must be 4 KiB to 1024 TiB");
    let flash = large("1024 TiB", 1 << 20).replace("dies_per_channel = 2", "dies_per_channel = 64");
    assert_refused(&flash, "blocks_per_plane", "the flash holds more than 2048 TiB");
}
