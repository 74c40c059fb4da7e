//! Tests power cuts: which requests receive replies, and which data survive.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use writecliff_base::StreamId;
use writecliff_host_interface::Operation;
use writecliff_serve::{
    CutPlan, CutWhen, Done, PowerCut, Refusal, Replies, Request, Served, Session, Tag, Timing,
};

use crate::served::{Kept, session};
use crate::support::{REAL, drive, drive_with, eventually, losing_power, serve};

const PAGE: u64 = 4096;
/// Change that makes a drive lose acknowledged data, which the test drive does not.
const PROTECTED: (&str, &str) = ("power_loss_protection = false", "power_loss_protection = true");
const VOLATILE: (&str, &str) = ("power_loss_protection = true", "power_loss_protection = false");

fn submit(session: &Session, operation: Operation, page: u64, durable: bool) {
    let length = if operation == Operation::Flush { 0 } else { PAGE };
    let offset = if operation == Operation::Flush { 0 } else { page * PAGE };
    let stream = StreamId::DEFAULT;
    let request = Request {
        tag: Tag::Number(page),
        operation,
        offset,
        length,
        stream,
        durable,
        is_zeros: false,
    };
    if operation == Operation::Write {
        session.store(offset, &[page as u8 + 1; PAGE as usize]).unwrap();
    }
    session.batch().submit(request, None).unwrap();
}

/// Writes these pages, each filled with its number plus one, and waits for the drive.
fn write(session: &Session, replies: &Arc<Kept>, pages: std::ops::Range<u64>, durable: bool) {
    let before = replies.count();
    pages.clone().for_each(|page| submit(session, Operation::Write, page, durable));
    let all = before + pages.count();
    eventually("the writes complete", || replies.count() == all);
}

fn cut(served: &Served, seed: u64) -> PowerCut {
    served.seed_cuts(seed);
    served.power_cut().unwrap()
}

fn pages_there(served: &Served, pages: std::ops::Range<u64>) -> u64 {
    let mut data = [0; PAGE as usize];
    let is_there = |page: &u64| {
        served.read(page * PAGE, &mut data).unwrap();
        data == [*page as u8 + 1; PAGE as usize]
    };
    pages.filter(is_there).count() as u64
}

#[test]
fn what_was_flushed_stays_and_the_rest_may_go() {
    for timing in [REAL, Timing::Fast] {
        let mut lost = 0;
        for seed in 0..8 {
            let drive = [drive_with, losing_power][seed as usize % 2](VOLATILE.0, VOLATILE.1);
            let served = serve(drive, timing);
            let (session, replies) = session(&served);
            write(&session, &replies, 0..16, false);
            submit(&session, Operation::Flush, 0, false);
            eventually("the flush completes", || replies.count() == 17);
            write(&session, &replies, 16..24, true); // Write with forced unit access.
            write(&session, &replies, 24..64, false);
            let cut = cut(&served, seed);
            assert_eq!((cut.outstanding, cut.seed), (0, seed));
            assert_eq!(pages_there(&served, 0..24), 24, "seed {seed}");
            assert_eq!(40 - pages_there(&served, 24..64), cut.lost.pages_lost);
            lost += cut.lost.pages_lost;
            served.stop();
        }
        assert!(lost > 0, "a volatile cache loses something in eight cuts");
    }
}

#[test]
fn a_protected_drive_keeps_what_it_has_acknowledged() {
    for timing in [REAL, Timing::Fast] {
        let served = serve(drive_with(PROTECTED.0, PROTECTED.1), timing);
        let (session, replies) = session(&served);
        write(&session, &replies, 0..64, false);
        let cut = cut(&served, 1);
        assert_eq!((cut.lost.pages_open, pages_there(&served, 0..64)), (0, 64));
        served.stop();
    }
}

#[test]
fn what_was_outstanding_is_not_answered_and_sessions_are_over() {
    let served = serve(drive(), Timing::Real { slow_down: 1e4 });
    let (old, replies) = session(&served);
    (0..64).for_each(|page| submit(&old, Operation::Write, page, false));
    let before = replies.count();
    let cut = cut(&served, 1);
    assert!(cut.outstanding > 0);
    assert_eq!(before + cut.outstanding, 64);
    assert!(old.store(0, &[9; 512]).is_err());
    let request = Request {
        tag: Tag::Number(0),
        operation: Operation::Flush,
        offset: 0,
        length: 0,
        stream: StreamId::DEFAULT,
        durable: false,
        is_zeros: false,
    };
    assert_eq!(old.batch().submit(request, None), Err(Refusal::Stopped));
    let (new, answers) = session(&served);
    new.batch().submit(request, None).unwrap();
    served.stop();
    assert_eq!((replies.count(), answers.count()), (before, 1));
}

