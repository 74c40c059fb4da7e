"""Reliability campaigns, which compare data loss with and without a drive feature.

A campaign runs simulated drives with injected faults, with and without the feature, in virtual
time. Sections that the device file lacks are added, with values whose sources the page shows.

`model.py` defines the result of a campaign, `drive.py` creates its drives, and `page.py` renders
it. Each other module is a campaign with `run(text, file_name, log)`. `CAMPAIGNS` lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from writecliff.errors import ConfigError
from writecliff.lab.reliability.model import Result as Result

Log = Callable[[str], None]


@dataclass(frozen=True)
class Campaign:
    """A campaign, with module, description, and the reason why it needs a simulated drive."""

    module: str
    about: str
    simulated_only: str  # Text that completes "a real drive ...".


CAMPAIGNS = {
    "power-loss-protection": Campaign(
        "power_loss",
        "confirmed writes lost in a power cut, with and without capacitors",
        "does not report which writes it had confirmed, and its capacitors cannot be removed",
    ),
    "end-to-end-protection": Campaign(
        "end_to_end",
        "bit flips and misplaced writes: wrong reads, and errors that protection detects",
        "does not allow fault injection",
    ),
    "cell-care": Campaign(
        "cell_care",
        "retention at temperature and read disturb over months, with and without refresh",
        "would have to stay at temperature for months",
    ),
    "thermal-throttling": Campaign(
        "thermal",
        "temperature and throughput in a hot enclosure, with and without throttling",
        "would be damaged without throttling",
    ),
    "die-failure": Campaign(
        "die_failure",
        "a failed die: reads rebuilt from its stripe, with and without parity across dies",
        "does not allow disabling a die",
    ),
    "wear-out": Campaign(
        "wear_out",
        "writes until no spare blocks are left, with and without replacement of bad blocks",
        "would be worn out",
    ),
}


def run(name: str, target: str, log: Log = lambda text: None) -> Result:
    """Run a campaign on a simulated drive, "sim:NAME" or "sim:PATH.toml".

    Raises:
        ConfigError: If the campaign is unknown, or the drive is real or lacks a required property.
    """
    from writecliff.devices import describe_device, read_device_file

    if name not in CAMPAIGNS:
        raise ConfigError.unknown("campaign", name, CAMPAIGNS)
    campaign = CAMPAIGNS[name]
    if not target.startswith("sim:"):
        raise ConfigError(
            f"{name} needs a simulated drive: a real drive {campaign.simulated_only}",
            hint="specify a drive, such as --on sim:sata-tlc-120",
        )
    text, file_name = read_device_file(target.removeprefix("sim:"))
    describe_device(text, file_name).flash_bytes(name)
    result: Result = import_module(f"{__name__}.{campaign.module}").run(text, file_name, log)
    return result
