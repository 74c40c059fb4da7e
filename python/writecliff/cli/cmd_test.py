"""`writecliff test ...`: the tests of the standard."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from writecliff.cli.output import emit_json, table
from writecliff.procedures.registry import PROCEDURES

# Also in the list of commands, where the module of the command is not loaded.
WSAT_HELP = """\
Write saturation test: random 4 KiB writes from purge until saturation.

Options that are not at the standard's value are disclosed in the report."""

app = App(name="test", help="Run a test of the standard on a drive.")


@app.default
def overview(
    *,
    list_: Annotated[bool, Parameter(name="--list", negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Run a test of the standard on a drive.

    Parameters
    ----------
    list_
        List the tests.
    json
        Print the list as JSON: {"tests": [{"name", "title", "summary", "editions"}]}.
    """
    if not list_ and not json:
        print(f"tests: {', '.join(PROCEDURES)}; `writecliff test NAME --help` shows one")
        return 0
    if json:
        emit_json({"tests": [vars(entry) for entry in PROCEDURES.values()]})
        return 0
    rows = [(e.name, e.title, ", ".join(e.editions), e.summary) for e in PROCEDURES.values()]
    print(table(("test", "title", "editions", "what it does"), rows))
    return 0


app.command("writecliff.cli.cmd_wsat:wsat", name="wsat", help=WSAT_HELP)
