"""An open page in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Visit:
    """An open page with its requests and error messages."""

    def __init__(self, browser: Any, report: Path, width: int, **context: Any) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **context)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(report.as_uri())

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *error: object) -> None:
        self.context.close()
