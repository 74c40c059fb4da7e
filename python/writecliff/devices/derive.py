"""Derive a device file from a data sheet.

The device file matches the figures in the data sheet. Other values are typical of the drive's year.
A comment after each value states the reason for the value. The year determines the flash
generation. If the data sheet contradicts this generation, flash parameters are adjusted within the
bounds of actual parts. If the flash is faster than the data sheet states, firmware times account
for the difference.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from writecliff.devices.class_defaults import (
    CLASS_DEFAULT,
    CLIENT_AMPLIFICATION,
    CODEWORD_KIB,
    CORRECTABLE,
    ERASE_STEP_US,
    FIRST_YEAR,
    HICCUP_PROBABILITY,
    HICCUP_SHARE,
    LARGE_BYTES,
    MAX_PROGRAM_STEP_US,
    MERGED_UNITS,
    POWER,
    PROGRAM_STEPS,
    RATED_CYCLES,
    RBER,
    RBER_AT_RATED,
    RBER_SPREAD,
    READ_AHEAD_MIB,
    READ_SHARES,
    RETRIES_MAX,
    RETRY_GAIN,
    SUSPEND_US,
    UNIT_SLOTS,
    WRITE_COMMAND_US,
)
from writecliff.devices.generations import (
    BITS,
    BLOCK,
    CHANNEL_DIES_MAX,
    CYCLES,
    DIES_MAX,
    GENERATIONS,
    GIB,
    KIB,
    LINKS,
    MIB,
    MS,
    PLP_CYCLES,
    PROGRAM_BOUNDS,
    RAW_WHOLE_BYTES,
    READ_BOUNDS,
    SLOT,
    US,
    Generation,
    raw_bytes_of,
)
from writecliff.devices.sheet import DataSheet
from writecliff.errors import ConfigError

_WATERMARKS = {"gc_high_watermark": "8", "gc_low_watermark": "3", "gc_idle_watermark": "16"}
_WATERMARKS_WHY = {
    "gc_high_watermark": "idle pool that collection is paced to keep",
    "gc_low_watermark": "collection opens up to two units itself",
    "gc_idle_watermark": "twice the paced pool",
}


@dataclass(frozen=True)
class Value:
    """A device file line, with a key (dotted unless top-level), TOML value and reason."""

    key: str
    value: str
    reason: str


def device_text(sheet: DataSheet) -> str:
    """Return a device file derived from a data sheet.

    Raises:
        ConfigError: If that year's interface or flash cannot reach the rates in the data sheet.
    """
    head = (
        f"{sheet.name}: derived from its data sheet by `writecliff device new`. Every value has",
        "its reason: the sheet, what is usual for the year, or what follows from both.",
    )
    return text_of(derived(sheet), head)


def text_of(values: Sequence[Value], head: Sequence[str]) -> str:
    """Return a device file that has a leading comment and a reason after each value."""
    lines = [*(f"# {line}".rstrip() for line in head), ""]
    for section, rows in groupby(values, key=lambda value: value.key.rpartition(".")[0]):
        if section:
            lines += ["", f"[{section}]"]
        for value in rows:
            lines.append(f"{value.key.rpartition('.')[2]} = {value.value}  # {value.reason}")
    return "\n".join(lines) + "\n"


def derived(sheet: DataSheet, usual: Mapping[str, str] | None = None) -> list[Value]:
    """Return all values in a device file, in file order.

    `usual` maps data sheet fields that are not specified for this drive to their sources. Fields
    that are not specified limit the firmware, but the flash is not adjusted to match these fields.

    Raises:
        ConfigError: If the interface or flash of the year cannot reach the rates in the sheet.
    """
    return _Derivation(sheet, usual or {}).values()


def drive_amplification(sheet: DataSheet) -> float:
    """Return the write amplification of random writes to a full drive that has this sheet."""
    return _Derivation(sheet, {}).amplification


def needed_cycles(sheet: DataSheet) -> float:
    """Return the erase cycles that the rated writes require, or 0 if there is no rating.

    The rated writes of data-centre drives are random, but those of client drives are not.
    """
    moved = drive_amplification(sheet) if sheet.enterprise else CLIENT_AMPLIFICATION
    return moved * (sheet.tbw or 0.0) / raw_bytes_of(sheet.capacity)


def flash_rate(sheet: DataSheet) -> float:
    """Return the total program rate, in bytes/s, of a drive's dies if these are typical."""
    bits, generation = BITS[_cell(sheet)], _generation(sheet)
    dies = raw_bytes_of(sheet.capacity) * 8 / GIB / generation.die_gbit_of(bits)
    unit = generation.planes * generation.page_kib * KIB
    return dies * unit / (generation.program_us[_cell(sheet)] * US) * 1e9


