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

_OF_KIND = 5  # numbers
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
    bytes: int

    @property
    def numbers(self) -> int:
        return 1 + int(np.count_nonzero(self.count)) * _OF_KIND

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
        both = self.bytes + other.bytes
        return _Mix(sweeps, self.operation, self.count + other.count, both)


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
    places = [
        _place(kinds.of[np.concatenate([sweeps[n] for n in mix.sweeps])], kind)
        for mix, kind in rows
    ]
    table = ModelMixes(
        sizes=tuple(int(np.count_nonzero(mix.count)) for mix in mixes),
        stream=tuple(int(kinds.stream[kind]) for _, kind in rows),
        back=tuple(int(kinds.back[kind]) for _, kind in rows),
        count=tuple(int(mix.count[kind]) for mix, kind in rows),
        first=tuple(first for first, _ in places),
        last=tuple(last for _, last in places),
    )
    of = {sweep: number for number, mix in enumerate(mixes) for sweep in mix.sweeps}
    return table, [of[sweep] for sweep in range(len(sweeps))]


def _place(ordered: NDArray[np.int64], kind: int) -> tuple[int, int]:
    """Where the first and the last I/O of a kind are among those of a mix."""
    found = np.flatnonzero(ordered == kind)
    return int(found[0]), int(found[-1])


def _first(sweeps: list[NDArray[np.int64]], kinds: KindsOf) -> list[_Mix]:
    """Sweeps of a single kind share its mix from the start; others have their own each."""
    single: dict[int, _Mix] = {}
    several: list[_Mix] = []
    for number, ios in enumerate(sweeps):
        count = np.bincount(kinds.of[ios], minlength=len(kinds.operations)).astype(np.int64)
        used = np.flatnonzero(count).tolist()
        mix = _Mix((number,), kinds.operations[used[0]], count, int((count * kinds.grows).sum()))
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
