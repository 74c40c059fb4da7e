"""Access to the dashboard, and the content policies of its answers."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

from writecliff.errors import ConfigError
from writecliff.http_manners import is_own_host

TOKEN = "token"  # name of the token in an address
SHORTEST = 16  # minimum length of a token
_TOKEN_BYTES = 24


@dataclass(frozen=True)
class Access:
    """Token of the dashboard, and the host names under which it may be requested."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES))
    names: frozenset[str] = frozenset()  # in addition to `localhost` and the names of this machine

    def __post_init__(self) -> None:
        """Check the token.

        Raises:
            ConfigError: the token is too short or has characters that do not fit into an address.
        """
        plain = self.token.isascii() and self.token.replace("-", "").replace("_", "").isalnum()
        if len(self.token) < SHORTEST or not plain:
            raise ConfigError(
                f"--token requires at least {SHORTEST} letters and digits",
                hint="omit it for a random token",
            )

    def opens(self, given: str | None) -> bool:
        """Return `True` for the token, in constant time."""
        return given is not None and hmac.compare_digest(given.encode(), self.token.encode())

    def knows_host(self, host: str) -> bool:
        """Return `True` if `host`, as sent by a browser, is a name of this machine.

        `host` may include a port.
        """
        return is_own_host(host, self.names)


def page_policy(nonce: str) -> str:
    """Return the Content-Security-Policy of pages: no foreign content, no inline scripts.

    Bokeh's JavaScript creates `<style>` elements, which carry the `nonce` of the page.
    """
    return (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
        f"style-src 'self' 'nonce-{nonce}'; frame-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


# A report is a file of unknown origin. Its script runs without access to pages and cookies, and it
# cannot load or send anything.
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)


def new_nonce() -> str:
    """Return a random number for the styles of one page."""
    return secrets.token_urlsafe(16)