def _cell(sheet: DataSheet) -> str:
    return sheet.cell or ("mlc" if sheet.year <= 2012 else "tlc")


def _generation(sheet: DataSheet) -> Generation:
    return next(g for g in GENERATIONS if sheet.year <= g.last_year)


class _Derivation:
    """Intermediate figures of the derivation, with rates in bytes/s and times in ns."""

    def __init__(self, sheet: DataSheet, usual: Mapping[str, str]) -> None:
        self.sheet, self.usual = sheet, usual
        self.link = LINKS[sheet.interface]
        self.cell, self.generation = _cell(sheet), _generation(sheet)
        # `class_defaults` applies only to drives where this flag is set.
        self.is_current = sheet.year >= FIRST_YEAR and sheet.interface.startswith("pcie")
        is_large = sheet.enterprise and self.cell == "qlc" and sheet.capacity >= LARGE_BYTES
        self.unit_slots = UNIT_SLOTS if self.is_current and is_large else 1
        self.bandwidth, self.bandwidth_why = self._bandwidth()
        self.raw_bytes = raw_bytes_of(sheet.capacity)
        self.read_ns = self.generation.read_us[self.cell] * US
        self.read_why = f"usual for {self.generation.name}"
        self.command_ns, self.read_command_ns, self.write_command_ns = self._command_times()
        self.latency_ns, self.latency_why = self._latency()
        self.channels = self._dies()
        self.word_lines, self.word_lines_why = self._word_lines()
        self.program_ns, self.program_why = self._program()

    # -- link and firmware ------------------------------------------------------------------

    def _bandwidth(self) -> tuple[float, str]:
        sheet, most = self.sheet, self.link.most_mb_s * 1e6
        rated = max(sheet.sequential_read or 0, sheet.sequential_write or 0)
        if not sheet.sequential_read and rated <= most:
            return most, f"what {self.link.name} carries"
        if rated > most * 1.02:
            raise ConfigError(
                f"{rated / 1e6:,.0f} MB/s exceeds the bandwidth of {self.link.name}",
                hint="check the --interface option",
            )
        left_ns = BLOCK / rated * 1e9 - self.link.command_us * US
        whole = min(most, BLOCK / left_ns * 1e9)
        source = self._source("sequential_read")
        return whole, f"{source}: {rated / 1e6:,.0f} MB/s in 128 KiB with their commands"

    def _source(self, *fields: str) -> str:
        """Return the source of the first of the given fields that has a value."""
        of = next((name for name in fields if getattr(self.sheet, name) is not None), "")
        return self.usual.get(of, "the sheet")

    def _stated(self, field: str) -> float:
        """Return a field, or 0 if the data sheet does not specify it for this drive."""
        return 0.0 if field in self.usual else float(getattr(self.sheet, field) or 0)

    def _command_times(self) -> tuple[float, float, float]:
        """Return the firmware times for all commands, for reads, and for writes."""
        sheet = self.sheet
        usual = 10 * US if sheet.interface in ("sata", "sas") else 1.6 * US
        read = 1e9 / sheet.random_read if sheet.random_read else usual
        burst = sheet.random_write if not sheet.enterprise else None
        write = 1e9 / burst if burst else read
        if self.is_current and sheet.enterprise:
            fresh_ns = min(WRITE_COMMAND_US * US, 1e9 / (sheet.random_write or 1.0))
            write = max(write, fresh_ns)
        return min(read, write), read, write

    def _latency(self) -> tuple[float, str]:
        """Return a command's firmware latency, adjusting the flash read time if necessary."""
        sheet = self.sheet
        link_ns = self.link.command_us * US + SLOT / self.bandwidth * 1e9
        own_ns = 0.3 * US + SLOT / (self.generation.bus_mb_s * 1e6) * 1e9 + link_ns
        own_ns += self.read_command_ns
        self.fixed_ns = own_ns
        usual = 6 * US
        if sheet.write_latency is not None:
            latency = max(sheet.write_latency - link_ns - self.command_ns, 1 * US)
            why = f"leaves the sheet's {sheet.write_latency / US:g} us for a write"
            left = max((sheet.read_latency or math.inf) - own_ns - self.read_ns, 1 * US)
            if (
                "write_latency" in self.usual and left < latency
            ):  # A write does not take longer than a read.
                latency, why = left, "no longer than what the sheet leaves of a read"
        elif sheet.read_latency is not None:
            latency = sheet.read_latency - own_ns - self.read_ns
            latency = min(max(latency, 1 * US), 40 * US)
            why = f"leaves the sheet's {sheet.read_latency / US:g} us for a read"
        else:
            latency, why = usual, "usual; the sheet gives no latency"
        if sheet.read_latency is not None:
            low, high = (self.read_ns * share for share in READ_BOUNDS)
            wanted = sheet.read_latency - own_ns - latency
            self.read_ns = min(max(wanted, low), high)
            self.read_why = (
                f"leaves the sheet's {sheet.read_latency / US:g} us for a read; within what "
                f"{self.generation.name} takes"
            )
        return latency, why

    # -- flash ------------------------------------------------------------------------------

    @property
    def _unit_bytes(self) -> int:
        """Return the size of a die's program operation in bytes."""
        pages = BITS[self.cell] if self.generation.one_shot else 1
        return self.planes * self.generation.page_kib * KIB * pages

    def _dies(self) -> int:
        """Set the number of dies, and return the number of channels."""
        sheet = self.sheet
        depth = min(self.link.queues * self.link.depth, 256)
        times = (self.read_ns, self.read_ns + self.fixed_ns + self.latency_ns, depth)
        usual = Reads(sheet.random_read or 0, sheet.sequential_read or 0, *times)
        stated = Reads(self._stated("random_read"), self._stated("sequential_read"), *times)
        dies = dies_of(self.raw_bytes, self.generation, BITS[self.cell], usual, stated)
        self.dies, self.planes, self.dies_why = dies.count, dies.planes, dies.why
        self.slower, self.independent = dies.slower, dies.independent
        channels = self.link.channels if sheet.dram is not False else 4
        channels = min(channels, self.dies)
        if self.dies > channels and self.raw_bytes == RAW_WHOLE_BYTES:
            # The die count is not a power of two.
            self.dies = round(self.dies / channels) * channels
        while self.dies % channels:
            channels -= 1
        while self.dies > channels * CHANNEL_DIES_MAX:
            channels *= 2
        return channels

    def _program(self) -> tuple[float, str]:
        """Return the flash generation's tPROG, unless the data sheet requires another value."""
        sheet, generation = self.sheet, self.generation
        pages = BITS[self.cell] if generation.one_shot else 1
        usual = generation.program_us[self.cell] * US * pages * self.slower
        low, high = (usual * share for share in PROGRAM_BOUNDS)
        after = sheet.write_after_cache if sheet.has_cache else None
        rated = after if sheet.has_cache else self._stated("sequential_write")
        moved = self.dies * self._unit_bytes
        # The buffer and the bus leave gaps with no activity, but a cache that folds data does not.
        need = (rated or 0) * (1.0 if sheet.has_cache else 1.08)
        name = "sequential writes"
        if (folding := self._stated("write_while_folding")) and sheet.has_cache:
            need = max(need, folding * BITS[self.cell] / (BITS[self.cell] - 1))
            name = "writes while the cache is folded"
        if (steady := self._steady_flash()) > need:
            need, name = steady, "random writes in steady state"
        if not need:
            return usual, f"usual for {generation.name}"
        program_ns = moved / need * 1e9
        if after is not None:
            why = f"{self._source('write_after_cache')}: {after / 1e6:,.0f} MB/s after the cache"
            return min(max(program_ns, low), high), why
        if program_ns >= usual:
            return usual, f"usual for {generation.name}; faster than the rated {name} need"
        return max(program_ns, low), f"as fast as the rated {name} need, within what was made"

    def _steady_flash(self) -> float:
        """Return the rate at which steady-state random writes program flash, in bytes/s."""
        guessed = not self.sheet.sustained_write and "random_write" in self.usual
        rate = (self.sheet.steady_write or 0) * self.unit_slots
        return 0.0 if guessed else rate * SLOT * self.amplification

    @property
    def amplification(self) -> float:
        """Write amplification of random writes to a full drive."""
        units = self._blocks()
        # Fraction of units that contain no data.
        idle = (int(_WATERMARKS["gc_high_watermark"]) + 1) / units
        return uniform_amplification(self.raw_bytes * (1 - idle) / self.sheet.capacity)

    def _blocks(self) -> int:
        """Return the number of blocks per plane, which equals the number of reclaim units."""
        return self._blocks_of(self.word_lines)

    def _blocks_of(self, word_lines: int) -> int:
        g = self.generation
        pages = word_lines * BITS[self.cell]
        blocks = self.raw_bytes / self.dies / (self.planes * pages * g.page_kib * KIB)
        return int(blocks) if self.raw_bytes == RAW_WHOLE_BYTES else math.ceil(blocks)

    def _word_lines(self) -> tuple[int, str]:
        """Return the number of word lines per block, and the reason for this number.

        Small dies have fewer word lines per block, so that the spare flash contains enough reclaim
        units for garbage collection.
        """
        lines, spare = self.generation.word_lines, 1 - self.sheet.capacity / self.raw_bytes
        needed = int(_WATERMARKS["gc_idle_watermark"]) / spare
        why = ""
        while lines > 1 and self._blocks_of(lines) < needed:
            lines //= 2
            why = f": {self.generation.word_lines} are usual, but leave too few blocks per die"
        return lines, why

    # -- the file ---------------------------------------------------------------------------

    def values(self) -> list[Value]:
        return [*self._top(), *self._flash(), *self._ftl(), *self._controller(), *self._link(),
                *self._class_defaults(), *self._cache()]  # fmt: skip

    def _top(self) -> list[Value]:
        sheet = self.sheet
        kind = "with power-loss protection" if sheet.enterprise else "for clients"
        rows = [
            Value("name", f'"{sheet.name}"', "yours"),
            Value(
                "description",
                f'"{self.link.name}, {sheet.capacity / 1e9:,.0f} GB, {self.cell.upper()}, {kind}"',
                "the sheet",
            ),
            Value("model", f'"simulated {sheet.name}"', "shown in reports"),
            Value("user_capacity", f'"{sheet.capacity / 1e9:g} GB"', "the sheet"),
        ]
        if sheet.tbw is not None:
            rows.append(Value("rated_writes", f'"{sheet.tbw / 1e12:g} TB"', "the sheet: TBW"))
        for key in ("form_factor", "uber", "mtbf"):
            if text := getattr(sheet, key):
                rows.append(Value(key, json.dumps(text, ensure_ascii=False), "the sheet"))
        return rows

    def _flash(self) -> list[Value]:
        g, bits = self.generation, BITS[self.cell]
        pages = self.word_lines * bits
        usual = f"usual for {g.name}"
        shares = READ_SHARES[bits] if self.is_current else [1.0] * bits
        reads = ", ".join(f'"{time_text(self.read_ns * share)}"' for share in shares)
        read_why = self.read_why
        if shares != [1.0] * bits:
            read_why += f"; differences between page types: {CLASS_DEFAULT}"
        bus, bus_why = self._bus()
        suspend = min(20 * US, self.read_ns / 2)
        cycles, cycles_why = self._cycles()
        programs = f'"{time_text(self.program_ns)}"'
        if not g.one_shot:
            # Lower pages are faster than upper pages.
            shares = [2 * (n + 1) / (bits + 1) for n in range(bits)]
            programs = ", ".join(f'"{time_text(self.program_ns * share)}"' for share in shares)
        rows = [
            ("channels", self.channels, self._channels_why()),
            ("dies_per_channel", self.dies // self.channels, self.dies_why),
            ("planes_per_die", self.planes, usual),
            ("blocks_per_plane", self._blocks(), f"fills {self.raw_bytes / GIB:,.0f} GiB: "
             f"{self.raw_bytes / self.sheet.capacity - 1:.1%} more than the user capacity"),
            ("pages_per_block", pages, f"{self.word_lines} word lines of {bits}"
             f"{self.word_lines_why}"),
            ("page", f'"{g.page_kib} KiB"', usual),
            ("cell", f'"{self.cell.upper()}"', "the sheet" if self.sheet.cell else usual),
            ("multi_plane", "true", "usual"),
            ("one_shot", str(g.one_shot).lower(), usual),
            ("read", f"[{reads}]", read_why),
            ("program", f"[{programs}]", self.program_why),
            ("erase", f'"{g.erase_ms:g} ms"', usual),
            *([("independent_plane_reads", "true", f"usual for {g.name}; the rated reads need it")]
              if self.independent else []),
            ("bus", f'"{bus / 1e6:.0f} MB/s"', bus_why),
            ("command", '"300 ns"', "command, 5 address and confirm cycles"),
            ("program_suspend", quoted_time(suspend), "below tR, else suspension would not pay"),
            ("erase_suspend", quoted_time(1.5 * suspend), "as above"),
            *self._suspend_steps(),
            ("rated_cycles", cycles, cycles_why),
        ]  # fmt: skip
        return [Value(f"flash.{key}", str(value), why) for key, value, why in rows]

    def _suspend_steps(self) -> list[tuple[str, str, str]]:
        if not self.is_current:
            return []
        g = self.generation
        program_ns = g.program_us[self.cell] * US * BITS[self.cell]
        program_ns = min(program_ns / PROGRAM_STEPS, MAX_PROGRAM_STEP_US * US)
        erase = ("erase_suspend_step", quoted_time(ERASE_STEP_US * US), CLASS_DEFAULT)
        return [
            ("program_suspend_step", quoted_time(program_ns), CLASS_DEFAULT),
            *([erase] if BITS[self.cell] > 1 else []),
        ]

    def _channels_why(self) -> str:
        if self.channels > self.link.channels:
            return f"as many as {self.dies} dies need, {CHANNEL_DIES_MAX} on each at most"
        if self.sheet.dram is False:
            return "usual for controllers without DRAM"
        return "usual for the interface"

    def _bus(self) -> tuple[float, str]:
        usual = self.generation.bus_mb_s * 1e6
        need = 1.25 * (self.sheet.sequential_read or 0) / self.channels
        if need > usual:
            return need, f"as fast as the rated sequential reads need on {self.channels} channels"
        return usual, f"usual for {self.generation.name}"

    def _cycles(self) -> tuple[int, str]:
        table = PLP_CYCLES if self.sheet.enterprise else CYCLES
        usual, class_ = table[self.cell], "data-centre" if self.sheet.enterprise else "client"
        why = f"typical of {self.cell.upper()} in {class_} drives"
        if self.is_current and self.sheet.enterprise and self.cell in RATED_CYCLES:
            usual, why = RATED_CYCLES[self.cell], CLASS_DEFAULT
        need = math.ceil(needed_cycles(self.sheet))
        if need > usual:
            moved = self.amplification if self.sheet.enterprise else CLIENT_AMPLIFICATION
            return need, f"TBW of the sheet at a write amplification of {moved:.2f}"
        return usual, why

    def _ftl(self) -> list[Value]:
        rows = (
            ("streams", "1", "a data sheet says nothing of streams"),
            ("gc", '"greedy"', "optimal for uniform traffic"),
            ("gc_destination", '"per-stream"', "relocated data go to a unit of their own"),
            ("wear_leveling", '"static"', "universal"),
            ("wear_threshold", "100", "erases a block may lag the mean"),
            *((key, value, _WATERMARKS_WHY[key]) for key, value in _WATERMARKS.items()),
            *self._indirection(),
        )
        return [Value(f"ftl.{key}", value, why) for key, value, why in rows]

    def _indirection(self) -> list[tuple[str, str, str]]:
        """Return the device file keys for a coarse mapping table.

        The rated random writes of a drive with a coarse mapping table are assumed to be no larger
        than a mapping unit.
        """
        if self.unit_slots == 1:
            return []
        size = f'"{self.unit_slots * SLOT // KIB} KiB"'
        return [
            ("indirection_unit", size, f"{CLASS_DEFAULT} with QLC and 30 TB or more"),
            ("merged_units", str(MERGED_UNITS), CLASS_DEFAULT),
        ]

    def _controller(self) -> list[Value]:
        sheet = self.sheet
        unit = self.dies * self._unit_bytes
        least = 2 * MIB if sheet.dram is False else 4 * MIB
        buffer = max(least, 1 << math.ceil(math.log2(2 * unit)))
        mapping, mapping_why = self._mapping()
        moved, moved_why = self._relocation(mapping)
        plp = bool(sheet.power_loss_protection)
        given = sheet.random_read or sheet.random_write
        what = "usual; the sheet gives no IOPS"
        if given:
            what = self._source("random_read" if self.command_ns == self.read_command_ns else
                              "random_write")  # fmt: skip
        rows = [
            ("write_buffer", f'"{buffer // MIB} MiB"', "two program units of every die"),
            ("power_loss_protection", str(plp).lower(), "the sheet" if plp else "a client drive"),
            ("write_cache", "true", "default after power-up"),
            ("command_time", quoted_time(self.command_ns),
             f"bounds IOPS at {1e9 / self.command_ns:,.0f}: {what}"),
        ]  # fmt: skip
        for name, time_ns in (("read", self.read_command_ns), ("write", self.write_command_ns)):
            if time_ns > 1.001 * self.command_ns:
                target, source = f"{name}s", self._source(f"random_{name}")
                if name == "write" and sheet.enterprise:
                    target, source = "writes to a fresh drive", CLASS_DEFAULT
                bound = f"bounds {target} at {1e9 / time_ns:,.0f}: {source}"
                rows.append((f"{name}_command_time", quoted_time(time_ns), bound))
        rows += [
            ("latency", quoted_time(self.latency_ns), self.latency_why),
            ("mapping_update_time", quoted_time(mapping), mapping_why),
            ("relocation_time", quoted_time(moved), moved_why),
            *self._shared_core(),
            ("reads_in_a_row", "16", "a program waits for 16 reads at most"),
            ("suspends_per_operation", "8", "bounds the stretch of a program"),
            ("idle_delay", '"20 ms"', "longer than any gap between commands of a busy host"),
        ]
        return [Value(f"controller.{key}", value, why) for key, value, why in rows]

    def _shared_core(self) -> list[tuple[str, str, str]]:
        """Return the lookup and suspension times on the core that also maps writes."""
        if not self.is_current:
            return []
        lookup = quoted_time(self.read_command_ns)
        return [
            ("lookup_time", lookup, "time of a read on the core that reads and writes share"),
            ("suspend_time", quoted_time(SUSPEND_US * US), CLASS_DEFAULT),
        ]

    def _mapping(self) -> tuple[float, str]:
        if self.sheet.sequential_write is None:
            return 0.0, "the sheet gives no sequential writes"
        time = SLOT / self.sheet.sequential_write * 1e9
        rate, source = self.sheet.sequential_write, self._source("sequential_write")
        return time, f"bounds sequential writes at {rate / 1e6:,.0f} MB/s: {source}"

    def _relocation(self, mapping_ns: float) -> tuple[float, str]:
        steady = self.sheet.steady_write
        more = self.amplification - 1
        if steady is None:
            return mapping_ns, "as a written slot; the sheet gives no steady random writes"
        time = (1e9 / steady / self.unit_slots - mapping_ns) / more
        if time <= 0:
            return 0.0, "none is left by the rated random writes in steady state"
        return time, (
            f"leaves {steady:,.0f} random writes a second in steady state, at a write "
            f"amplification of {self.amplification:.2f} by theory: "
            f"{self._source('sustained_write', 'random_write')}"
        )

    def _link(self) -> list[Value]:
        link = self.link
        rows = (
            ("interface", f'"{link.name}"', "the sheet"),
            ("bandwidth", f'"{self.bandwidth / 1e6:.1f} MB/s"', self.bandwidth_why),
            ("duplex", '"full"' if link.full_duplex else '"half"', f"{link.name}"),
            ("command", f'"{link.command_us:g} us"', "frames or doorbells of a command"),
            ("queues", str(link.queues), "usual"),
            ("queue_depth", str(link.depth), "usual"),
        )
        return [Value(f"link.{key}", value, why) for key, value, why in rows]

    def _class_defaults(self) -> list[Value]:
        """Return the read-ahead, command delays and read retries, which no data sheet states."""
        if not self.is_current:
            return []
        delay = self.sheet.write_latency or self.latency_ns
        rows = {
            "housekeeping.hiccup_probability": str(HICCUP_PROBABILITY),
            "housekeeping.hiccup_time": quoted_time(HICCUP_SHARE * delay),
            "ecc.rber": f"{RBER:g}",
            "ecc.rber_at_rated": f"{RBER_AT_RATED:g}",
            "ecc.rber_spread": f"{RBER_SPREAD:g}",
            "ecc.codeword": f'"{CODEWORD_KIB} KiB"',
            "ecc.correctable": str(CORRECTABLE),
            "ecc.retry_time": quoted_time(self.read_ns),
            "ecc.retry_gain": f"{RETRY_GAIN:g}",
            "ecc.retries_max": str(RETRIES_MAX),
        }
        if not self.sheet.has_cache and self.unit_slots == 1:
            rows["read_ahead.window"] = f'"{READ_AHEAD_MIB} MiB"'
        if self.sheet.enterprise:
            rows |= {f"power.{key}": f'"{value}"' for key, value in POWER.items()}
        return [Value(key, value, CLASS_DEFAULT) for key, value in rows.items()]

    def _cache(self) -> list[Value]:
        sheet = self.sheet
        if not sheet.has_cache:
            return []
        size, why = sheet.slc_cache, self._source("slc_cache")
        if size is None:
            size, why = 0.012 * sheet.capacity, "1.2 % of the capacity, as the first of its kind"
        page = self.dies * self.planes * self.generation.page_kib * KIB
        program, program_why = self.generation.program_us["slc"] * US, "usual for one bit per cell"
        program *= self.slower
        rated = self._stated("sequential_write")
        if rated and page / program * 1e9 < 1.1 * rated:
            program = page / (1.1 * rated) * 1e9
            program_why = "as fast as the rated sequential writes need"
        rows = (
            ("size", f'"{size / 1e9:.4g} GB"', why),
            ("program", quoted_time(program), program_why),
            (
                "read",
                quoted_time(self.generation.read_us["slc"] * US),
                "usual for one bit per cell",
            ),
            ("bypass", "true", "writes go to the main flash while the cache is full"),
        )
        values = [Value(f"slc_cache.{key}", value, why) for key, value, why in rows]
        if sheet.write_while_folding:
            values.append(Value("slc_cache.fold_time", *self._fold_time(sheet.write_while_folding)))
        return values

    def _fold_time(self, rate: float) -> tuple[str, str]:
        """Return the time to fold a slot, and the reason for this time.

        A host slot, programmed with one bit per cell, uses the cells that folding 1 / (bits - 1)
        slots frees.
        """
        more = BITS[self.cell] - 1
        time = more * (SLOT / rate * 1e9 - self._mapping()[0])
        source = self._source("write_while_folding")
        return quoted_time(
            max(time, 0.0)
        ), f"leaves {rate / 1e6:,.0f} MB/s while it is folded: {source}"


def uniform_amplification(spare: float) -> float:
    """Return the write amplification of uniform random writes, where `spare` is raw / user.

    For a log that is garbage-collected in order (Desnoyers, "Analytic modeling of SSD write
    performance", SYSTOR 2012), the valid fraction p of a victim solves 1 / spare = (p - 1) / ln p.
    """
    low, high = 1e-9, 1 - 1e-9
    for _ in range(200):
        p = (low + high) / 2
        if (p - 1) / math.log(p) < 1 / spare:
            low = p
        else:
            high = p
    return 1 / (1 - low)


def time_text(time_ns: float) -> str:
    """Format a time for a device file, with about three digits, as whole nanoseconds."""
    whole = round(time_ns)
    if whole >= MS:
        return f"{round(whole / MS, 3):g} ms"
    return f"{round(whole / US, 2 if whole >= 10 * US else 3):g} us"


def quoted_time(time_ns: float) -> str:
    """Format a time for a device file, in quotes."""
    return f'"{time_text(time_ns)}"'


# -- die count, and use of independent plane reads -------------------------------------------------

# The planes of newer flash dies can be read independently of each other. A drive uses independent
# plane reads if its read rates require them. Programs and erases occupy the whole die, so the model
# needs the actual die count to reproduce collisions between reads and these operations. If
# independent reads do not suffice, the dies are smaller than usual. The small dies that replace a
# large die jointly program as slowly as the large die.

_RANDOM, _IN_ORDER = 1.6, 2.0  # Required dies per busy die, with headroom for read collisions.
_PLANES = 4.0  # Dies per busy die below which planes are read independently.
_COLLISIONS = 1.1  # Margin on read waiting times.
_LEAST_WAIT = 0.1  # Fraction of tR below which more dies hardly shorten reads.
_WINDOW = 32 * BLOCK  # Bytes in flight during the data sheet's sequential reads.


@dataclass(frozen=True)
class Reads:
    """Read rates that the flash must sustain."""

    random: float  # Random reads per second at queue depth `depth`.
    in_order: float  # Sequential read rate in bytes per second.
    read_ns: float  # Read time tR.
    alone_ns: float  # Read latency at queue depth 1.
    depth: int


@dataclass(frozen=True)
class Dies:
    """A number of dies (`count`) with `planes` planes each.

    Each die of typical size is replaced by `slower` dies, whose total program rate equals that of
    the replaced die.
    """

    count: int
    planes: int
    independent: bool  # `True` if the planes can be read independently.
    slower: float
    why: str


def dies_of(
    raw_bytes: float, generation: Generation, bits: int, usual: Reads, stated: Reads
) -> Dies:
    """Return the dies for a given flash capacity.

    To reach the read rates of similar drives (`usual`), planes may be read independently. To reach
    this drive's stated read rates (`stated`), dies may also be smaller.
    """
    gbit = generation.die_gbit_of(bits)
    count, planes, slower = raw_bytes * 8 / GIB / gbit, generation.planes, 1.0
    independent = False
    why = f"{gbit} Gbit dies are usual for {generation.name}"
    while count > DIES_MAX:  # Fewer dies would be larger than was typical in that year.
        gbit, count = 2 * gbit, count / 2
        why = f"dies of {gbit} Gbit: more than {DIES_MAX} would not fit a controller"
    if generation.independent and count < _PLANES * _busy(generation, usual):
        independent = True
    readers, width = (planes, 1) if independent else (1, planes)

    def missing(reads: Reads) -> str:
        return _missing(count * readers, width, generation, bits, reads)

    while gbit > 64 and 2 * count <= DIES_MAX and (lacking := missing(stated)):
        gbit, count, slower = gbit // 2, 2 * count, 2 * slower
        why = f"enough for {lacking}"
    return Dies(max(2, round(count)), planes, independent, slower, why)


def _busy(generation: Generation, reads: Reads) -> float:
    """Return the mean number of dies that random reads keep busy."""
    return reads.random * (reads.read_ns / 1e9 + SLOT / (generation.bus_mb_s * 1e6))


def _missing(count: float, planes: int, generation: Generation, bits: int, reads: Reads) -> str:
    """Return the reads that `count` dies or independent planes cannot sustain, or `""`."""
    busy = _busy(generation, reads) / count
    if busy > 1 / _RANDOM:
        return f"{reads.random:,.0f} reads a second"
    if reads.random:
        # Reads queue for dies as in a queue with constant service times (M/D/1).
        spare_ns = 1e9 * reads.depth / reads.random - reads.alone_ns
        service_ns = 1e9 * _busy(generation, reads) / reads.random
        wait_ns = _COLLISIONS * service_ns * busy / (1 - busy) / 2
        if wait_ns > max(spare_ns, _LEAST_WAIT * reads.read_ns):
            return f"{reads.random:,.0f} reads a second at queue depth {reads.depth}"
    page, bus = planes * generation.page_kib * KIB, generation.bus_mb_s * 1e6
    unit = page * bits if generation.one_shot else page  # Bytes of sequential reads on one die.
    if count >= _WINDOW / unit:  # Additional dies would have nothing to read.
        return ""
    if count * page / (reads.read_ns / 1e9 + page / bus) >= _IN_ORDER * reads.in_order:
        return ""
    return f"{reads.in_order / 1e6:,.0f} MB/s of sequential reads"
