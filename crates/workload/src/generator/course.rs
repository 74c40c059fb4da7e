//! Dependencies between a job's I/Os: block sizes by operation, runs from random addresses, trims
//! before writes, several streams, and logs.

use writecliff_base::{Prng, StreamId};

use super::{Mix, Operation, out_of_two_to_32};
use crate::address::{AddressGenerator, SizeClass, SizeClasses};
use crate::io_log::Replay;
use crate::spec::{AddressKind, JobSpec, Pattern, StreamOrder};

#[derive(Clone, Debug)]
pub(super) struct Course {
    pub(super) replay: Option<Replay>,
    /// Block-size mixes of writes and trims, if they differ from the job's block sizes.
    writes: Option<Sizes>,
    trims: Option<Sizes>,
    runs: Option<Runs>,
    continued: Option<Continued>,
    ordered: Option<Ordered>,
    trim_first: bool,
    /// Offset and length of the trimmed block that will be written next.
    trimmed: Option<(u64, u32)>,
    streams: Streams,
}

#[derive(Clone, Debug)]
struct Sizes {
    first: SizeClass,
    /// Upper threshold of each class out of 2^32; empty if there is only one class.
    upto: Vec<(u64, SizeClass)>,
}

/// Consecutive I/Os from each random address, like fio's `randwrite:N`. Each operation continues
/// after its own last I/O; an I/O that would exceed the range starts at a random address.
#[derive(Clone, Debug)]
struct Runs {
    ios: u64,
    /// Number of I/Os until the next random address.
    left: u64,
    positions: [Option<u64>; 3],
    range: u64,
}

/// Random I/Os, some of which continue at the end of the last I/O of their operation, like fio's
/// `percentage_random`. This models sequential I/Os among the random I/Os of a trace. An I/O that
/// would exceed the range starts at a random address.
#[derive(Clone, Debug)]
struct Continued {
    /// Thresholds out of 2^32 for reads and writes.
    below: [u64; 2],
    positions: [Option<u64>; 2],
    range: u64,
}

/// Random I/Os, where the I/Os of a given size and operation form sequential streams. Each stream
/// starts at a random address and wraps at the end of the range.
#[derive(Clone, Debug)]
struct Ordered {
    /// Operation, length, threshold out of 2^32 and next offset of each stream.
    streams: Vec<(Operation, u32, u64, Option<u64>)>,
    range: u64,
}

#[derive(Clone, Debug)]
struct Streams {
    all: Vec<StreamId>,
    next: usize,
    at_random: bool,
}

impl Course {
    /// Returns the dependencies of a job; `None` if its I/Os are independent draws.
    pub(super) fn of(job: &JobSpec, classes: &SizeClasses, range: u64) -> Option<Box<Self>> {
        let is_mix_of_sizes = job.all_block_sizes().count() > 1;
        let fitted =
            (job.pattern == Pattern::Sequential && is_mix_of_sizes && job.host_zones.is_none())
                || job.addresses.kind == AddressKind::Once;
        let plain = job.writes.is_none()
            && !fitted
            && job.trims.is_none()
            && (job.run_ios == 1 || job.pattern == Pattern::Sequential)
            && !job.continues()
            && !job.trim_first
            && job.streams.is_empty()
            && job.log.is_none()
            && job.model.is_none();
        let sizes = |operation, classes: &Option<Vec<SizeClass>>| {
            classes.as_ref().map(|classes| Sizes {
                first: classes[0],
                upto: Mix::thresholds(job.block_sizes_of(operation), classes),
            })
        };
        (!plain).then(|| {
            Box::new(Self {
                replay: job.log.clone().map(Replay::new).or_else(|| {
                    let model = job.model.as_ref()?;
                    Some(Replay::new(model.expand(job.offset_bytes)))
                }),
                writes: sizes(Operation::Write, &classes.writes),
                trims: sizes(Operation::Trim, &classes.trims),
                runs: (job.run_ios > 1).then_some(Runs {
                    ios: job.run_ios,
                    left: 0,
                    positions: [None; 3],
                    range,
                }),
                ordered: job.has_ordered_sizes().then(|| Ordered::of(job, range)),
                continued: (job.continues() && !job.has_ordered_sizes()).then(|| Continued {
                    below: [job.sequential_read_pct, job.sequential_write_pct]
                        .map(|pct| out_of_two_to_32(pct / 100.0)),
                    positions: [None; 2],
                    range,
                }),
                trim_first: job.trim_first,
                trimmed: None,
                streams: Streams {
                    all: job.streams.iter().copied().map(StreamId).collect(),
                    next: 0,
                    at_random: job.stream_order == StreamOrder::Random,
                },
            })
        })
    }

