//! Tests reclaim groups: tenants do not wait for each other's programs, erases and relocations.

use writecliff_base::{Lpn, Nanos, Prng, SECTOR_BYTES, StreamId};
use writecliff_host_interface::Cause;
use writecliff_host_interface::placement::{DataPlacement, FdpEventType, Refusal};
use writecliff_ssd::{Attribution, Command, Completion, Drive, Ssd, Volatile};

use crate::common::{
    DRIVE, alone, assert_refused, closed_loop, config, drive, read, user_slots, write,
};

/// Two groups, each with one die on both channels.
const GROUPS: [(&str, &str); 4] = [
    ("user_capacity = \"40 MiB\"", "user_capacity = \"36 MiB\""),
    ("streams = 4", "streams = 2"),
    ("power_loss_protection = false", "power_loss_protection = true"),
    ("[link]", "[data_placement]\ninterface = \"nvme-fdp\"\nreclaim_groups = 2\n[link]"),
];
/// Number of slots of the tenant in the first group; the second tenant has the same number of slots
/// after them.
const TENANT: u64 = 4_600;
/// Identifier of a placement handle in the second group.
const SECOND: u16 = 0x8000;

fn to(id: u16, command: Command) -> Command {
    Command { stream: StreamId(id), ..command }
}

/// Both tenants write their whole range, then overwrite it at random.
fn fill(mut fast_forward: impl FnMut(&Command)) {
    let mut random = Prng::new(3);
    for (first, id) in [(0, 0), (TENANT, SECOND)] {
        (first..first + TENANT).for_each(|slot| fast_forward(&to(id, write(slot, 1))));
        for _ in 0..3 * TENANT {
            fast_forward(&to(id, write(first + random.below(TENANT), 1)));
        }
    }
}

fn settled() -> Ssd {
    let mut ssd = drive(&GROUPS);
    fill(|command| ssd.fast_forward(command));
    ssd.end_fast_forward();
    ssd
}

/// Tag of the read commands.
const READ: u32 = 1000;

/// Returns the latencies of 2000 consecutive reads of the first tenant, and the time that they
/// waited at the dies for other operations. Meanwhile, eight writes of the tenant `noise` are
/// outstanding.
fn reads_beside(noise: Option<u64>) -> (Vec<u64>, Nanos) {
    let mut ssd: Ssd<Attribution> = Ssd::recording(config(&GROUPS)).unwrap();
    fill(|command| ssd.fast_forward(command));
    ssd.end_fast_forward();
    let mut random = Prng::new(9);
    let mut next = |tag: u32| -> Option<Command> {
        if tag == READ {
            return Some(Command { tag, ..read(random.below(TENANT), 1) });
        }
        let tenant = noise?;
        let slot = tenant * TENANT + random.below(TENANT);
        Some(Command { tag, ..to(tenant as u16 * SECOND, write(slot, 1)) })
    };
    let (mut times, mut waited, mut begun) = (Vec::new(), Nanos::ZERO, ssd.now());
    for tag in (0..8).chain([READ]) {
        if let Some(command) = next(tag) {
            ssd.submit(ssd.now(), command);
        }
    }
    while times.len() < 2_000 {
        let done = ssd.step(Nanos::MAX).unwrap();
        if done.tag == READ {
            times.push((done.at - begun).0);
            let spent = ssd.time_by_cause().unwrap();
            let of_others = [Cause::Program, Cause::Erase, Cause::Collection];
            waited = of_others.into_iter().fold(waited, |sum, cause| sum + spent.of(cause));
            begun = done.at;
        }
        if let Some(command) = next(done.tag) {
            ssd.submit(done.at, command);
        }
    }
    ssd.ftl().check_invariants().unwrap();
    times.sort_unstable();
    (times, waited)
}

