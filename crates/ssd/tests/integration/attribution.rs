//! Tests latency attribution: it is complete to the nanosecond for any drive and workload, has no
//! effect on the drive, and is correct for workloads with known causes.

use crate::common::{self, BUS_SLOT, LINK_SLOT, PLACING, REDUCTION, SLC, command, config};
use proptest::prelude::*;
use writecliff_base::{Nanos, Prng};
use writecliff_host_interface::{Cause, TimeByCause};
use writecliff_ssd::attribution::Recorder;
use writecliff_ssd::{Attribution, Command, Completion, Drive, Operation, Ssd};

type Attributed = Ssd<Attribution>;

/// Returns a drive with every slot on flash, in order.
fn attributed(changes: &[(&str, &str)]) -> Attributed {
    let mut ssd = Ssd::recording(config(changes)).unwrap();
    fill(&mut ssd, 0);
    ssd
}

/// Writes every slot in order, then `times` as many slots at random, and drains the buffer.
fn fill<R: Recorder>(ssd: &mut Ssd<R>, times: u64) {
    let (slots, mut random) = (u64::from(ssd.ftl().user_slots()), Prng::new(3));
    (0..slots).for_each(|slot| ssd.fast_forward(&common::write(slot, 1)));
    (0..times * slots).for_each(|_| ssd.fast_forward(&common::write(random.below(slots), 1)));
    ssd.end_fast_forward();
    let at = ssd.now();
    ssd.submit(at, command(Operation::Flush, 0, 0, 0));
    ssd.step(Nanos::MAX).unwrap();
    ssd.quiesce();
}

/// Completes all outstanding commands; returns each command's tag and times by cause.
fn finish(ssd: &mut Attributed) -> Vec<(u32, TimeByCause)> {
    let mut all = Vec::new();
    while let Some(done) = ssd.step(Nanos::MAX) {
        all.push((done.tag, *ssd.time_by_cause().unwrap()));
    }
    all
}

/// Submits commands at the same time; returns the times by cause of the command with the highest
/// tag.
fn last_of(ssd: &mut Attributed, commands: &[Command]) -> TimeByCause {
    let at = ssd.now();
    for (tag, command) in (0..).zip(commands) {
        ssd.submit(at, Command { tag, ..*command });
    }
    let last = commands.len() as u32 - 1;
    finish(ssd).into_iter().find(|&(tag, _)| tag == last).unwrap().1
}

