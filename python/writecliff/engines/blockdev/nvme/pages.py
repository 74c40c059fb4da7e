"""Layouts of NVMe identify data and log pages.

Figures and sections refer to NVMe Base Specification 2.1 and NVM Command Set Specification 1.1. Log
C0h follows the OCP Datacenter NVMe SSD Specification 2.5. All fields are little-endian.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from writecliff.engines.base import PowerState

IDENTIFY_BYTES = 4096
SMART_BYTES, ENDURANCE_BYTES, SANITIZE_BYTES, OCP_BYTES = 512, 512, 512, 512
ENDURANCE_UNIT = 1_000_000_000
_OCP_GUID = bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af")  # GUID in the byte order of the log.


def number(data: bytes, start: int, size: int) -> int:
    """Return the unsigned number of `size` bytes at `start`."""
    return int.from_bytes(data[start : start + size], "little")


def _text(data: bytes, start: int, size: int) -> str:
    return data[start : start + size].decode("ascii", "replace").strip(" \0")


def _power_state(data: bytes, which: int) -> PowerState:
    """Parse a power state descriptor (Base 2.1, figure 313), where a power of 0 means unknown."""
    at = 2048 + 32 * which
    flags, power = data[at + 3], number(data, at, 2)
    unit_w = 0.0001 if flags & 1 else 0.01  # MXPS flag.
    return PowerState(
        number=which,
        watts_max=round(power * unit_w, 4) if power else None,
        operational=not flags & 1 << 1,  # NOPS flag.
        entry_us=number(data, at + 4, 4),
        exit_us=number(data, at + 8, 4),
    )


@dataclass(frozen=True)
class Controller:
    """Fields of Identify Controller (CNS 01h, Base 2.1, 5.1.13.2.1)."""

    vendor_id: int  # PCI vendor ID.
    serial: str
    model: str
    firmware: str
    sharing: int  # CMIC field.
    attributes: int  # CTRATT field.
    admin_commands: int  # OACS field.
    sanitize: int  # SANICAP field.
    format: int  # FNA field.
    write_cache: int  # VWC field.
    namespaces: int  # NN: the highest valid NSID.
    # NPSS and the power state descriptors, starting with state 0.
    power_states: tuple[PowerState, ...]

    @classmethod
    def of(cls, data: bytes) -> Controller:
        """Parse the identify data."""
        return cls(
            vendor_id=number(data, 0, 2),
            serial=_text(data, 4, 20),
            model=_text(data, 24, 40),
            firmware=_text(data, 64, 8),
            sharing=number(data, 76, 1),
            attributes=number(data, 96, 4),
            admin_commands=number(data, 256, 2),
            sanitize=number(data, 328, 4),
            format=number(data, 524, 1),
            write_cache=number(data, 525, 1),
            namespaces=number(data, 516, 4),
            power_states=tuple(_power_state(data, n) for n in range(min(data[263], 31) + 1)),
        )

    @property
    def has_volatile_cache(self) -> bool:
        """VWC bit 0: the controller has a volatile write cache."""
        return bool(self.write_cache & 1)

    @property
    def can_format(self) -> bool:
        """OACS bit 1: the controller supports Format NVM."""
        return bool(self.admin_commands & 1 << 1)

    @property
    def manages_namespaces(self) -> bool:
        """OACS bit 3: the controller supports Namespace Management."""
        return bool(self.admin_commands & 1 << 3)

    @property
    def may_have_others(self) -> bool:
        """CMIC bit 1: the subsystem may have other controllers with other namespaces."""
        return bool(self.sharing & 1 << 1)

    @property
    def has_directives(self) -> bool:
        """OACS bit 5: the controller supports directives."""
        return bool(self.admin_commands & 1 << 5)

    @property
    def formats_all(self) -> bool:
        """FNA bits 0 and 1: a format or its secure erase covers all namespaces."""
        return bool(self.format & 0b11)

    @property
    def formats_with_crypto(self) -> bool:
        """FNA bit 2: a format supports cryptographic erase."""
        return bool(self.format & 1 << 2)

    @property
    def has_endurance_groups(self) -> bool:
        """CTRATT bit 4: the controller supports endurance groups."""
        return bool(self.attributes & 1 << 4)

    @property
    def has_fdp(self) -> bool:
        """CTRATT bit 19: the controller supports flexible data placement."""
        return bool(self.attributes & 1 << 19)


@dataclass(frozen=True)
class Layout:
    """Namespace layout that a format operation must preserve (NVM Command Set 1.1, 4.1.5.1)."""

    lba_format: int  # Index of the LBA format.
    data_bytes: int  # Logical block size, excluding metadata.
    metadata_bytes: int
    # MSET: `True` if metadata follows the data instead of using a separate buffer.
    metadata_inline: bool
    protection: int  # PI: 0 if disabled, otherwise protection type 1 to 3.
    # PIL: `True` if protection information occupies the first bytes of the metadata.
    protection_first: bool

    def __str__(self) -> str:
        """Return the layout as text, such as "LBA format 0 (512 bytes)"."""
        text = f"LBA format {self.lba_format} ({self.data_bytes} bytes"
        if self.metadata_bytes:
            text += f" and {self.metadata_bytes} of metadata"
            text += " behind them" if self.metadata_inline else ""
        text += f", protection type {self.protection}" if self.protection else ""
        return f"{text})"


@dataclass(frozen=True)
class Namespace:
    """Fields of Identify Namespace (CNS 00h)."""

    blocks: int  # Namespace size (NSZE) in blocks.
    layout: Layout
    formats: tuple[tuple[int, int], ...]  # Data and metadata sizes in bytes of every LBA format.
    endurance_group: int  # ENDGID; 0: none

    @classmethod
    def of(cls, data: bytes) -> Namespace:
        """Parse the identify data."""
        formats = tuple(
            (1 << data[at + 2] if data[at + 2] else 0, number(data, at, 2))
            for at in range(128, 128 + 4 * (data[25] + 1), 4)
        )
        flbas, dps = data[26], data[29]
        index = flbas & 0xF
        if len(formats) > 16:
            index |= (flbas >> 5 & 0b11) << 4
        size, metadata = formats[index] if index < len(formats) else (0, 0)
        return cls(
            blocks=number(data, 0, 8),
            layout=Layout(index, size, metadata, bool(flbas & 1 << 4), dps & 0b111, bool(dps & 8)),
            formats=formats,
            endurance_group=number(data, 102, 2),
        )

    @property
    def size_bytes(self) -> int:
        """Namespace size in bytes, excluding metadata."""
        return self.blocks * self.layout.data_bytes


# First byte and size of each field. The field names match the JSON output of nvme-cli 2.3.
_SMART = {
    "critical_warning": (0, 1),
    "temperature": (1, 2),  # Temperature in kelvins.
    "avail_spare": (3, 1),
    "spare_thresh": (4, 1),
    "percent_used": (5, 1),
    "endurance_grp_critical_warning_summary": (6, 1),
    "data_units_read": (32, 16),
    "data_units_written": (48, 16),
    "host_read_commands": (64, 16),
    "host_write_commands": (80, 16),
    "controller_busy_time": (96, 16),
    "power_cycles": (112, 16),
    "power_on_hours": (128, 16),
    "unsafe_shutdowns": (144, 16),
    "media_errors": (160, 16),
    "num_err_log_entries": (176, 16),
    "warning_temp_time": (192, 4),  # Time in minutes.
    "critical_comp_time": (196, 4),  # Time in minutes.
    "thm_temp1_trans_count": (216, 4),
    "thm_temp2_trans_count": (220, 4),
    "thm_temp1_total_time": (224, 4),  # Time in seconds.
    "thm_temp2_total_time": (228, 4),  # Time in seconds.
}


def smart_log(data: bytes) -> dict[str, int]:
    """Parse SMART / Health Information (log 02h, Base 2.1, 5.1.12.1.3), using nvme-cli's names.

    Temperatures of 0 K, which mean that the drive does not report the value, are omitted.
    """
    fields = {name: number(data, *where) for name, where in _SMART.items()}
    if not fields["temperature"]:
        del fields["temperature"]
    for sensor in range(8):
        if kelvin := number(data, 200 + 2 * sensor, 2):
            fields[f"temperature_sensor_{sensor + 1}"] = kelvin
    return fields


@dataclass(frozen=True)
class Written:
    """Host writes and flash writes in bytes, read from a log."""

    host: int | None  # `None` if the log does not count host writes.
    media: int


def endurance_group(data: bytes) -> Written:
    """Parse Endurance Group Information (log 09h, Base 2.1, 5.1.12.1.10).

    Data Units Written and Media Units Written are in units of 10^9 bytes.
    """
    return Written(number(data, 64, 16) * ENDURANCE_UNIT, number(data, 80, 16) * ENDURANCE_UNIT)


def fdp_statistics(data: bytes) -> tuple[int, int, int]:
    """Return HBMW, MBMW and MBE in bytes from FDP Statistics (log 22h, Base 2.1, 5.1.12.1.30)."""
    return number(data, 0, 16), number(data, 16, 16), number(data, 32, 16)


def is_ocp_smart(data: bytes) -> bool:
    """Return True if log C0h has the GUID of the OCP SMART / Health Information Extended log."""
    return data[496:512] == _OCP_GUID


def ocp_smart(data: bytes) -> Written:
    """Return Physical Media Units Written in bytes from the OCP log C0h (SMART-1)."""
    return Written(None, number(data, 0, 16))


@dataclass(frozen=True)
class SanitizeStatus:
    """Contents of the Sanitize Status log (81h, Base 2.1, 5.1.12.1.33)."""

    state: int  # SSTAT bits 2:0.
    progress: float  # Progress from 0 to 1; always 1 when no sanitize is in progress.
    action: int  # SANACT of the most recent sanitize.
    # Estimated time by action, in seconds; `None` if not reported.
    estimates_s: Mapping[int, int | None]

    NEVER, DONE, RUNNING, FAILED, DONE_WITHOUT_DEALLOCATION = range(5)

    @classmethod
    def of(cls, data: bytes) -> SanitizeStatus:
        """Parse the Sanitize Status log."""

        def seconds(start: int) -> int | None:
            value = number(data, start, 4)
            return None if value == 0xFFFFFFFF else value

        return cls(
            state=number(data, 2, 2) & 0b111,
            progress=number(data, 0, 2) / 0x10000 if number(data, 0, 2) != 0xFFFF else 1.0,
            action=number(data, 4, 4) & 0b111,
            estimates_s={3: seconds(8), 2: seconds(12), 4: seconds(16)},
        )


def namespace_list(data: bytes) -> tuple[int, ...]:
    """Parse a list of up to 1024 namespace identifiers, which ends at the first zero."""
    numbers = (number(data, at, 4) for at in range(0, len(data) - 3, 4))
    identifiers: list[int] = []
    for identifier in numbers:
        if not identifier:
            break
        identifiers.append(identifier)
    return tuple(identifiers)


def uuid_list(data: bytes) -> tuple[bytes, ...]:
    """Parse the UUID list (CNS 17h, Base 2.1, 5.1.13.2.14), which ends at the first zero UUID.

    UUID indices start at 1.
    """
    uuids: list[bytes] = []
    for at in range(32, len(data) - 31, 32):
        uuid = data[at + 16 : at + 32]
        if not any(uuid):
            break
        uuids.append(uuid)
    return tuple(uuids)


_STREAMS = {
    "msl": (0, 2), "nssa": (2, 2), "nsso": (4, 2), "sws": (16, 4), "sgs": (20, 2), "nsa": (22, 2),
    "nso": (24, 2),
}  # fmt: skip


def stream_parameters(data: bytes) -> dict[str, int]:
    """Parse the Streams directive's Return Parameters, using the standard's field names."""
    return {name: number(data, *where) for name, where in _STREAMS.items()}


def open_streams(data: bytes) -> tuple[int, ...]:
    """Parse the Streams directive's Get Status data: up to 2047 identifiers in 4096 bytes."""
    count = min(number(data, 0, 2), len(data) // 2 - 1)
    return tuple(sorted(number(data, 2 + 2 * at, 2) for at in range(count)))


def vendor_items(data: bytes) -> dict[int, int]:
    """Parse 12-byte items of log CAh (Intel, Solidigm) into raw 48-bit values by identifier.

    Layout: The layout is `struct nvme_additional_smart_log_item` in nvme-cli's intel and solidigm
        plugins.
    """
    items: dict[int, int] = {}
    for at in range(0, len(data) - 11, 12):
        if data[at]:
            items[data[at]] = number(data, at + 5, 6)
    return items


def json_number(document: object, names: tuple[str, ...]) -> int | None:
    """Return the sum of the named values in a JSON document, or None if none of them exist.

    nvme-cli plugins print counts as numbers or as hexadecimal text.
    """
    if isinstance(document, list):
        sums = [value for part in document if (value := json_number(part, names)) is not None]
        return sum(sums) if sums else None
    if not isinstance(document, Mapping):
        return None
    values = [_whole(document[name]) for name in names if name in document]
    counts = [value for value in values if value is not None]
    if counts:
        return sum(counts)
    return json_number(list(document.values()), names)


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return int(value)
    try:
        return int(str(value).replace(",", ""), 0)
    except ValueError:
        return None
