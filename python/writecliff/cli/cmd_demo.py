"""Show a write cliff on a simulated drive in a minute."""

from __future__ import annotations

from pathlib import Path

from writecliff.cli.options import MadePath
from writecliff.cli.output import JsonFlag, emit_json, log
from writecliff.cli.progress import ProgressView
from writecliff.cli.screen import Screen
from writecliff.errors import ConfigError

GROUP = "tests and suites", 7
DRIVE = "sim:sata-tlc-120"
# The run uses six drive fills instead of four, so that the plot shows the settled drive. The rounds
# take 10 minutes instead of 31 minutes to yield enough rounds. The report discloses both changes.
DRIVE_FILLS = 6.0
ROUND_MINUTES = 10.0


def demo(
    *,
    on: str = DRIVE,
    output: MadePath = Path("demo"),
    json: JsonFlag = False,
    quiet: bool = False,
) -> int:
    """Show a write cliff: run a short write saturation test on a simulated drive.

    The command writes a run directory with a report.

    Parameters
    ----------
    on
        Simulated drive (sim:NAME).
    output
        Directory for the run and its report, which must be empty or not exist.
    quiet
        Suppress progress output on stderr.
    """
    if not on.startswith("sim:"):
        raise ConfigError(
            f"the demo runs on simulated drives only, not on {on}", hint="use --on sim:NAME"
        )
    from writecliff.api import run_test

    run = run_test(
        "wsat",
        on,
        output=output,
        progress=ProgressView(Screen(quiet=quiet), samples_only=True),
        end=("capacity",),
        drive_fills=DRIVE_FILLS,
        round_minutes=ROUND_MINUTES,
    )
    if json:
        from writecliff.api.answers.tests import Demo

        emit_json(Demo(output, run.page, run.summary))
        return 0
    log("")
    print(run.page)
    log(f"open the report in a browser; to run the full test: writecliff test wsat --on {on}")
    print(run.verdict)
    return 0