fn us(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

#[test]
fn a_read_alone_is_firmware_flash_and_link() {
    let mut ssd = attributed(&[]);
    let spent = last_of(&mut ssd, &[common::read(0, 1)]);
    assert_eq!(spent.of(Cause::Firmware), us(7));
    assert_eq!(spent.of(Cause::Flash), us(51) + Nanos(BUS_SLOT));
    assert_eq!(spent.of(Cause::Link), us(3) + Nanos(LINK_SLOT));
    let parts = [Cause::Firmware, Cause::Flash, Cause::Link].map(|cause| spent.of(cause).0);
    assert_eq!(spent.total().0, parts.iter().sum::<u64>());
}

#[test]
fn a_read_behind_another_waits_for_other_reads_or_the_channel() {
    // Slots 0 and 1 are on the same die; slots 0 and 8 are on different dies of the same channel.
    let same_die = last_of(&mut attributed(&[]), &[common::read(0, 1), common::read(1, 1)]);
    // The expected value is the flash time of the first read, minus the 2 us that the second read
    // waits for decoding.
    assert_eq!(same_die.of(Cause::OtherReads), us(49) + Nanos(BUS_SLOT));
    assert_eq!(same_die.of(Cause::Channel), Nanos::ZERO);
    let both = [common::read(0, 1), common::read(8, 1)];
    let same_channel = last_of(&mut attributed(&[]), &both);
    assert_eq!(same_channel.of(Cause::OtherReads), Nanos::ZERO);
    assert_eq!(same_channel.of(Cause::Channel), Nanos(BUS_SLOT) - us(2));
}

#[test]
fn a_read_waits_for_the_program_of_its_die() {
    let mut ssd = attributed(&[]);
    // The host's four slots fill a program unit. One of the reads waits for the die that programs
    // the unit.
    let dies = [0, 4, 8, 12].map(|slot| common::read(slot, 1));
    let at = ssd.now();
    ssd.submit(at, common::write(64, 4));
    ssd.step(Nanos::MAX).unwrap();
    let waits = |ssd: &mut Attributed| -> Nanos {
        for read in &dies {
            ssd.submit(ssd.now(), *read);
        }
        let all = finish(ssd);
        all.iter().fold(Nanos::ZERO, |sum, (_, spent)| sum + spent.of(Cause::Program))
    };
    let busy = waits(&mut ssd);
    // The transfer takes 40.96 us and the program takes 400 us or 1.2 ms. Both start before the
    // reads are decoded.
    assert!(us(300) < busy && busy < us(1_300), "{busy}");
    assert_eq!(waits(&mut ssd), Nanos::ZERO, "the program has ended");
}

#[test]
fn commands_beyond_the_queue_wait_at_the_host() {
    let mut ssd = attributed(&[]);
    let reads: Vec<Command> = (0..33).map(|n| common::read(16 * n, 1)).collect();
    let at = ssd.now();
    for (tag, read) in (0..).zip(&reads) {
        ssd.submit(at, Command { tag, ..*read });
    }
    let first = ssd.step(Nanos::MAX).unwrap();
    let rest = finish(&mut ssd);
    let last = rest.iter().find(|&&(tag, _)| tag == 32).unwrap().1;
    assert_eq!(last.of(Cause::HostQueue), first.at - at, "an entry is free when one completes");
}

#[test]
fn a_change_of_direction_waits_at_the_barrier() {
    let in_order = ("latency = \"5 us\"", "latency = \"5 us\"\nservice_order = \"barrier\"");
    let mut ssd = attributed(&[in_order]);
    let at = ssd.now();
    ssd.submit(at, common::read(0, 1));
    ssd.submit(at, Command { tag: 1, ..common::write(64, 1) });
    let read = ssd.step(Nanos::MAX).unwrap();
    let write = finish(&mut ssd)[0].1;
    // The drive decodes the write after the read, while the read waits.
    assert_eq!(write.of(Cause::Barrier), read.at - at - us(2 + 7));
}

#[test]
fn retries_are_apart_from_the_read_that_they_repeat() {
    let errors = "[ecc]\nrber = 0.02\nrber_at_rated = 0.02\nretry_gain = 0.05\nretries_max = 5\n\
                  codeword = \"1 KiB\"\ncorrectable = 72\nretry_time = \"60 us\"\n[link]";
    let mut ssd = attributed(&[("[link]", errors)]);
    let spent = last_of(&mut ssd, &[common::read(0, 1)]);
    assert_eq!(spent.of(Cause::ReadRetry), us(60));
    assert_eq!(spent.of(Cause::Flash), us(51) + Nanos(BUS_SLOT));
}

#[test]
fn a_write_through_waits_for_its_own_program() {
    let mut ssd = attributed(&[("write_cache = true", "write_cache = false")]);
    let spent = last_of(&mut ssd, &[common::write(0, 4)]);
    let program = [400, 1_200].map(|time| us(time + 1) + Nanos(4 * BUS_SLOT));
    let others = spent.of(Cause::Firmware) + spent.of(Cause::Link) + spent.of(Cause::Erase);
    assert!(program.contains(&spent.of(Cause::Flash)), "{spent:?}");
    assert_eq!(spent.total(), others + spent.of(Cause::Flash));
}

#[test]
fn writes_wait_for_what_bounds_them() {
    let wait = |changes: &[(&str, &str)], cause: Cause| {
        let mut ssd = Ssd::<Attribution>::recording(config(changes)).unwrap();
        fill(&mut ssd, 2);
        let (mut sum, mut of_cause) = (0, 0);
        let random = Prng::new(9);
        let load = Load { random, depth: 32, read_pct: 0, slots_max: 1, idle: Nanos::ZERO };
        load.run(&mut ssd, 20_000, |ssd, latency| {
            sum += latency.0;
            of_cause += ssd.time_by_cause().unwrap().of(cause).0;
        });
        of_cause as f64 / sum as f64
    };
    let core = ("latency = \"5 us\"", "latency = \"5 us\"\nmapping_update_time = \"500 us\"");
    let slow_core = wait(&[core], Cause::MappingProcessor);
    assert!(slow_core > 0.9, "mapping processor: {slow_core}");
    let plan = "[endurance]\nlife = \"10000 s\"\nreserve = \"0.0001 %\"\n[link]";
    let planned = wait(&[("[link]", plan)], Cause::Throttling);
    assert!(planned > 0.9, "throttling: {planned}");
    let erase = wait(&[("erase = \"3 ms\"", "erase = \"300 ms\"")], Cause::BufferErase);
    assert!(erase > 0.8, "erase: {erase}");
    let flash = wait(&[], Cause::BufferProgram) + wait(&[], Cause::BufferCollection);
    assert!(flash > 0.6, "programs and collection: {flash}");
}

/// Mechanisms that delay commands: one of each type, and some in combination.
const DRIVES: [&[(&str, &str)]; 9] = [
    &[],
    &[("latency = \"5 us\"", "latency = \"5 us\"\nservice_order = \"barrier\"")],
    &[("write_cache = true", "write_cache = false")],
    &[("[flash]", "[flash]\nprogram_suspend = \"20 us\"\nerase_suspend = \"40 us\"")],
    &PLACING,
    &SLC,
    &REDUCTION,
    &[(
        "[link]",
        "[housekeeping]\nmedia_interval = \"2 ms\"\nmedia_time = \"1 ms\"\n\
         checkpoint_interval = \"256 KiB\"\ncheckpoint_time = \"700 us\"\n\
         journal_interval = \"128 KiB\"\njournal_time = \"500 us\"\n\
         hiccup_probability = 0.1\nhiccup_time = \"900 us\"\n[link]",
    )],
    &[(
        "[link]",
        "[power]\nidle = \"2 W\"\nactive = \"1 W\"\nread = \"500 mW\"\n\
         [thermal]\nambient = \"25 C\"\nresistance = \"10 C/W\"\ncapacity = \"0.001 J/C\"\n\
         throttle_at = \"46 C\"\nrecover_at = \"45.5 C\"\nthrottle_factor = 4\nperiod = \"1 ms\"\n\
         [ecc]\nrber = 0.008\nrber_at_rated = 0.009\nretries_max = 5\n\
         codeword = \"1 KiB\"\ncorrectable = 72\nretry_time = \"60 us\"\n[link]",
    )],
];

/// Runs a workload with up to `depth` outstanding commands; returns the issue time, completion time
/// and times by cause of each command.
struct Load {
    random: Prng,
    depth: usize,
    read_pct: u64,
    slots_max: u64,
    idle: Nanos,
}

impl Load {
    fn next(&mut self, user: u64, tag: u32) -> Command {
        let slots = 1 + self.random.below(self.slots_max);
        let slot = self.random.below(user - slots);
        let operation = match self.random.below(200) {
            0 => return command(Operation::Flush, 0, 0, tag),
            1 | 2 => Operation::Trim,
            n if n / 2 < self.read_pct => Operation::Read,
            _ => Operation::Write,
        };
        command(operation, slot, slots as u32, tag)
    }

    /// Runs `count` commands and returns the completion time of each.
    fn run<R: Recorder>(
        mut self,
        ssd: &mut Ssd<R>,
        count: u32,
        mut done: impl FnMut(&Ssd<R>, Nanos),
    ) -> Vec<Completion> {
        let user = u64::from(ssd.ftl().user_slots());
        let mut completions = Vec::new();
        let mut issued: Vec<Nanos> = Vec::new();
        while completions.len() < count as usize {
            while issued.len() < completions.len() + self.depth && issued.len() < count as usize {
                let (now, tag) = (ssd.now(), issued.len() as u32);
                issued.push(now);
                ssd.submit(now, self.next(user, tag));
            }
            let completion = ssd.step(Nanos::MAX).unwrap();
            done(ssd, completion.at - issued[completion.tag as usize]);
            completions.push(completion);
            if completions.len() == issued.len() {
                ssd.idle_until(ssd.now() + self.idle);
            }
        }
        completions
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Tests that, for any drive and workload, the causes of each command add up to its latency,
    /// and that attribution does not change the drive's behaviour.
    #[test]
    fn causes_add_up_and_change_nothing(
        drive in prop::sample::select(&DRIVES[..]),
        seed in 0_u64..1 << 32,
        depth in 1_usize..80,
        read_pct in 0_u64..=100,
        slots_max in 1_u64..40,
        idle_us in 0_u64..20_000,
    ) {
        let load = || Load {
            random: Prng::new(seed), depth, read_pct, slots_max, idle: us(idle_us),
        };
        let mut plain = common::drive(drive);
        fill(&mut plain, 1);
        let mut ssd = Ssd::<Attribution>::recording(config(drive)).unwrap();
        fill(&mut ssd, 1);
        let expected = load().run(&mut plain, 600, |_, _| {});
        let completions = load().run(&mut ssd, 600, |ssd, latency| {
            let spent = ssd.time_by_cause().unwrap();
            assert_eq!(spent.total(), latency, "{spent:?}");
        });
        prop_assert_eq!(completions, expected);
    }
}
