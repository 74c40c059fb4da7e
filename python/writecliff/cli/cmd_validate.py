"""`writecliff validate`: the simulator against what is known to be right."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import App, Parameter

from writecliff.cli.cmd_device import label, value_text
from writecliff.cli.output import emit_json, table, talk

app = App(name="validate", help="Check the simulator against theory.")


@app.command(name="waf", help="Compare simulated write amplification with theory.")
def waf(*, json: Annotated[bool, Parameter(negative=())] = False) -> int:
    """Compare simulated write amplification with theory; fails (exit code 1) if a case is off.

    Parameters
    ----------
    json
        Print {"ok": BOOL, "cases": [...]}.
    """
    from writecliff.validate.waf import run

    cases = [asdict(case) for case in run()]
    ok = bool(cases) and all(case["ok"] for case in cases)
    if json:
        emit_json({"ok": ok, "cases": cases})
    else:
        header = tuple(cases[0]) if cases else ()
        rows = [[value_text(name, case[name]) for name in header] for case in cases]
        print(table([label(name) for name in header], rows))
    if not ok:
        talk("some cases are off" if cases else "no case was run")
    return 0 if ok else 1
