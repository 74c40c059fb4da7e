"""Pieces of a trace: which I/Os are one sweep, for a given amount of numbers.

Every piece says where in the pass its I/Os are, with an error: how far they are from an even course
through the pass and its addresses. More pieces make the sum of these errors, weighted with bytes,
smaller; the next one goes where it does most. Data that a pass writes once weigh little: if it is
repeated, they are overwritten in order anyway.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from writecliff.synthesis.laid_out import FLUSH, WRITE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from writecliff.synthesis.laid_out import LaidOut

_UNIT_BYTES = 4096
_ONCE_WEIGHT = 0.05  # of a byte that is written once in the pass
_READ_WEIGHT = 0.05  # of a byte that is read: it does not move data
_IO_WEIGHT = 0.05  # of each I/O, in mean I/Os
OF_ROW, _OF_OPEN_ROW = 6, 2  # numbers


@dataclass(frozen=True)
class Piece:
    """A sweep: its I/Os, and before how many of them something is left out."""

    ios: NDArray[np.int64]
    left_out: int

    @property
    def numbers(self) -> int:
        """Of its row in the model."""
        return OF_ROW + (_OF_OPEN_ROW if self.left_out else 0)


@dataclass
class Pieces:
    """The pieces so far, and how each could be divided."""

    trace: LaidOut
    weight: NDArray[np.float64] = field(init=False)
    again: NDArray[np.float64] = field(init=False)
    clock: NDArray[np.float64] = field(init=False)  # bytes written before each I/O, and a little
    _live: dict[int, Piece] = field(default_factory=dict)
    _divisions: list[tuple[float, int, tuple[Piece, Piece]]] = field(default_factory=list)
    _next: int = 0
    numbers: int = 0  # that the pieces take in a model

    def __post_init__(self) -> None:
        of, length = self.trace.operation, self.trace.length
        weight = np.where(of == WRITE, length, length * _READ_WEIGHT).astype(float)
        weight[of == FLUSH] = 0
        self.again = written_again(self.trace)
        weight[of == WRITE] *= _ONCE_WEIGHT + self.again[of == WRITE]
        self.weight = weight + _IO_WEIGHT * max(float(weight.mean()), 1.0)
        written = np.where(of == WRITE, length, 0).astype(float)
        self.clock = np.cumsum(written + max(float(written.mean()), 1.0) * _IO_WEIGHT)

    @property
    def live(self) -> list[Piece]:
        """The pieces so far."""
        return list(self._live.values())

    @property
    def gain(self) -> float:
        """By how much the best division makes the error smaller."""
        return -self._divisions[0][0] if self._divisions else 0.0

    def add(self, piece: Piece) -> None:
        number, self._next = self._next, self._next + 1
        self._live[number] = piece
        self.numbers += piece.numbers
        gain, parts = self._divided(piece.ios)
        if parts is not None and gain > 0:
            heapq.heappush(self._divisions, (-gain, number, parts))

    def divide(self) -> None:
        """Divide the piece whose division has the largest gain."""
        _, number, parts = heapq.heappop(self._divisions)
        self.numbers -= self._live.pop(number).numbers
        for part in parts:
            self.add(part)

    def _divided(self, ios: NDArray[np.int64]) -> tuple[float, tuple[Piece, Piece] | None]:
        """Cut before or after where it is furthest from even."""
        off = self._off(ios)
        at, error = int(off.argmax()), self._error(ios, off)
        best: tuple[float, tuple[Piece, Piece] | None] = (0.0, None)
        if len(ios) < 3:
            return best
        for cut in (at, at + 1):
            if 0 < cut < len(ios):
                parts = ios[:cut], ios[cut:]
                gain = error - sum(self._error(part, self._off(part)) for part in parts)
                if gain > best[0]:
                    best = gain, (self.sweep(parts[0]), self.sweep(parts[1]))
        return best

    def sweep(self, ios: NDArray[np.int64]) -> Piece:
        begin, end = self.trace.offset[ios], (self.trace.offset + self.trace.length)[ios]
        return Piece(ios, left_out=int((begin[1:] > end[:-1]).sum()))

    def _error(self, ios: NDArray[np.int64], off: NDArray[np.float64]) -> float:
        return float((off * self.weight[ios]).sum())

    def _off(self, ios: NDArray[np.int64]) -> NDArray[np.float64]:
        """By how much of the clock each one is from an even course. An address that is off counts
        as the time in which the sweep gets that far."""
        rank, ends = np.arange(len(ios)), [0, max(len(ios) - 1, 1)]
        order, address = self.clock[ios], self.trace.offset[ios].astype(float)
        even = np.round(np.interp(rank, ends, [ios[0], ios[-1]])).astype(np.int64)
        off = np.abs(order - self.clock[even])
        if self.trace.operation[ios[0]] != FLUSH:
            rate = (order[-1] - order[0] + 1) / max(address[-1] - address[0], 1.0)
            off += rate * np.abs(address - np.interp(rank, ends, [address[0], address[-1]]))
        found: NDArray[np.float64] = off
        return found


def written_again(trace: LaidOut) -> NDArray[np.float64]:
    """Share of the bytes of each I/O that more than one write of the pass writes."""
    begin, end = trace.offset // _UNIT_BYTES, -(-(trace.offset + trace.length) // _UNIT_BYTES)
    writes = trace.operation == WRITE
    size = int(end.max()) + 1
    change = np.bincount(begin[writes], minlength=size) - np.bincount(end[writes], minlength=size)
    several = np.concatenate(([0], np.cumsum(np.cumsum(change) > 1)))
    found: NDArray[np.float64] = (several[end] - several[begin]) / np.maximum(end - begin, 1)
    return found


def pieces_of(trace: LaidOut, chains: list[NDArray[np.int64]], numbers: int) -> list[Piece] | None:
    """Pieces of the chains whose rows take at most so many numbers, or None if all chains whole
    already take more."""
    pieces = Pieces(trace)
    for chain in chains:
        pieces.add(pieces.sweep(chain))
    if pieces.numbers > numbers:
        return None
    while pieces.numbers + OF_ROW + 2 * _OF_OPEN_ROW <= numbers and pieces.gain > 0:
        pieces.divide()
    return pieces.live
