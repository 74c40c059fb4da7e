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
    continued: Option<Continued>,
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

/// Random I/Os, some of which continue at the end of an earlier I/O.
#[derive(Clone, Debug)]
struct Continued {
    order: Order,
    range: u64,
}

/// Selection of the I/Os that continue, and the positions where they do.
#[derive(Clone, Debug)]
enum Order {
    /// Consecutive I/Os from each random address, like fio's `randwrite:N`; `left` remain until the
    /// next random address. Each operation continues after its own last I/O. An I/O that would
    /// exceed the range starts at a random address.
    Runs { ios: u64, left: u64, positions: [Option<u64>; 3] },
    /// Some I/Os continue at the end of the last I/O of their operation, like fio's
    /// `percentage_random`. This models sequential I/Os among the random I/Os of a trace. An I/O
    /// that would exceed the range starts at a random address. The thresholds out of 2^32 are for
    /// reads and writes.
    Shares { below: [u64; 2], positions: [Option<u64>; 2] },
    /// I/Os of a given size and operation form sequential streams. Each stream starts at a random
    /// address and wraps at the end of the range. A stream has an operation, a length, a threshold
    /// out of 2^32 and its next offset.
    Streams(Vec<(Operation, u32, u64, Option<u64>)>),
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
                continued: Continued::of(job, range),
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
        let offset = match &mut self.continued {
            Some(continued) => continued.next(random, class, operation, addresses),
            None => addresses.next(random, class, operation),
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
    fn of(job: &JobSpec, range: u64) -> Option<Self> {
        let order = if job.run_ios > 1 {
            Order::Runs { ios: job.run_ios, left: 0, positions: [None; 3] }
        } else if job.has_ordered_sizes() {
            let sizes = |operation| {
                let each = job.block_sizes_of(operation).iter();
                each.filter(|size| size.sequential_pct > 0.0).map(move |size| {
                    let below = out_of_two_to_32(size.sequential_pct / 100.0);
                    (operation, size.bytes as u32, below, None)
                })
            };
            let operations = [Operation::Read, Operation::Write].into_iter();
            Order::Streams(operations.flat_map(sizes).collect())
        } else if job.continues() {
            let shares = [job.sequential_read_pct, job.sequential_write_pct];
            let below = shares.map(|pct| out_of_two_to_32(pct / 100.0));
            Order::Shares { below, positions: [None; 2] }
        } else {
            return None;
        };
        Some(Self { order, range })
    }

    fn next(
        &mut self,
        random: &mut Prng,
        class: &SizeClass,
        operation: Operation,
        addresses: &mut AddressGenerator,
    ) -> u64 {
        let (index, length, range) = (operation as usize, u64::from(class.length), self.range);
        let fits = |at: &u64| at + length <= range;
        let (position, at) = match &mut self.order {
            Order::Runs { ios, left, positions } => {
                let at = positions[index].filter(|at| *left > 0 && fits(at));
                *left = left.checked_sub(1).unwrap_or(*ios - 1);
                (&mut positions[index], at)
            }
            Order::Shares { below, positions } if index < below.len() => {
                let continues = random.next_u64() >> 32 < below[index];
                let at = positions[index].filter(|at| continues && fits(at));
                (&mut positions[index], at)
            }
            Order::Shares { .. } => return addresses.next(random, class, operation),
            Order::Streams(streams) => {
                let mut all = streams.iter_mut();
                let stream = all.find(|stream| (stream.0, stream.1) == (operation, class.length));
                let Some((.., position)) = stream.filter(|s| random.next_u64() >> 32 < s.2) else {
                    return addresses.next(random, class, operation);
                };
                let at = position.map(|at| if fits(&at) { at } else { 0 });
                (position, at)
            }
        };
        let offset = at.unwrap_or_else(|| addresses.next(random, class, operation));
        debug_assert!(offset + length <= range, "{length} B at {offset}");
        *position = Some(offset + length);
        offset
    }
}
