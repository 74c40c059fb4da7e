//! Newtypes for indices: a mix-up of logical and physical page numbers (the classic FTL bug) is a
//! type error. All index types have 32 bits: 2^32 mapping units of 4 KiB address 16 TiB.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
        #[derive(Serialize, Deserialize)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl From<$name> for u32 {
            #[inline]
            fn from(id: $name) -> Self {
                id.0
            }
        }

        // SAFETY: the type is a transparent wrapper around an integer.
        unsafe impl crate::memory::Zeroed for $name {}

        impl $name {
            /// The "none" value in dense arrays, where an `Option` would double the memory use.
            pub const NONE: Self = Self(u32::MAX);

            /// Returns the ID as an index into a dense array.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// Returns `true` for [`Self::NONE`].
            #[inline]
            pub const fn is_none(self) -> bool {
                self.0 == u32::MAX
            }
        }
    };
}

id! {
    /// Logical page number: the host address in mapping units.
    Lpn
}
id! {
    /// Physical page address: a mapping-unit slot on flash, `reclaim unit × slots + slot`.
    Ppa
}
id! {
    /// Reclaim unit: blocks, one per plane of every die, that are written and erased together.
    ReclaimUnitId
}

/// Stream (placement identifier). Stream 0 is the default for hosts that assign none.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default, Serialize, Deserialize,
)]
#[repr(transparent)]
pub struct StreamId(pub u16);

impl StreamId {
    /// Stream for writes without a placement directive.
    pub const DEFAULT: Self = Self(0);

    /// Returns the ID as an index into a dense array.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
