"""`writecliff device`: the simulated drives that come with the program."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from writecliff.cli.output import emit_json, size_text, table

app = App(name="device", help="List and show simulated drives.")
_FLAG = Parameter(negative=())