type Connecting = JoinHandle<(Session, Arc<Kept>)>;

/// A client whose connection, when it ends, is sending data, and that reconnects at once.
struct Reconnects {
    served: Served,
    again: Mutex<Option<Connecting>>,
}

impl Replies for Reconnects {
    fn completed(&self, _: &Done) {}

    fn send(&self) {}

    /// Waits for a reader of the contents, like an outbox whose queue is locked by a thread that
    /// copies data into a reply.
    fn sever(&self) {
        let sending = self.served.clone();
        let sent = std::thread::spawn(move || sending.read(0, &mut [0; 512]));
        eventually("the reply is sent", || sent.is_finished());
        let served = self.served.clone();
        *self.again.lock().unwrap() = Some(std::thread::spawn(move || session(&served)));
    }
}

#[test]
fn who_connects_while_the_power_is_cut_is_served_after_it() {
    for timing in [REAL, Timing::Fast] {
        let served = serve(drive_with(VOLATILE.0, VOLATILE.1), timing);
        let client = Arc::new(Reconnects { served: served.clone(), again: Mutex::default() });
        let old = served.session(Arc::clone(&client) as Arc<dyn Replies>);
        cut(&served, 1);
        let again = client.again.lock().unwrap().take().expect("it connects again");
        let (new, replies) = again.join().unwrap();
        assert!(old.store(0, &[9; 512]).is_err());
        write(&new, &replies, 0..8, false);
        assert_eq!(pages_there(&served, 0..8), 8);
        served.stop();
    }
}

#[test]
fn power_is_cut_at_a_write_before_it_is_answered() {
    let served = serve(drive(), Timing::Fast);
    let (old, replies) = session(&served);
    write(&old, &replies, 0..3, false);
    served.seed_cuts(7);
    served.plan_cuts(CutPlan { when: CutWhen::AtWrite(2), cuts: 1 });
    write(&old, &replies, 3..4, false);
    old.store(4 * PAGE, &[5; PAGE as usize]).unwrap();
    let request = Request {
        tag: Tag::Number(4),
        operation: Operation::Write,
        offset: 4 * PAGE,
        length: PAGE,
        stream: StreamId::DEFAULT,
        durable: false,
        is_zeros: false,
    };
    assert_eq!(old.batch().submit(request, None), Err(Refusal::Stopped));
    let cuts = served.power_cuts();
    assert_eq!((cuts.len(), cuts[0].writes, cuts[0].seed), (1, 5, 7));
    let power = served.snapshot().power;
    assert_eq!((power.cycles, power.unsafe_shutdowns), (2, 1));
    assert_eq!(replies.count(), 4);
    let (new, answers) = session(&served);
    write(&new, &answers, 4..6, false); // The test plans only one power cut.
    assert_eq!(served.power_cuts().len(), 1);
    served.stop();
}

#[test]
fn a_protected_drive_is_busy_until_it_has_found_its_mapping() {
    let served = serve(drive_with(PROTECTED.0, PROTECTED.1), REAL);
    let (old, replies) = session(&served);
    write(&old, &replies, 0..64, false);
    let before = served.with_drive(|drive| drive.now());
    let recovery = cut(&served, 1).recovery.unwrap();
    let rebuild = recovery.rebuild.total();
    assert!(rebuild.0 > 100_000, "at least a page is read: {rebuild:?}");
    assert_eq!((recovery.rebuild.journal.0, recovery.rebuild.scan.0), (0, 0));
    assert!(served.with_drive(|drive| drive.now()).0 >= before.0 + rebuild.0);
    let (new, answers) = session(&served);
    submit(&new, Operation::Read, 3, false);
    eventually("the read completes", || answers.count() == 1);
    assert_eq!(pages_there(&served, 0..64), 64);
    served.stop();
    drop((old, new));
    served.into_parts().unwrap_or_else(|_| panic!("in use")).drive.check_invariants().unwrap();
}
