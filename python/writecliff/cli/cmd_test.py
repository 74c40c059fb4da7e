"""Run an SNIA PTS test or a published campaign."""

from __future__ import annotations

from cyclopts import App

from writecliff.cli.options import ListFlag
from writecliff.cli.output import JsonFlag, emit_json, table
from writecliff.procedures.registry import PROCEDURES

GROUP = "tests and suites", 1
app = App(name="test")


@app.default
def overview(
    *,
    list_: ListFlag = False,
    json: JsonFlag = False,
) -> int:
    """Run an SNIA PTS test or a published campaign on a drive.

    Parameters
    ----------
    list_
        List the tests.
    """
    if not list_ and not json:
        print(f"tests: {', '.join(PROCEDURES)}; see `writecliff test NAME --help`")
        return 0
    if json:
        from writecliff.api.answers.tests import TestEntry, TestList

        emit_json(
            TestList(
                [
                    TestEntry(e.name, e.title, e.summary, e.editions, e.required, e.campaign)
                    for e in PROCEDURES.values()
                ]
            )
        )
        return 0
    rows = [
        (e.name, e.title, e.campaign or ", ".join(e.editions), e.summary)
        for e in PROCEDURES.values()
    ]
    print(table(("test", "title", "source", "what it does"), rows))
    return 0


for _number, (_name, _entry) in enumerate(PROCEDURES.items()):
    app.command(
        f"writecliff.cli.test_commands:{_name.replace('-', '_')}",
        name=_name,
        help=_entry.help,  # The command list shows this text because it does not load the commands.
        sort_key=_number,
    )
