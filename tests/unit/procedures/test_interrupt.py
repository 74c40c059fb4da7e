"""Signals that arrive while a record is written: each of them is delivered afterwards."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from writecliff.procedures.framework import interrupt_deferred, terminate_as_interrupt


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("numbers", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGINT)])
def test_a_signal_waits_for_the_end_of_the_block(numbers: tuple[signal.Signals, ...]) -> None:
    done = False
    with pytest.raises(KeyboardInterrupt), terminate_as_interrupt(), interrupt_deferred():
        for number in numbers:
            signal.raise_signal(number)
        done = True
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_ignored_signal_does_not_take_the_place_of_the_next() -> None:
    """Check that a suite member ignores the terminal's SIGINT but obeys its parent's SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(KeyboardInterrupt), terminate_as_interrupt(), interrupt_deferred():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_each_signal_is_delivered() -> None:
    seen: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    with pytest.raises(KeyboardInterrupt), terminate_as_interrupt(), interrupt_deferred():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert seen == [signal.SIGINT]
