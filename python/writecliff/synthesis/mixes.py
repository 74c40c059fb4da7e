"""Mixes of sizes: sweeps whose I/Os have like sizes share one, so that there are few of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from writecliff.workload.io_model import ModelMixes

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Numbers of a kind in a mix: stream, distance, I/Os, begins; of others the first; the last, groups.
_OF_KIND, _OF_OTHER, _OF_OTHERS = 4, 1, 2
_OF_SURPRISE = 0.1  # mean I/Os for each nat


@dataclass(frozen=True)
class KindsOf:
    """The kind of each I/O, and what kinds are; columns."""

    of: NDArray[np.int64]
    stream: NDArray[np.int64]
    back: NDArray[np.int64]  # bytes before the end of the I/O before
    grows: NDArray[np.int64]  # bytes by which it gets further
    operations: str  # a letter each


@dataclass(frozen=True)
class _Mix:
    """Sweeps of an operation, with the I/Os of each kind that they have in all."""

    sweeps: tuple[int, ...]
    operation: str
    count: NDArray[np.int64]
    begins: NDArray[np.int64]  # of them, I/Os with which a sweep begins
    bytes: int

    @property
    def numbers(self) -> int:
        others = self.count - self.begins
        kinds, one, several = ((values > least).sum() for values, least in (
            (self.count, 0), (others, 0), (others, 1)
        ))  # fmt: skip
        return 1 + int(kinds * _OF_KIND + one * _OF_OTHER + several * _OF_OTHERS)

    @property
    def ios(self) -> int:
        return int(self.count.sum())

    @property
    def surprise(self) -> float:
        """What drawing the streams at random leaves open: entropy times I/Os, in nats."""
        used = self.count[self.count > 0].astype(float)
        return float((used * np.log(used.sum() / used)).sum())

    def with_other(self, other: _Mix) -> _Mix:
        sweeps = tuple(sorted(self.sweeps + other.sweeps))
        count, begins = self.count + other.count, self.begins + other.begins
        return _Mix(sweeps, self.operation, count, begins, self.bytes + other.bytes)


def mixes_of(
    sweeps: list[NDArray[np.int64]], kinds: KindsOf, numbers_max: int
) -> tuple[ModelMixes, list[int]]:
    """The mixes, and the one of each sweep. Of mixes with neighbouring mean sizes, those that are
    most alike are put together, until the table has at most `numbers_max` numbers or one mix for
    each operation is left."""
    mixes = sorted(_first(sweeps, kinds), key=lambda of: (of.operation, of.bytes / of.ios))
    costs = [_cost(a, b) for a, b in pairwise(mixes)]
    numbers = sum(mix.numbers for mix in mixes)
    while numbers > numbers_max and costs and min(costs) < inf:
        at = costs.index(min(costs))
        both = mixes[at].with_other(mixes[at + 1])
        numbers += both.numbers - mixes[at].numbers - mixes[at + 1].numbers
        mixes[at : at + 2] = [both]
        del costs[at]
        for left in (at - 1, at):
            if 0 <= left < len(costs):
                costs[left] = _cost(mixes[left], mixes[left + 1])
    mixes.sort(key=lambda mix: mix.sweeps)
    rows = [(mix, kind) for mix in mixes for kind in np.flatnonzero(mix.count).tolist()]
    places = [place for mix in mixes for place in _places(mix, sweeps, kinds)]
    table = ModelMixes(
        sizes=tuple(int(np.count_nonzero(mix.count)) for mix in mixes),
        stream=tuple(int(kinds.stream[kind]) for _, kind in rows),
        back=tuple(int(kinds.back[kind]) for _, kind in rows),
        count=tuple(int(mix.count[kind]) for mix, kind in rows),
        begins=tuple(int(mix.begins[kind]) for mix, kind in rows),
        first=tuple(place.first for place in places if place.ios > 0),
        last=tuple(place.last for place in places if place.ios > 1),
        groups=tuple(place.groups for place in places if place.ios > 1),
    )
    of = {sweep: number for number, mix in enumerate(mixes) for sweep in mix.sweeps}
    return table, [of[sweep] for sweep in range(len(sweeps))]


@dataclass(frozen=True)
class _Place:
    """Where the I/Os of a kind that begin no sweep are among those of a mix."""

    ios: int  # that begin no sweep
    first: int  # of these, among all of the mix
    last: int
    groups: int  # of I/Os that follow each other

    @property
    def at(self) -> NDArray[np.float64]:
        """Where the model puts them, as `Spread::places` of `io_model/mixes.rs` does."""
        group = np.arange(self.ios) * self.groups // max(self.ios, 1)
        apart = max(self.last - self.first - max(self.ios // self.groups - 1, 0), 0)
        found: NDArray[np.float64] = self.first + apart * group / max(self.groups - 1, 1)
        return found


def _places(mix: _Mix, sweeps: list[NDArray[np.int64]], kinds: KindsOf) -> list[_Place]:
    """The place of each kind of a mix. I/Os of a kind are in as many groups as in the trace, or
    each by itself, whichever keeps better which kind follows which."""
    others = kinds.of[np.concatenate([sweeps[n][1:] for n in mix.sweeps])]
    used = np.flatnonzero(mix.count).tolist()
    found = [np.flatnonzero(others == kind) for kind in used]

    def places(groups: list[int]) -> list[_Place]:
        ends = [(int(at[0]), int(at[-1])) if len(at) else (0, 0) for at in found]
        return [
            _Place(len(at), *between, many)
            for at, between, many in zip(found, ends, groups, strict=True)
        ]

    alone = places([max(len(at), 1) for at in found])
    together = places([int((np.diff(at) > 1).sum()) + 1 for at in found])
    of = np.searchsorted(used, others)
    return min(alone, together, key=lambda choice: _differently_followed(choice, of))


def _differently_followed(places: list[_Place], of: NDArray[np.int64]) -> int:
    """How many I/Os of a mix are followed by another kind in the model than in the trace."""
    kinds = len(places)
    drawn = np.repeat(np.arange(kinds), [place.ios for place in places])
    drawn = drawn[np.argsort(np.concatenate([place.at for place in places]), kind="stable")]
    pairs = [
        np.bincount(one[:-1] * kinds + one[1:], minlength=kinds * kinds) for one in (drawn, of)
    ]
    return int(np.abs(pairs[0] - pairs[1]).sum())


def _first(sweeps: list[NDArray[np.int64]], kinds: KindsOf) -> list[_Mix]:
    """Sweeps of a single kind share its mix from the start; others have their own each."""
    single: dict[int, _Mix] = {}
    several: list[_Mix] = []
    for number, ios in enumerate(sweeps):
        count = np.bincount(kinds.of[ios], minlength=len(kinds.operations)).astype(np.int64)
        used = np.flatnonzero(count).tolist()
        begins = np.zeros_like(count)
        begins[kinds.of[ios[0]]] = 1
        bytes_ = int((count * kinds.grows).sum())
        mix = _Mix((number,), kinds.operations[used[0]], count, begins, bytes_)
        if len(used) > 1:
            several.append(mix)
        elif used[0] in single:
            single[used[0]] = single[used[0]].with_other(mix)
        else:
            single[used[0]] = mix
    return [*single.values(), *several]


def _cost(a: _Mix, b: _Mix) -> float:
    """What putting both together costs for each number that it saves: bytes that one gets from the
    other, and a little of what is left open besides."""
    if a.operation != b.operation:
        return inf
    both = a.with_other(b)
    moved = abs(a.bytes * b.ios - b.bytes * a.ios) / both.ios
    more_open = (both.surprise - a.surprise - b.surprise) * both.bytes / both.ios
    return (moved + _OF_SURPRISE * more_open) / (a.numbers + b.numbers - both.numbers)
