"""Drive counters: declared once, in the simulator."""

from __future__ import annotations

import pickle

import pytest

from writecliff.engines.counters import Counters, declared
from writecliff.store.tables import ROUNDS_SCHEMA


def test_every_declared_counter_is_a_stored_column() -> None:
    kinds = {name: str(ROUNDS_SCHEMA.field(name).type) for name in declared()}
    assert set(kinds.values()) == {"int64", "double"}
    assert kinds["held_up_ns"] == "int64"
    assert kinds["erases_mean"] == "double"


def test_a_scaled_drive_scales_what_is_declared_to_scale() -> None:
    small = Counters(host_write_bytes=3, held_up_ns=7, energy_j=0.5, erases_max=9, checkpoints=2)
    whole = small.scaled(2.5)
    assert (whole.host_write_bytes, whole.held_up_ns, whole.energy_j) == (8, 18, 1.25)
    assert (whole.erases_max, whole.checkpoints) == (9, 2)
    assert whole.nand_write_bytes is None


def test_counters_since_are_differences_of_sums_and_levels_as_they_are() -> None:
    before = Counters(host_write_bytes=10, nand_write_bytes=10, erases_max=1)
    after = Counters(host_write_bytes=14, nand_write_bytes=16, erases_max=3, read_retries=5)
    step = after.since(before)
    assert (step.host_write_bytes, step.nand_write_bytes, step.erases_max) == (4, 6, 3)
    assert step.read_retries is None, "unknown before, so unknown in the step"
    assert after.write_amplification_since(before) == 1.5
    assert before.write_amplification_since(before) is None
    assert Counters(nand_write_bytes=5).write_amplification_since(before) is None


def test_what_is_not_declared_is_refused() -> None:
    with pytest.raises(TypeError, match="unknown drive counter: host_writes"):
        Counters(host_writes=1)
    with pytest.raises(AttributeError, match="unknown drive counter: host_writes"):
        _ = Counters().host_writes
    assert pickle.loads(pickle.dumps(Counters(energy_j=1.0))) == Counters(energy_j=1.0)
