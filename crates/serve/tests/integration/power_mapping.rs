//! Tests that power cuts lose the same data in contents and mapping.

use std::sync::Arc;

use writecliff_base::{Lpn, Nanos, Ppa, Prng, StreamId};
use writecliff_host_interface::{Command, Content, Operation};
use writecliff_runner::AnyDrive;
use writecliff_serve::{CutPlan, CutWhen, Refusal, Request, Served, Session, Tag, Timing};

use crate::served::{Kept, session};
use crate::support::{REAL, eventually, losing_power, losing_power_and, serve};

const PAGE: u64 = 4096;
const VOLATILE: (&str, &str) = ("power_loss_protection = true", "power_loss_protection = false");
/// Drives with an SLC cache, with and without a bypass when the cache is full.
const CACHED: [&str; 2] = [
    "[slc_cache]\nsize = \"2 MiB\"\nprogram = \"200 us\"\nread = \"25 us\"\n",
    "[slc_cache]\nsize = \"2 MiB\"\nprogram = \"200 us\"\nread = \"25 us\"\nbypass = false\n",
];

/// A client workload where each write has unique data.
struct Load {
    served: Served,
    session: Session,
    replies: Arc<Kept>,
    random: Prng,
    /// Number of pages that the workload uses.
    pages: u64,
    written: u64,
    sent: usize,
}

impl Load {
    fn new(served: &Served, pages: u64, seed: u64) -> Self {
        let (session, replies) = session(served);
        let (served, random) = (served.clone(), Prng::new(seed));
        Self { served, session, replies, random, pages, written: 0, sent: 0 }
    }

    fn submit(&mut self, operation: Operation, page: u64, pages: u64) {
        let (offset, length) = (page * PAGE, pages * PAGE);
        if operation == Operation::Write {
            self.written += 1;
            let data = self.written.to_le_bytes().repeat(length as usize / 8);
            self.session.store(offset, &data).unwrap();
        }
        let stream = StreamId(self.random.below(4) as u16);
        let request = Request {
            tag: Tag::Number(0),
            operation,
            offset,
            length,
            stream,
            durable: false,
            is_zeros: false,
        };
        self.session.batch().submit(request, None).unwrap();
        self.sent += 1;
    }

    /// Sends requests. Outstanding requests to the same page have no order; if `spread`, each page
    /// has at most one outstanding request.
    fn some(&mut self, requests: u64, spread: bool) {
        for n in 0..requests {
            let blocks = self.pages / 8;
            let block = if spread { n * 7919 % blocks } else { self.random.below(blocks) };
            let page = 8 * block + if spread { 0 } else { self.random.below(8) };
            let page = page.min(self.pages - 8);
            let pages = 1 + self.random.below(8);
            match self.random.below(40) {
                0 => self.submit(Operation::Flush, 0, 0),
                1..4 => self.submit(Operation::Trim, page, pages),
                _ => self.submit(Operation::Write, page, pages),
            }
            if !spread {
                self.wait();
            }
        }
    }

    fn wait(&self) {
        eventually("all completes", || self.replies.count() == self.sent);
    }

    /// Returns the address of each page, and the number of the write that its data belong to.
    fn state(&self) -> Vec<(Ppa, u64)> {
        let lookup = |page| {
            let location = |drive: &mut AnyDrive| {
                drive.volatile().unwrap().storage().location(Lpn(page as u32))
            };
            let mut data = [0; 8];
            self.served.read(page * PAGE, &mut data).unwrap();
            (self.served.with_drive(location), u64::from_le_bytes(data))
        };
        (0..self.pages).map(lookup).collect()
    }
}

fn is_sound(served: Served) {
    served.stop();
    served.into_parts().unwrap_or_else(|_| panic!("in use")).drive.check_invariants().unwrap();
}

/// Tests that, without garbage collection, a page's address changes in a power cut if and only if
/// its data change.
#[test]
fn a_page_that_has_lost_data_is_mapped_to_those_that_it_has() {
    for timing in [REAL, Timing::Fast] {
        let (mut lost, mut came_back) = (0, 0);
        for seed in 0..6 {
            let served = serve(losing_power(VOLATILE.0, VOLATILE.1), timing);
            served.seed_cuts(seed);
            let mut load = Load::new(&served, 256, seed);
            load.some(60, false);
            load.wait();
            let before = load.state();
            let cut = served.power_cut().unwrap();
            let after = load.state();
            for (page, (before, after)) in before.iter().zip(&after).enumerate() {
                assert_eq!(before.0 == after.0, before.1 == after.1, "{timing:?} {seed} {page}");
                assert_eq!(after.0.is_none(), after.1 == 0, "{timing:?} {seed} {page}");
                lost += u64::from(before.1 != after.1);
                came_back += u64::from(before.1 == 0 && after.1 != 0);
            }
            assert!(cut.recovery.unwrap().rebuild.scan > Nanos::ZERO, "open units are scanned");
            drop(load);
            is_sound(served);
        }
        assert!(lost > 20 && came_back > 0, "{timing:?}: {lost} lost, {came_back} came back");
    }
}

