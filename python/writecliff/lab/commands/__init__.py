"""The lab command line: one file per command, `cmd_NAME.py`, as in `writecliff.cli`."""

from __future__ import annotations

from functools import cache

from cyclopts import App

from writecliff.cli.commands import LAB_ABOUT, Command, read_commands
from writecliff.cli.complete_values import RUNS, SIMULATED, Names, Values

GROUPS = ("lab",)
app = App(name="lab", help=LAB_ABOUT)


@cache
def lab_commands() -> tuple[Command, ...]:
    """Return all lab commands, in help order."""
    return read_commands(__file__, __name__, GROUPS)


for command in lab_commands():
    app.command(command.target, name=command.name, help=command.help)


def _reliability(typed: str) -> Names:
    from writecliff.lab.reliability import CAMPAIGNS

    return [(name, campaign.about) for name, campaign in CAMPAIGNS.items()]


def _experiments(typed: str) -> Names:
    from writecliff.lab.experiments import EXPERIMENTS

    return list(EXPERIMENTS.items())


def _published(typed: str) -> Names:
    from writecliff.published.figures import CAMPAIGNS, OTHERS_NAME

    names = [(campaign.name, campaign.about) for campaign in CAMPAIGNS]
    return [*names, ("all", "all of them"), (OTHERS_NAME, "")]


def _fits(typed: str) -> Names:
    from writecliff.published.fit import shipped_fits

    return [*((name, "") for name in shipped_fits()), ("all", "")]


POSITIONS = {
    "lab act log": RUNS,
    "lab act latency": RUNS,
    "lab experiment": Values(_experiments),
    "lab fit": Values(_fits, files=True),
    "lab reliability": Values(_reliability),
    "lab reproduce": Values(_published),
    "lab torture": SIMULATED,
}
"""Completions of positional arguments."""
