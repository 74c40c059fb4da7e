"""Show what this machine can do, and how to get what is missing."""

from __future__ import annotations

from writecliff.cli.output import JsonFlag, emit_json, table

GROUP = "drives", 5
_MARKS = {"ok": "ok", "limited": "limited", "missing": "-"}


def doctor(*, json: JsonFlag = False) -> int:
    """Show what this machine can do, and how to get what is missing. Changes nothing.

    Simulated drives need none of it. What is missing only limits what the second column names.
    """
    from writecliff.api.machine import check_machine

    answer = check_machine()
    if json:
        emit_json(answer)
        return 0
    found = answer.checks
    rows = [(one.name, _MARKS[one.state], one.purpose, one.found) for one in found]
    print(table(("", "", "for", "found"), rows))
    remedies = [one for one in found if one.remedy]
    if remedies:
        print("\nTo get what is missing:")
        print(
            table(("", ""), [(f"  {one.name}", one.remedy) for one in remedies]).partition("\n")[2]
        )
    return 0
