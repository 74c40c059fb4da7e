//! Tests that, for any host input, the controller does not panic, returns no more data than the
//! host's buffer holds, and continues to serve.

use proptest::collection::vec;
use proptest::prelude::*;
use writecliff_nvme::command::MAX_TRANSFER;
use writecliff_nvme::{Entry, Outcome, PlacementInterface, Request, Status, Subsystem, Work};

use crate::support::*;

/// Generates entries that are likely to be accepted: known opcodes, small fields, the drive's
/// namespace.
fn entry() -> impl Strategy<Value = [u8; 64]> {
    let opcode = prop_oneof![
        any::<u8>(),
        proptest::sample::select(vec![
            0x00, 0x01, 0x02, 0x05, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x12, 0x18, 0x19, 0x1a, 0x1d,
            0x7f, 0x80, 0x84,
        ]),
    ];
    let dword = || prop_oneof![0..4u32, 0..0x200u32, any::<u32>(), Just(u32::MAX)];
    let fctype = prop_oneof![Just(1u32), Just(1), Just(u32::MAX), 0..8u32, any::<u32>()];
    (opcode, fctype, vec(dword(), 6), any::<u16>()).prop_map(|(opcode, nsid, dwords, id)| {
        let mut command = Command::new(opcode).nsid(nsid).id(id);
        for (n, value) in dwords.into_iter().enumerate() {
            command = command.dword(10 + n, value);
        }
        command.0
    })
}

fn placement() -> impl Strategy<Value = PlacementInterface> {
    prop_oneof![
        Just(PlacementInterface::None),
        Just(PlacementInterface::Streams),
        Just(PlacementInterface::Fdp(fdp_configuration())),
    ]
}

/// Checks the invariants of every byte range, because the drive relies on them.
fn check(work: &Work) {
    let spans = match work {
        Work::Read(span)
        | Work::Write { span, .. }
        | Work::WriteZeroes { span, .. }
        | Work::Compare(span)
        | Work::Verify(span) => vec![*span],
        Work::Deallocate(spans) => spans.clone(),
        Work::Flush => Vec::new(),
    };
    for span in spans {
        assert!(span.length > 0 && span.length % 512 == 0 && span.offset % 512 == 0);
        assert!(span.offset.checked_add(span.length).unwrap() <= CAPACITY);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_command_is_answered(
        placement in placement(),
        commands in vec((entry(), 0..3u16, 0..5000usize, any::<bool>()), 1..40),
        format in 0..2u8,
    ) {
        let mut host = Host::new(placement);
        host.drive().lba_format = format;
        for (entry, queue, buffer, fails) in commands {
            let data = vec![entry[40]; buffer];
            let buffer = buffer as u32;
            match host.send(queue, Command(entry), &data, buffer) {
                Outcome::Done(reply) => {
                    prop_assert!(reply.data.len() <= buffer as usize);
                    prop_assert!(reply.data.is_empty() || reply.status == Status::SUCCESS);
                    prop_assert!(reply.status.name().is_some());
                    prop_assert_eq!(reply.entry(9)[12..14].to_vec(), entry[2..4].to_vec());
                }
                Outcome::Held => prop_assert_eq!((entry[0], queue), (0x0c, 0)),
                Outcome::Work(ticket, work) => {
                    check(&work);
                    let reply = if fails {
                        host.subsystem.fail(ticket, Status::INTERNAL_ERROR)
                    } else {
                        ticket.success()
                    };
                    prop_assert_eq!(reply.status == Status::SUCCESS, !fails);
                }
            }
            prop_assert!(host.subsystem.poll().len() <= 8);
        }
        // The controller still works after it is enabled again.
        configure(&mut host.subsystem, host.controller, 0);
        configure(&mut host.subsystem, host.controller, ENABLED);
        prop_assert_eq!(host.page(identify(1)).len(), 4096);
        host.connect_queue(1);
        host.work(blocks(0x02, 0, 1), &[]);
    }

    #[test]
    fn any_connect_is_answered(
        command in entry(),
        is_connect in any::<bool>(),
        data in vec(any::<u8>(), 0..1100),
    ) {
        let drive = TestDrive::new(PlacementInterface::None);
        let mut subsystem = Subsystem::new(drive, access());
        let mut command = Command(command);
        if is_connect {
            command = connect_command(command.0[40].into(), command.0[44].into());
        }
        let request = Request { entry: Entry(&command.0), data: &data, buffer: MAX_TRANSFER };
        let (association, reply) = subsystem.connect(request);
        prop_assert_eq!(association.is_some(), reply.status == Status::SUCCESS);
    }
}
