//! Uniform addresses: every aligned offset at which the block fits is equally likely.
//!
//! Addresses are drawn with repetition, like fio's `norandommap`, as the PTS requires. The bias of
//! a bounded draw is below range / 2^64 ([`writecliff_base::Prng::below`]). Validated by a
//! chi-square test over all slots, with and without segments (`address` tests).

use writecliff_base::Prng;

use crate::address::SizeClass;
use crate::segments::SegmentMap;

/// Draws an offset relative to the start of the range.
#[inline]
pub(crate) fn draw(random: &mut Prng, class: &SizeClass) -> u64 {
    random.below(class.slots) * class.align
}

/// Draws an offset within segments; a slot never straddles two segments.
#[inline]
pub(crate) fn draw_in_segments(random: &mut Prng, class: &SizeClass, map: &SegmentMap) -> u64 {
    map.draw(random) + random.below(class.slots) * class.align
}
