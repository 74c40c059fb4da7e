"""Who may ask, and what a browser may do with the answer."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

from writecliff.errors import ConfigError
from writecliff.http_manners import is_own_host

TOKEN = "token"  # the name of the token in an address
SHORTEST = 16  # characters of a token
_TOKEN_BYTES = 24


@dataclass(frozen=True)
class Access:
    """Token of the dashboard, and the host names under which it may be requested."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES))
    names: frozenset[str] = frozenset()  # besides `localhost` and this machine's own

    def __post_init__(self) -> None:
        """Raises ConfigError for a token that could be guessed or does not fit into an address."""
        plain = self.token.isascii() and self.token.replace("-", "").replace("_", "").isalnum()
        if len(self.token) < SHORTEST or not plain:
            raise ConfigError(
                f"--token needs at least {SHORTEST} letters and digits",
                hint="leave it out for a random one",
            )

    def opens(self, given: str | None) -> bool:
        """Whether this is the token; takes the same time for all that are not."""
        return given is not None and hmac.compare_digest(given.encode(), self.token.encode())

    def knows_host(self, host: str) -> bool:
        """Whether `host`, as a browser sends it with or without a port, is this machine."""
        return is_own_host(host, self.names)


def page_policy(nonce: str) -> str:
    """The Content-Security-Policy of our pages: nothing from elsewhere, no script in a page.

    Bokeh's JavaScript makes `<style>` elements, which carry the `nonce` of the page.
    """
    return (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
        f"style-src 'self' 'nonce-{nonce}'; frame-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


# A report is a file that somebody made. It runs its script apart from our pages and cookies, and
# loads and sends nothing.
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)


def new_nonce() -> str:
    """A number for the styles of one page."""
    return secrets.token_urlsafe(16)
