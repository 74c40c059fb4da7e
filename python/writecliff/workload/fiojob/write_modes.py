"""Commands that fio sends in place of writes: `write_mode` (NVMe) and `sg_write_mode` (SCSI).

A simulated drive supports reads, writes and trims. Each command is converted to the operation that
causes the same work in a drive, as in a served drive's NVMe controller, and notes describe the
differences. In a mix, fio chooses each I/O's mode at random and takes the addresses from a single
sequence (engines/io_uring.c), so all operations of such a job share a position.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from writecliff.workload.fiojob.settings import Settings
from writecliff.workload.fiojob.splits import WriteModes

_READ = "as reads, and counted as reads: the drive reads its media, and data cross its link"
_COMPARED = f"{_READ}; nothing is compared, so no such command fails"
_ZEROS = "as writes of data that compress to nothing, which cross the link like other data"
# Operation that replaces each mode, and a note about the replacement.
_BECOMES = {
    "write": ("write", ""),
    "write_stream": ("write", ""),
    "zone_append": ("write", "the host chooses the address: the write pointer of the zone"),
    "zeroes": ("zeros", _ZEROS),
    "deallocate": ("trim", "with deac=1 as trims, and counted as trims"),
    "uncor": ("trim", "as trims, and counted as trims: old data become invalid, and no read fails"),
    "verify": ("read", _READ),
    "write_and_verify": ("write", "each write is on the media when it completes; it is not read"),
    "write_same": ("zeros", _ZEROS),
    "write_same_ndob": ("zeros", _ZEROS),
    "verify_bytchk_00": ("read", _READ),
    "verify_bytchk_01": ("read", _COMPARED),
    "verify_bytchk_11": ("read", _COMPARED),
}


@dataclass(frozen=True)
class Becomes:
    """Percentages of a job's writes that are converted to other operations."""

    read_pct: float = 0.0
    trim_pct: float = 0.0
    zeros_pct: float = 0.0  # Percentage of writes that write zeros.
    is_mix: bool = False  # `True` for a mix of operations.
    on_media: bool = False  # `True` if a write completes on the media.
    notes: tuple[str, ...] = field(default=(), compare=False)


def becomes(settings: Settings) -> Becomes:
    """Return the conversion of writes; raise ConfigError for modes without an equivalent."""
    option = "sg_write_mode"
    modes: WriteModes = ((settings.sg_write_mode, 100),)
    if settings.given("write_mode"):
        option, modes = "write_mode", _nvme(settings)
    notes = tuple(f"{option}={mode}: {note}" for mode, _ in modes if (note := _BECOMES[mode][1]))
    shares = {"read": 0.0, "trim": 0.0, "write": 0.0, "zeros": 0.0}
    for mode, share in modes:
        shares[_BECOMES[mode][0]] += share
    writes = shares["write"] + shares["zeros"]
    return Becomes(
        shares["read"],
        shares["trim"],
        100 * shares["zeros"] / writes if writes else 0.0,
        sum(share > 0 for share in (shares["read"], shares["trim"], writes)) > 1,
        any(mode == "write_and_verify" for mode, _ in modes),
        notes,
    )


def _nvme(settings: Settings) -> WriteModes:
    if settings.zonemode != "zbd" and any(mode == "zone_append" for mode, _ in settings.write_mode):
        raise settings.error(
            "write_mode", "write_mode=zone_append requires zones", "add zonemode=zbd"
        )
    names = {"zeroes": "deallocate"} if settings.deac else {}
    return tuple((names.get(mode, mode), share) for mode, share in settings.write_mode)


def check(settings: Settings, used: tuple[str, ...], converted: Becomes) -> None:
    """Raise ConfigError if converted writes mix with other operations, or options count them."""
    if not (converted.read_pct or converted.trim_pct):
        return
    if used != ("write",):
        raise settings.error(
            "write_mode sg_write_mode",
            f"a job with {' and '.join(used)} cannot convert its writes to other commands",
            "use a separate job for the reads or trims",
        )
    for name in ("rate_min", "rate_iops_min"):
        if settings.given(name):
            raise settings.error(
                name,
                f"{name} counts writes, but write_mode converts some writes to reads or trims",
                "omit the option",
            )
