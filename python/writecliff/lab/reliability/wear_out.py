"""Wear-out by random writes until a drive has no spare blocks left.

Blocks fail after a Weibull-distributed number of erases. A failed block is replaced by a spare
block of its plane, or its whole reclaim unit is retired. Writes are fast-forwarded. At any scale,
the number of blocks equals the full drive's. Rated cycles may also be scaled down, and lifetimes
and wear are relative to the scaled cycles.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass

from writecliff.devices import describe_device
from writecliff.engines.counters import Counters
from writecliff.lab.reliability.drive import opened, scale_for, variant, with_section
from writecliff.lab.reliability.model import Check, Curve, Finding, Plot, Result
from writecliff.parallel import map_side_by_side
from writecliff.workload.model import Job, Workload

SECTION = {
    "factory": ('"0.5 %"', "assumed: a quarter of the 2 % that data sheets of parts allow"),
    "failed_at_rated": ('"2 %"', "assumed: as many blocks as data sheets allow to be bad at the "
                                 "rated cycles"),
    "shape": ("4", "assumed: a failure rate that rises steeply with cycles (wear-out)"),
    "found_by_erase": ('"50 %"', "assumed"),
    "replacement": ('"block"', "spare blocks of the same plane"),
}  # fmt: skip
VARIANTS = ("replaced by spare blocks", "unit dropped with its first bad block")
STEPS = 60  # Number of steps per rated life.
LIVES_MAX = 3.0  # Number of rated lifetimes after which the test of a surviving drive ends.
# Maximum slot writes per rated lifetime. Above this number, the rated cycles are scaled down.
SLOT_WRITES = 1e8
# Maximum user slots on the scaled drive, where 3,000 cycles take several seconds.
SLOTS_MAX = 60_000
DWPD = (0.3, 1.0, 3.0)


@dataclass(frozen=True)
class Life:
    """Counters of a drive after each step, starting with the filled drive."""

    rows: list[Counters]
    capacity_bytes: int

    @property
    def written(self) -> int:
        """Bytes written by the host."""
        return self.rows[-1].host_write_bytes or 0


def _shortened(text: str, cycles: int, shorter: int) -> tuple[str, int]:
    """The drive with its rated cycles divided by `shorter`, and the resulting number of cycles."""
    ftl = tomllib.loads(text)["ftl"]
    changes = {"flash.rated_cycles": str(max(1, round(cycles / shorter)))}
    if "wear_threshold" in ftl:
        changes["ftl.wear_threshold"] = str(max(1, round(int(ftl["wear_threshold"]) / shorter)))
    return variant(text, changes), int(changes["flash.rated_cycles"])


def _percent(text: str) -> float:
    return float(text.rstrip("% ")) / 100


def _life(text: str, file_name: str, scale: float, cycles: int) -> Life:
    engine = opened(text, file_name, scale)
    capacity = engine.identify().capacity_bytes
    volume = math.ceil(capacity * cycles / STEPS / 4096) * 4096
    fill = Job(name="fill", pattern="sequential", block_size=128 * 1024, volume_bytes=capacity)
    engine.precondition(Workload("fill", (fill,)))
    rows = [engine.counters()]
    for step in range(round(STEPS * LIVES_MAX)):
        job = Job(name="writes", block_size=4096, volume_bytes=volume)
        engine.precondition(Workload("wear", (job,), seed=step))
        rows.append(engine.counters())
        if rows[-1].read_only:
            break
    return Life(rows, capacity)


def run(text: str, file_name: str, log: Callable[[str], None]) -> Result:
    """Wear out drives with and without replacement of bad blocks.

    Raises:
        ConfigError: If the device file is invalid.
    """
    text, settings = with_section(text, "bad_blocks", SECTION)
    device = describe_device(text, file_name)
    rated_cycles = device.rated_cycles or 1
    size = scale_for(text, file_name, SLOTS_MAX)
    shorter = max(1, round(device.capacity_bytes / 4096 / size * rated_cycles / SLOT_WRITES))
    text, cycles = _shortened(text, rated_cycles, shorter)
    scale = size * shorter
    without = variant(text, {"bad_blocks.replacement": '"none"'})
    log(f"two drives, 1/{size:g} of the capacity and 1/{shorter} of the cycles, to read-only")
    memory = 8 * device.flash_bytes("wear-out") // 4096
    texts = [(text, file_name, size, cycles), (without, file_name, size, cycles)]
    lives = map_side_by_side(_life, texts, memory)
    written = [life.written * scale for life in lives]
    ended = [bool(life.rows[-1].read_only) for life in lives]
    means = [shorter * float(life.rows[-1].erases_mean or 0.0) for life in lives]
    rated = [_at_rated(life, cycles, scale) for life in lives]
    section = tomllib.loads(text)["bad_blocks"]
    blocks = _blocks(text)
    return Result(
        name="wear-out",
        title="Wear-out: bad blocks, spare and the end of life",
        drive=device.name,
        scale=size,
        intro="Random 4 KiB writes to a full drive until no spare blocks are left and it is "
        "read-only. Worn blocks fail; each is replaced by a spare block or costs its reclaim unit.",
        verdict=f"With spare blocks the drive takes {written[0] / written[1]:.2f} times the "
        f"writes: {_tb(written[0]):,g} TB until "
        f"{'it is read-only' if ended[0] else 'the test ends'}, against "
        f"{_tb(written[1]):,g} TB when every bad block costs a reclaim unit.",
        variants=VARIANTS,
        findings=(
            Finding("written until the end (TB)", [_tb(w) for w in written]),
            Finding("written at the rated cycles (TB)", [
                None if r is None else _tb(r) for r in rated]),
            Finding("ended", ["read-only" if e else f"after {LIVES_MAX:g} lives" for e in ended]),
            Finding("mean erases at the end", [round(mean) for mean in means]),
            Finding("bad blocks of the factory", _ends(lives, "factory_bad_blocks")),
            Finding("erases that failed", _ends(lives, "erase_failures")),
            Finding("programs that failed", _ends(lives, "program_failures")),
            Finding("reclaim units dropped", _ends(lives, "dropped_units")),
            *(
                Finding(f"years at {rate:g} drive writes a day",
                        [round(w / (rate * life.capacity_bytes * size * 365), 1)
                         for w, life in zip(written, lives, strict=True)])
                for rate in DWPD
            ),
        ),
        plots=_plots(lives, scale, section, cycles, blocks),
        settings=settings,
        checks=_checks(lives[0], section, cycles, blocks),
        notes=(
            "Writes are fast-forwarded, so the drive's speed is not measured.",
            f"Rated cycles and wear are divided by {shorter}; written bytes and erases are shown "
            "at full scale.",
            "SMART reports the plotted available spare. Bit 0 of its critical warning is set "
            "below 10 %, and bit 3 when the drive is read-only.",
        ),
    )  # fmt: skip


def _tb(size: float) -> float:
    """Bytes in TB, rounded to three digits."""
    return float(f"{size / 1e12:.3g}")


def _ends(lives: list[Life], name: str) -> list[float]:
    return [float(life.rows[-1][name] or 0) for life in lives]


def _blocks(text: str) -> int:
    flash = tomllib.loads(text)["flash"]
    blocks = 1
    for key in ("channels", "dies_per_channel", "planes_per_die", "blocks_per_plane"):
        blocks *= int(flash[key])
    return blocks


def _at_rated(life: Life, cycles: int, scale: float) -> float | None:
    """Bytes written when the mean erase count reached the rated cycles."""
    for row in life.rows:
        if float(row.erases_mean or 0.0) >= cycles:
            return float(row.host_write_bytes or 0) * scale
    return None


def _failed(section: dict[str, object], share: float) -> float:
    """Fraction of the blocks that have failed at a fraction of the rated cycles (Weibull)."""
    at_rated = -math.log1p(-_percent(str(section["failed_at_rated"])))
    return -math.expm1(-at_rated * share ** float(str(section["shape"])))


def _grown(row: Counters) -> float:
    return float((row.erase_failures or 0) + (row.program_failures or 0))


def _plots(
    lives: list[Life], scale: float, section: dict[str, object], cycles: int, blocks: int
) -> tuple[Plot, ...]:
    def curves(name: str) -> list[Curve]:
        return [
            Curve(label, [(row.host_write_bytes or 0) * scale / 1e12 for row in life.rows],
                  [float(row[name] or 0) for row in life.rows])
            for label, life in zip(VARIANTS, lives, strict=True)
        ]  # fmt: skip

    wear = [[100 * float(row.erases_mean or 0) / cycles for row in life.rows] for life in lives]
    grown = [
        Curve(label, x, [_grown(row) for row in life.rows])
        for label, x, life in zip(VARIANTS, wear, lives, strict=True)
    ]
    longest = max(wear, key=len)
    expected = [blocks * _failed(section, share / 100) for share in longest]
    written = "Written by the host (TB)"
    return (
        Plot("bad-blocks", "Blocks that failed in use, by mean wear", "Mean erases (% of rated)",
             "Bad blocks", [*grown, Curve("expected if none were replaced", longest, expected)]),
        Plot("spare", "Available spare, as in SMART", written, "Available spare (%)",
             curves("available_spare_pct"), limits=(("warning threshold of SMART", 10.0),)),
        Plot("dropped", "Reclaim units lost to bad blocks", written, "Reclaim units",
             curves("dropped_units")),
    )  # fmt: skip


def _checks(life: Life, section: dict[str, object], cycles: int, blocks: int) -> tuple[Check, ...]:
    factory = Check(
        "bad blocks of the factory",
        float(life.rows[0].factory_bad_blocks or 0),
        blocks * _percent(str(section.get("factory", "0 %"))),
    )
    row = min(life.rows, key=lambda row: abs(float(row.erases_mean or 0) - cycles))
    good = blocks - factory.measured
    share = float(row.erases_mean or 0) / cycles
    grown = Check(
        f"blocks failed at {100 * share:.0f} % of the rated cycles",
        _grown(row),
        good * _failed(section, share),
    )
    return (factory, grown)
