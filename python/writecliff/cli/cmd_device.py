"""`writecliff device`: the simulated drives that come with the program."""

from __future__ import annotations

from cyclopts import App, Parameter

app = App(name="device", help="List and show simulated drives.")
_FLAG = Parameter(negative=())