    /// Returns the next operation, with its offset in the range and its length.
    pub(super) fn next(
        &mut self,
        random: &mut Prng,
        mix: &Mix,
        only: &SizeClass,
        addresses: &mut AddressGenerator,
    ) -> (Operation, u64, u32) {
        if let Some((offset, length)) = self.trimmed.take() {
            return (Operation::Write, offset, length);
        }
        let (drawn, for_size) = mix.draw_operation(random);
        let operation = if self.trim_first { Operation::Trim } else { drawn };
        let mix_of_operation = match operation {
            Operation::Write => self.writes.as_ref(),
            Operation::Trim => self.trims.as_ref(),
            Operation::Read | Operation::Flush => None,
        };
        let (first, upto) = mix_of_operation.map_or((only, &mix.sizes), |mix_of_operation| {
            (&mix_of_operation.first, &mix_of_operation.upto)
        });
        let of = |draw: u64| upto.iter().find(|(below, _)| draw < *below).map_or(first, |(_, c)| c);
        let mut class = of(for_size);
        if let AddressGenerator::Once(map) = addresses {
            let (offset, length) = map.draw(random, class.length);
            self.trimmed = self.trim_first.then_some((offset, length));
            return (operation, offset, length);
        }
        if let Some(room) = addresses.room(operation).filter(|_| !upto.is_empty())
            && upto.iter().any(|(_, class)| u64::from(class.length) <= room)
        {
            // Like fio, draw a new size until the I/O fits before the end of the range.
            while u64::from(class.length) > room {
                class = of(random.next_u64() & 0xffff_ffff);
            }
        }
        let offset = match (&mut self.runs, &mut self.continued, &mut self.ordered) {
            (Some(runs), ..) => runs.next(random, class, operation, addresses),
            (None, Some(continued), _) => continued.next(random, class, operation, addresses),
            (None, None, Some(ordered)) => ordered.next(random, class, operation, addresses),
            (None, None, None) => addresses.next(random, class, operation),
        };
        if self.trim_first {
            self.trimmed = Some((offset, class.length));
        }
        (operation, offset, class.length)
    }

    /// Returns the stream of a write; `None` if the job does not use several streams.
    pub(super) fn stream(&mut self, random: &mut Prng) -> Option<StreamId> {
        let Streams { all, next, at_random } = &mut self.streams;
        if *at_random && !all.is_empty() {
            return Some(all[random.below(all.len() as u64) as usize]);
        }
        let stream = all.get(*next).copied();
        *next = (*next + 1) % all.len().max(1);
        stream
    }
}

impl Continued {
    fn next(
        &mut self,
        random: &mut Prng,
        class: &SizeClass,
        operation: Operation,
        addresses: &mut AddressGenerator,
    ) -> u64 {
        let index = operation as usize;
        let Some(&below) = self.below.get(index) else {
            return addresses.next(random, class, operation);
        };
        let continues = random.next_u64() >> 32 < below;
        let length = u64::from(class.length);
        let room = self.positions[index].filter(|at| continues && at + length <= self.range);
        let offset = room.unwrap_or_else(|| addresses.next(random, class, operation));
        debug_assert!(offset + length <= self.range, "{length} B at {offset}");
        self.positions[index] = Some(offset + length);
        offset
    }
}

impl Ordered {
    fn of(job: &JobSpec, range: u64) -> Self {
        let sizes = |operation| {
            let each = job.block_sizes_of(operation).iter();
            each.filter(|size| size.sequential_pct > 0.0).map(move |size| {
                let below = out_of_two_to_32(size.sequential_pct / 100.0);
                (operation, size.bytes as u32, below, None)
            })
        };
        let streams = [Operation::Read, Operation::Write].into_iter().flat_map(sizes).collect();
        Self { streams, range }
    }

    fn next(
        &mut self,
        random: &mut Prng,
        class: &SizeClass,
        operation: Operation,
        addresses: &mut AddressGenerator,
    ) -> u64 {
        let matches = |stream: &&mut (Operation, u32, u64, Option<u64>)| {
            (stream.0, stream.1) == (operation, class.length)
        };
        let stream = self.streams.iter_mut().find(matches);
        let Some((.., below, position)) = stream else {
            return addresses.next(random, class, operation);
        };
        if random.next_u64() >> 32 >= *below {
            return addresses.next(random, class, operation);
        }
        let length = u64::from(class.length);
        let offset = match *position {
            None => addresses.next(random, class, operation),
            Some(at) if at + length <= self.range => at,
            Some(_) => 0,
        };
        debug_assert!(offset + length <= self.range, "{length} B at {offset}");
        *position = Some(offset + length);
        offset
    }
}

impl Runs {
    fn next(
        &mut self,
        random: &mut Prng,
        class: &SizeClass,
        operation: Operation,
        addresses: &mut AddressGenerator,
    ) -> u64 {
        let length = u64::from(class.length);
        let continued = self.positions[operation as usize].filter(|at| at + length <= self.range);
        let offset = match continued {
            Some(at) if self.left > 0 => at,
            _ => addresses.next(random, class, operation),
        };
        self.left = if self.left > 0 { self.left - 1 } else { self.ios - 1 };
        debug_assert!(offset + length <= self.range, "{length} B at {offset}");
        self.positions[operation as usize] = Some(offset + length);
        offset
    }
}
