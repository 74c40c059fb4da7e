"""A dashboard served by a thread of this process, and a client that can send any request."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.support.processes import WAIT_LIMIT_S
from writecliff.ui.access import Access
from writecliff.ui.server import UiOptions, serve


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Served:
    """A dashboard listening at `address`; requests carry its cookie by default."""

    address: str
    complaints: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(urlsplit(self.address).port or 0)

    @property
    def token(self) -> str:
        return parse_qs(urlsplit(self.address).query)["token"][0]

    @property
    def cookie(self) -> str:
        return f"writecliff-ui-{self.port}={self.token}"

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        cookie: str | None = "",
        body: str | None = None,
        **headers: str,
    ) -> Answer:
        """Send a request for `path`, unescaped, and return the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_LIMIT_S)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if cookie is not None:
            sent["Cookie"] = "; ".join(filter(None, (self.cookie, cookie)))
        if body is not None:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def of(self, path: str, name: str | list[str], **more: Any) -> Answer:
        """Return the response to a page or plot of one or more runs."""
        return self.ask(f"{path}?{urlencode({'name': name, **more}, doseq=True)}")

    def form(self, path: str, fields: dict[str, str], **headers: str) -> Answer:
        """Send a form as a dashboard page would."""
        xsrf = "0123456789abcdef0123456789abcdef"
        cookie = f"writecliff-ui-{self.port}-form={xsrf}"
        return self.ask(path, method="POST", cookie=cookie,
                        body=urlencode({"_xsrf": xsrf, **fields}), **headers)  # fmt: skip


@contextmanager
def dashboard(root: Path, *, allow_changes: bool = False) -> Iterator[Served]:
    """Serve the store in `root` on a free port until the `with` block ends."""
    options = UiOptions(location=str(root), port=0, allow_changes=allow_changes, access=Access())
    begun, ended = threading.Event(), []
    served = Served("")
    failed: list[BaseException] = []

    async def run() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        ended.append(lambda: loop.call_soon_threadsafe(stop.set))

        def ready(address: str) -> None:
            served.address = address
            begun.set()

        await serve(options, ready, stop, served.complaints.append)

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            failed.append(error)
            begun.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert begun.wait(WAIT_LIMIT_S)
        if failed:
            raise failed[0]
        yield served
    finally:
        if ended:
            ended[0]()
        thread.join(WAIT_LIMIT_S)
    assert not thread.is_alive()