/// Returns a drive that is full except for its first pages, with an additional section.
fn worn_in(first: u64, section: &str) -> AnyDrive {
    let mut drive = losing_power_and(&[VOLATILE, ("[link]", &format!("{section}[link]"))]);
    let (operation, content) = (Operation::Write, Content::default());
    let (length, stream, queue, tag) = (PAGE as u32, StreamId::DEFAULT, 0, 0);
    for page in first..drive.capacity().0 / PAGE {
        let offset = page * PAGE;
        drive.fast_forward(&Command { operation, offset, length, content, stream, queue, tag });
    }
    drive.end_fast_forward();
    drive
}

/// Tests that, with garbage collection and outstanding requests, a page has data if and only if it
/// is mapped.
#[test]
fn a_worn_in_drive_agrees_with_its_contents_after_many_cuts() {
    const PAGES: u64 = 1024;
    let kinds =
        ["", CACHED[0], CACHED[1]].map(|section| [(REAL, section), (Timing::Fast, section)]);
    for (timing, section) in kinds.into_iter().flatten() {
        let served = serve(worn_in(PAGES, section), timing);
        served.seed_cuts(3);
        let mut lost = 0;
        for round in 0..3 {
            let mut load = Load::new(&served, PAGES, round);
            for _ in 0..6 {
                load.wait();
                load.some(120, true);
            }
            lost += served.power_cut().unwrap().lost.pages_lost;
            let differ =
                load.state().iter().filter(|entry| entry.0.is_none() != (entry.1 == 0)).count();
            assert_eq!(differ, 0, "{timing:?} {round} {section}");
        }
        assert!(lost > 0, "{timing:?} {section}");
        let counters = served.with_drive(|drive| drive.volatile().unwrap().counters());
        let moved =
            counters.slc_cache.map_or(counters.gc_moved_bytes, |slc| slc.folds + slc.bypassed);
        assert!(moved > 0, "garbage was collected, or data came to the main flash");
        is_sound(served);
    }
}

#[test]
fn a_purge_leaves_nothing_to_undo() {
    for timing in [REAL, Timing::Fast] {
        let served = serve(losing_power(VOLATILE.0, VOLATILE.1), timing);
        let mut load = Load::new(&served, 256, 1);
        load.some(60, false);
        load.wait();
        served.purge().unwrap();
        load.submit(Operation::Write, 3, 1);
        load.submit(Operation::Flush, 0, 0);
        load.wait();
        assert_eq!(served.power_cut().unwrap().lost.pages_lost, 0);
        let mapped = |(page, entry): (usize, &(Ppa, u64))| (!entry.0.is_none()).then_some(page);
        assert_eq!(load.state().iter().enumerate().filter_map(mapped).collect::<Vec<_>>(), [3]);
        drop(load);
        is_sound(served);
    }
}

#[test]
fn a_write_whose_data_were_purged_is_refused() {
    let served = serve(losing_power(VOLATILE.0, VOLATILE.1), Timing::Fast);
    let (session, _replies) = session(&served);
    let (operation, stream) = (Operation::Write, StreamId::DEFAULT);
    let request = Request {
        tag: Tag::Number(0),
        operation,
        offset: 0,
        length: PAGE,
        stream,
        durable: false,
        is_zeros: false,
    };
    session.store(0, &[1; PAGE as usize]).unwrap();
    served.purge().unwrap();
    assert_eq!(session.batch().submit(request, None), Err(Refusal::Purged));
    session.store(0, &[2; PAGE as usize]).unwrap();
    session.batch().submit(request, None).unwrap();
    let mut data = [0; PAGE as usize];
    served.read(0, &mut data).unwrap();
    assert_eq!(data[0], 2);
    drop(session);
    is_sound(served);
}

#[test]
fn cuts_come_as_planned() {
    for timing in [REAL, Timing::Fast] {
        let served = serve(losing_power(VOLATILE.0, VOLATILE.1), timing);
        let (from, to) = (Nanos::from_micros(2_000), Nanos::from_micros(20_000));
        served.plan_cuts(CutPlan { when: CutWhen::After(from, to), cuts: 3 });
        eventually("three cuts come with nobody there", || served.power_cuts().len() == 3);
        let cuts = served.power_cuts();
        assert_eq!([0, 1, 2].map(|n| cuts[n].seed), [0, 1, 2]);
        assert!(cuts[0].wall >= from);
        assert!(cuts.windows(2).all(|two| two[1].wall >= two[0].wall + from), "{cuts:?}");
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert_eq!(served.power_cuts().len(), 3);
        is_sound(served);
    }
    let served = serve(losing_power(VOLATILE.0, VOLATILE.1), Timing::Fast);
    served.plan_cuts(CutPlan { when: CutWhen::AtWrite(5), cuts: 2 });
    for _ in 0..2 {
        let mut load = Load::new(&served, 64, 1);
        (0..4).for_each(|page| load.submit(Operation::Write, page, 1));
        load.session.store(0, &[1; 512]).unwrap();
        let (operation, stream) = (Operation::Write, StreamId::DEFAULT);
        let fifth = Request {
            tag: Tag::Number(0),
            operation,
            offset: 0,
            length: 512,
            stream,
            durable: false,
            is_zeros: false,
        };
        assert!(load.session.batch().submit(fifth, None).is_err());
    }
    let writes: Vec<_> = served.power_cuts().iter().map(|cut| cut.writes).collect();
    assert_eq!(writes, [5, 10]);
}
