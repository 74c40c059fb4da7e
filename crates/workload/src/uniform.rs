//! Uniform addresses: every aligned offset at which the block fits is equally likely.
//!
//! Drawn with repetition, like fio's `norandommap`, which the PTS asks for. Bias of the bounded
//! draw below range / 2^64 ([`writecliff_base::Prng::below`]). What it must pass: a chi-square test
//! over all slots, with and without segments (`address` tests).

use writecliff_base::Prng;

use crate::address::SizeClass;
use crate::segments::SegmentMap;

/// An offset relative to the begin of the range.
#[inline]
pub(crate) fn draw(random: &mut Prng, class: &SizeClass) -> u64 {
    random.below(class.slots) * class.align
}

/// The same within segments; a slot never straddles two of them.
#[inline]
pub(crate) fn draw_in_segments(random: &mut Prng, class: &SizeClass, map: &SegmentMap) -> u64 {
    map.draw(random) + random.below(class.slots) * class.align
}
