"""Campaigns on reliability features: what a drive loses without a feature, and keeps with it.

A campaign runs simulated drives with faults injected, with and without the feature, in virtual
time. Sections that the drive's file lacks are added, with values whose source the page shows.

`model.py` is what a campaign returns, `drive.py` makes its drives, `page.py` renders it; each other
module is one campaign with `run(text, file_name, log)`. `CAMPAIGNS` lists them.
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
    """A campaign: its module, what it shows, and why a real drive cannot take it."""

    module: str
    about: str
    simulated_only: str  # completes "a real drive ..."


CAMPAIGNS = {
    "power-loss-protection": Campaign(
        "power_loss",
        "what confirmed writes a power cut takes, with and without capacitors",
        "does not tell what it had confirmed, and its capacitors cannot be taken out",
    ),
    "end-to-end-protection": Campaign(
        "end_to_end",
        "bit flips and misplaced writes: what is served wrong, and what protection finds",
        "does not let faults be injected",
    ),
    "cell-care": Campaign(
        "cell_care",
        "retention at temperature and read disturb over months, with and without refresh",
        "would have to be kept at temperature for months",
    ),
    "thermal-throttling": Campaign(
        "thermal",
        "temperature and throughput in a hot enclosure, with and without throttling",
        "would be damaged without throttling",
    ),
    "die-failure": Campaign(
        "die_failure",
        "a die that is lost: reads rebuilt from its stripe, with and without parity across dies",
        "does not let a die be taken from it",
    ),
    "wear-out": Campaign(
        "wear_out",
        "writes until no spare is left, with and without replacement of bad blocks",
        "would be worn out",
    ),
}


def run(name: str, target: str, log: Log = lambda text: None) -> Result:
    """Run a campaign on a simulated drive, "sim:NAME" or "sim:PATH.toml".

    Raises ConfigError: no such campaign, a real drive, or a drive that it cannot use.
    """
    from writecliff.devices import describe_device, read_device_file

    if name not in CAMPAIGNS:
        raise ConfigError.unknown("campaign", name, CAMPAIGNS)
    campaign = CAMPAIGNS[name]
    if not target.startswith("sim:"):
        raise ConfigError(
            f"{name} needs a simulated drive: a real drive {campaign.simulated_only}",
            hint="give a drive such as --on sim:sata-tlc-120",
        )
    text, file_name = read_device_file(target.removeprefix("sim:"))
    describe_device(text, file_name).flash_bytes(name)
    result: Result = import_module(f"{__name__}.{campaign.module}").run(text, file_name, log)
    return result
