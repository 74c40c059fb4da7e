"""`writecliff validate`: the simulator against what is known to be right."""

from __future__ import annotations

from cyclopts import App, Parameter

_FLAG = Parameter(negative=())

app = App(name="validate", help="Check the simulator against theory.")
