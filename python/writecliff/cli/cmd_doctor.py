"""Check for missing tools and show how to install them."""

from __future__ import annotations

from writecliff.cli.output import JsonFlag, emit_json, table

GROUP = "drives", 5
_MARKS = {"ok": "ok", "limited": "limited", "missing": "-"}


def doctor(*, json: JsonFlag = False) -> int:
    """Check for missing tools and show how to install them, but do not change the system.

    Simulated drives need none of these tools. A missing tool affects only the tasks in the tool's
    row.
    """
    from writecliff.api.machine import check_machine

    answer = check_machine()
    if json:
        emit_json(answer)
        return 0
    checks = answer.checks
    rows = [(check.name, _MARKS[check.state], check.purpose, check.found) for check in checks]
    print(table(("", "", "for", "found"), rows))
    remedies = [check for check in checks if check.remedy]
    if remedies:
        lines = [(f"  {check.name}", check.remedy) for check in remedies]
        print("\nTo add what is missing:")
        print(table(("", ""), lines).partition("\n")[2])
    return 0