#[test]
fn a_noisy_tenant_delays_reads_of_its_own_group_only() {
    let (quiet, _) = reads_beside(None);
    let (beside, waited) = reads_beside(Some(1));
    assert_eq!(waited, Nanos::ZERO, "reads wait for dies of another group");
    // All groups share the channels and the link, so transfers for some other units and slots may
    // come first.
    let p99 = |times: &[u64]| times[times.len() * 99 / 100];
    assert!(p99(&beside) < p99(&quiet) + 400_000, "{} beside, {} alone", p99(&beside), p99(&quiet));
    let (same_group, waited) = reads_beside(Some(0));
    assert!(waited > Nanos::ZERO);
    assert!(p99(&same_group) > p99(&quiet) + 1_200_000, "{} in the same group", p99(&same_group));
}

#[test]
fn the_configuration_has_the_groups_and_identifiers_name_them() {
    let mut ssd = drive(&GROUPS);
    let c = ssd.administration().fdp_configuration().unwrap();
    assert_eq!(
        (c.rgif, c.reclaim_groups, c.handles.len(), c.placement_handles.len()),
        (1, 2, 2, 2)
    );
    // A reclaim unit is one block of 16 pages of 16 KiB on two of four dies.
    assert_eq!(c.reclaim_unit.0, 2 * 16 * 16_384);
    let status = ssd.administration().fdp_handle_status().unwrap();
    let ids: Vec<(u16, u16)> = status.iter().map(|s| (s.placement_id, s.handle)).collect();
    assert_eq!(ids, [(0, 0), (1, 1), (SECOND, 0), (SECOND + 1, 1)]);
    let group = |ssd: &Ssd, slot| {
        let geometry = ssd.ftl().geometry();
        geometry.group_of(geometry.reclaim_unit_of(ssd.ftl().lookup(Lpn(slot))))
    };
    for (slot, (id, expected)) in (0..).zip([(0, 0), (1, 0), (SECOND, 1), (SECOND + 1, 1)]) {
        alone(&mut ssd, to(id, write(slot, 1)));
        assert_eq!(group(&ssd, slot as u32), expected);
    }
    // Neither this handle nor this group exists, so the write goes to handle 0 in group 0.
    for id in [2, SECOND + 2] {
        alone(&mut ssd, to(id, write(9, 1)));
        assert_eq!(group(&ssd, 9), 0);
    }
    let status = ssd.data_placement_status().unwrap();
    assert_eq!((status.overflow_writes, status.limit), (2, 4));
    assert_eq!(status.fdp.unwrap().events[FdpEventType::InvalidPlacementId as usize], 2);
}

#[test]
fn an_update_concerns_one_group_and_events_all_groups_of_a_handle() {
    let mut ssd = drive(&GROUPS);
    ssd.administration().fdp_enable_events(1, &[FdpEventType::NotFullyWritten], true).unwrap();
    let kinds = ssd.administration().fdp_enabled_events(1).unwrap();
    assert_eq!(kinds, [FdpEventType::NotFullyWritten]);
    for id in [1, SECOND + 1] {
        alone(&mut ssd, to(id, write(u64::from(id & 1), 4)));
    }
    assert_eq!(ssd.administration().fdp_update(&[SECOND + 1]), Ok(1));
    let available: Vec<u64> = ssd
        .administration()
        .fdp_handle_status()
        .unwrap()
        .iter()
        .map(|status| status.available.0 / SECTOR_BYTES)
        .collect();
    assert_eq!(available, [1024, 1024 - 32, 1024, 1024]);
    let events = ssd.administration().fdp_events(true).unwrap();
    assert_eq!((events[0].placement_id, events[0].handle), (Some(SECOND + 1), Some(1)));
    assert!(matches!(
        ssd.administration().fdp_update(&[SECOND + 2]),
        Err(Refusal::InvalidField(_))
    ));
    assert!(
        ssd.administration().fdp_enable_events(SECOND, &FdpEventType::ALL, true).is_err(),
        "no placement handle"
    );
}

