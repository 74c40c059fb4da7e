"""`writecliff report RUN`: the standard's report of a run, as one HTML file."""

from __future__ import annotations
