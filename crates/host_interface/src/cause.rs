//! Causes of latency: resources that a command waits for or uses.

use writecliff_base::Nanos;

macro_rules! causes {
    ($($(#[doc = $meaning:literal])+ $variant:ident $name:literal;)*) => {
        /// A cause of latency. At any time, a command's latency has exactly one cause.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Cause {
            $($(#[doc = $meaning])+ $variant,)*
        }

        impl Cause {
            /// All causes, in the order in which [`TimeByCause`] stores them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Returns the cause's name in snake case, as in results.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns a one-line description of the cause, for reference pages.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($meaning),+).trim_ascii(),)*
                }
            }
        }
    };
}

causes! {
    /// waiting at the host for an entry of the drive's queue
    HostQueue "host_queue";
    /// waiting for commands of the other direction, on drives with such a barrier
    Barrier "barrier";
    /// waiting for the link, and transfer over the link
    Link "link";
    /// waiting for the firmware, and firmware processing
    Firmware "firmware";
    /// waiting for the mapping core to catch up
    MappingProcessor "mapping_processor";
    /// waiting for a mapping table segment that the controller does not hold
    MappingTable "mapping_table";
    /// write buffer full; the die that made room was programming host data
    BufferProgram "buffer_program";
    /// write buffer full; the die that made room was erasing
    BufferErase "buffer_erase";
    /// write buffer full; the die that made room was relocating data
    BufferCollection "buffer_collection";
    /// write buffer full; the die that made room was reading, idle or busy with other work
    BufferOther "buffer_other";
    /// waiting for a program in progress on the die
    Program "program";
    /// waiting for an erase in progress on the die
    Erase "erase";
    /// waiting for reads and programs on the die that relocate or merge data: garbage collection,
    /// wear levelling, folding
    Collection "collection";
    /// waiting for reads of other commands on the die
    OtherReads "other_reads";
    /// waiting for the channel between die and controller
    Channel "channel";
    /// the command's own reads, or the program of its own data
    Flash "flash";
    /// repeating the command's own reads with other read voltages
    ReadRetry "read_retry";
    /// waiting for media work, journal or checkpoint, or delayed by an internal task
    Housekeeping "housekeeping";
    /// delayed by thermal or endurance throttling, or by a limit on active dies
    Throttling "throttling";
}

/// Number of causes.
pub const CAUSES: usize = Cause::ALL.len();

/// Time by cause, in the order of [`Cause::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeByCause(pub [Nanos; CAUSES]);

impl TimeByCause {
    /// Adds `time` to the total of `cause`.
    #[inline]
    pub fn add(&mut self, cause: Cause, time: Nanos) {
        self.0[cause as usize] += time;
    }

    /// Returns the time spent on `cause`.
    pub fn of(&self, cause: Cause) -> Nanos {
        self.0[cause as usize]
    }

    /// Returns the sum over all causes.
    pub fn total(&self) -> Nanos {
        self.0.iter().fold(Nanos::ZERO, |sum, &time| sum + time)
    }
}
