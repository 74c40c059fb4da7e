"""Fixtures of all tests in this folder."""

from __future__ import annotations

from tests.support.published_figures import cli, figures, results, table

__all__ = ("cli", "figures", "results", "table")
