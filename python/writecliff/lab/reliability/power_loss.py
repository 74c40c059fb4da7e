"""Power-loss protection, tested by power cuts right after the n-th write since a flush.

This is the worst time for a cut, because all data in the buffer are confirmed. One drive has
capacitors, one has no capacitors, and one has neither capacitors nor an enabled write cache.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

from writecliff import _native
from writecliff.devices import describe_device, open_device
from writecliff.lab.reliability.drive import FROM_FILE, variant
from writecliff.lab.reliability.model import Curve, Finding, Plot, Result, Setting
from writecliff.native_errors import as_user_errors
from writecliff.parallel import map_side_by_side

VARIANTS = ("with capacitors", "without capacitors", "without, write cache off")
CUTS = 8  # Number of power cuts per write count.
QUEUE_DEPTH = 32
WRITES_MAX = 1 << 14
Row = dict[str, Any]


def run(text: str, file_name: str, log: Callable[[str], None]) -> Result:
    """Cut the power of the three drives.

    Raises:
        ConfigError: If power cuts of this drive are not modelled.
    """
    device = describe_device(text, file_name)
    key, cache = "controller.power_loss_protection", "controller.write_cache"
    texts = (
        variant(text, {key: "true", cache: "true"}),
        variant(text, {key: "false", cache: "true"}),
        variant(text, {key: "false", cache: "false"}),
    )
    counts = _counts()
    log(f"3 drives, {len(counts)} power cuts each")

    def cut(variant_text: str) -> list[Row]:
        with as_user_errors():
            opened = open_device(variant_text, file_name)
            return _native.power_losses(opened, 1, QUEUE_DEPTH, counts)

    memory = 8 * device.flash_bytes("power-loss-protection") // 4096
    losses = map_side_by_side(cut, [(drive_text,) for drive_text in texts], memory)
    worst = [max(row["lost_writes"] for row in rows) for rows in losses]
    share = 100 * _iops(losses[2]) / _iops(losses[0])
    return Result(
        name="power-loss-protection",
        title="Power-loss protection: data lost in a power cut",
        drive=device.name,
        scale=1.0,
        intro=f"Random 4 KiB writes, {QUEUE_DEPTH} outstanding, after a flush; the power fails "
        "when the n-th write is confirmed.",
        verdict=f"Without capacitors a cut loses up to {worst[1]:,} confirmed writes "
        f"({worst[1] * 4:,} KiB); with capacitors {worst[0]:,}. With the write cache disabled no "
        f"confirmed write is lost either, at {share:.0f} % of the speed.",
        variants=VARIANTS,
        findings=(
            Finding("confirmed writes lost, at most", worst),
            Finding("cuts that lost any", [
                sum(row["lost_writes"] > 0 for row in rows) for rows in losses]),
            Finding("cuts", [len(rows) for rows in losses]),
            Finding("program units torn, at most", _most(losses, "torn_units")),
            Finding("4 KiB slots saved by the capacitors, at most", _most(losses, "saved_slots")),
            Finding("time that they had to last, at most (ms)", [
                round(value / 1e6, 2) for value in _most(losses, "hold_up_ns")]),
            Finding("time until the drive is ready again, at most (ms)", [
                round(value / 1e6, 2) for value in _most(losses, "rebuild_ns")]),
            Finding("write IOPS until the cut", [round(_iops(rows)) for rows in losses]),
        ),
        plots=(
            Plot("lost", "Confirmed writes that are lost, the worst of the cuts",
                 "Writes confirmed since the flush", "Lost writes (4 KiB)",
                 _curves(losses, "lost_writes", 1.0), x_log=True),
            Plot("saved", "Data programmed with the energy of the capacitors",
                 "Writes confirmed since the flush", "Slots saved (4 KiB)",
                 _curves(losses, "saved_slots", 1.0), x_log=True),
            Plot("ready", "Time from power-up until the drive accepts commands",
                 "Writes confirmed since the flush", "Time (ms)",
                 _curves(losses, "rebuild_ns", 1e6), x_log=True),
        ),
        settings=(
            Setting("controller.write_buffer", _value(text), FROM_FILE),
            Setting("queue depth", str(QUEUE_DEPTH), "of the load"),
            Setting("cuts for each number of writes", str(CUTS), "of the campaign"),
        ),
        notes=(
            "The drive is new at the start; later cuts of a small drive occur during garbage "
            "collection. Relocated data in the buffer are not lost, because the original copies "
            "still exist. A cut can lose no more than the buffer contents, which limits the loss.",
        ),
    )  # fmt: skip


def _counts() -> list[int]:
    """Numbers of writes before each cut."""
    counts: list[int] = []
    count = 1
    while count <= WRITES_MAX:
        counts += [count, count * 3 // 2] if count > 1 else [count]
        count *= 2
    return [count for count in counts for _ in range(CUTS)]


def _value(text: str) -> str:
    from writecliff.devices.edit import value_of

    return str(value_of(text, "controller.write_buffer"))


def _iops(rows: list[Row]) -> float:
    most = max(row["confirmed_writes"] for row in rows)
    longest = [row for row in rows if row["confirmed_writes"] == most]
    written = sum(row["confirmed_writes"] for row in longest)
    elapsed_ns = sum(row["elapsed_ns"] for row in longest)
    return 1e9 * float(written) / float(elapsed_ns)


def _most(losses: list[list[Row]], name: str) -> list[float]:
    return [float(max(row[name] for row in rows)) for rows in losses]


def _curves(losses: list[list[Row]], name: str, unit: float) -> list[Curve]:
    curves = []
    for label, rows in zip(VARIANTS, losses, strict=True):
        by_count = {
            count: max(row[name] for row in group) / unit
            for count, group in groupby(rows, key=lambda row: int(row["confirmed_writes"]))
        }
        curves.append(Curve(label, list(by_count), list(by_count.values())))
    return curves
