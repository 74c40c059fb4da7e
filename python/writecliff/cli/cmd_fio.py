"""Run a fio command line on a simulated drive."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from writecliff.api.fio import FIO_VERSION, run_fio
from writecliff.cli.options import Whole, target_of
from writecliff.cli.output import log
from writecliff.cli.progress import WorkView
from writecliff.cli.screen import Screen

GROUP = "workloads and traces", 2
app = App(
    name="fio",
    usage="writecliff fio --on sim:NAME [FIO OPTIONS] [JOB FILE...]",
    version=FIO_VERSION,
)


@app.default
def fio(
    *words: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)],
    on: Annotated[str | None, Parameter(name="--on")] = None,
    seed: Whole = None,
    precondition: str | None = None,
    quiet: bool = False,
) -> int:
    """Run a fio command line on a simulated drive.

    All other options are fio options: `--name=x --rw=randread --bs=4k`, job files, `--section`,
    `--output`, `--output-format=normal|json|json+`, `--parse-only`, `--readonly`, `--aux-path`.
    With `alias fio='writecliff fio --on sim:sata-tlc-120'`, scripts that call fio work without
    changes.

    Parameters
    ----------
    on
        Simulated drive: sim:NAME or sim:PATH.toml. The drive replaces all filename and directory
        options.
    seed
        Seed for the drive and all random choices (default: the jobs' randseed).
    precondition
        Initial state of the drive, as for `writecliff run` (default: fill if the jobs read
        unwritten addresses, else none).
    quiet
        Suppress progress output and notes on stderr.
    """
    screen = Screen(quiet=quiet)
    with WorkView(screen).showing() as work:
        done = run_fio(
            words,
            target_of(on),
            seed=seed,
            precondition=precondition,
            progress=work,
            note=screen.log,
            warn=log,
        )
    if done is None:
        return 0
    done.write()
    return 1 if done.missed else 0