#[test]
fn what_does_not_fit_into_a_group_is_counted() {
    let mut ssd = drive(&GROUPS);
    let user = user_slots(&ssd);
    (0..user).for_each(|slot| ssd.fast_forward(&to(SECOND, write(slot, 1))));
    ssd.end_fast_forward();
    ssd.ftl().check_invariants().unwrap();
    let status = ssd.data_placement_status().unwrap();
    let fits = u64::from(ssd.ftl().geometry().slots_per_reclaim_unit) * 64 * 4096;
    assert!(status.overflow_bytes > user * 4096 - fits, "{}", status.overflow_bytes);
    assert_eq!(status.overflow_by_number, [(SECOND, status.overflow_bytes)]);
}

fn mixed(ssd: &mut Ssd, seed: u64) -> Vec<Completion> {
    let (user, mut random) = (user_slots(ssd), Prng::new(seed));
    closed_loop(ssd, 16, 4_000, |_| {
        let (slot, slots) = (random.below(user - 8), 1 + random.below(8) as u32);
        let id = random.below(2) as u16 * SECOND + random.below(2) as u16;
        if random.below(3) == 0 { read(slot, slots) } else { to(id, write(slot, slots)) }
    })
}

#[test]
fn a_restored_drive_goes_on_like_the_one_that_was_saved() {
    let mut through = settled();
    for seed in 0..3 {
        mixed(&mut through, seed);
        let saved = through.save(Vec::new()).unwrap();
        let mut restored = drive(&GROUPS);
        mixed(&mut restored, 77);
        restored.restore_from(&mut &saved[..]).unwrap();
        assert_eq!(restored.save(Vec::new()).unwrap(), saved);
        assert_eq!(mixed(&mut restored, 100 + seed), mixed(&mut through, 100 + seed));
        assert_eq!(restored.ftl().digest(), through.ftl().digest());
    }
    through.quiesce();
    through.idle_until(through.now() + Nanos::from_micros(2_000_000));
    through.ftl().check_invariants().unwrap();
}

#[test]
fn nothing_is_lost_when_the_power_fails() {
    let mut ssd: Ssd<Volatile> = Ssd::recording(config(&GROUPS)).unwrap();
    fill(|command| ssd.fast_forward(command));
    ssd.end_fast_forward();
    let mut random = Prng::new(6);
    for _ in 0..20 {
        for _ in 0..100 {
            let (slot, tenant) = (random.below(2 * TENANT), random.below(2) as u16);
            ssd.submit(ssd.now(), to(tenant * SECOND, write(slot, 1)));
            ssd.step(Nanos::MAX).unwrap();
        }
        let cut = ssd.cut_power();
        assert_eq!(cut.lost_slots, 0);
        ssd.ftl().check_invariants().unwrap();
        assert_eq!(ssd.ftl().mapped_slots(), 2 * TENANT);
    }
}

#[test]
fn groups_that_cannot_be_are_refused() {
    let with = |more: &[(&str, &str)]| {
        let all = GROUPS.iter().chain(more);
        all.fold(DRIVE.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        })
    };
    let refused = |more: &[(&str, &str)], what| assert_refused(&with(more), "drive.toml", what);
    refused(&[("reclaim_groups = 2", "reclaim_groups = 3")], "divide the number of dies (4)");
    refused(&[("reclaim_groups = 2", "reclaim_groups = 0")], "reclaim_groups");
    refused(
        &[("streams = 2", "streams = 100"), ("reclaim_groups = 2", "reclaim_groups = 2")],
        "at most 1",
    );
    refused(&[("nvme-fdp", "nvme-streams")], "requires interface 'nvme-fdp'");
    refused(&[("protection = true", "protection = false")], "power-loss protection");
    refused(&[("gc = \"greedy\"", "gc = \"greedy\"\nspare = \"self-tuned\"")], "global");
    refused(&[("gc = \"greedy\"", "gc = \"greedy\"\nindirection_unit = \"8 KiB\"")], "4 KiB");
    refused(&[("[link]", "[die_parity]\nstripe = 2\n[link]")], "not modelled together");
    refused(&[("36 MiB", "55 MiB")], "reclaim units");
}
