"""Scripts and styles: ours, the style of reports, and Bokeh's JavaScript from its package."""

from __future__ import annotations

from typing import Any

from tornado.web import StaticFileHandler

from writecliff.ui.handler import Dashboard, Handler


class StaticFiles(Handler, StaticFileHandler):
    """A file that is installed; who may ask is checked as for pages."""

    def initialize(self, dashboard: Dashboard, path: str) -> None:  # type: ignore[override]
        Handler.initialize(self, dashboard)
        StaticFileHandler.initialize(self, path)

    def set_extra_headers(self, path: str) -> None:
        self.set_header("Cache-Control", "private, max-age=0, must-revalidate")

    def compute_etag(self) -> Any:
        return StaticFileHandler.compute_etag(self)
