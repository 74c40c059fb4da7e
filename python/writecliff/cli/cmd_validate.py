"""`writecliff validate`: the simulator against what is known to be right."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import App, Parameter

from writecliff.cli.output import emit_json, table, talk

app = App(name="validate", help="Check the simulator against theory.")


@app.command(name="waf", help="Compare simulated write amplification with theory.")
def waf(*, json: Annotated[bool, Parameter(negative=())] = False) -> int:
    """Compare simulated write amplification with theory; fails (exit code 1) if a row is off.

    Parameters
    ----------
    json
        Print {"schema", "tolerance_pct", "ok", "rows": [{"policy", "overprovision",
        "pages_per_block", "blocks", "waf_measured", "waf_theory", "error_pct"}]}.
    """
    from writecliff.validate.waf import TOLERANCE_PCT, run

    cases = run()
    ok = bool(cases) and all(case.ok for case in cases)
    if json:
        document = {"schema": "writecliff/validate-waf/1", "tolerance_pct": TOLERANCE_PCT, "ok": ok}
        emit_json(document | {"rows": [asdict(case) for case in cases]})
    else:
        header = ("policy", "OP", "pages/block", "blocks", "measured", "theory", "error", "")
        rows = [
            (
                case.policy,
                f"{100 * case.overprovision:g} %",
                str(case.pages_per_block),
                str(case.blocks),
                f"{case.waf_measured:.4f}",
                f"{case.waf_theory:.4f}",
                f"{case.error_pct:+.3f} %",
                "ok" if case.ok else "OFF",
            )
            for case in cases
        ]
        print(table(header, rows))
    if not ok:
        talk(f"a row is off by more than {TOLERANCE_PCT:g} % (streams: by anything)")
    return 0 if ok else 1
