"""Access control for the dashboard, and the content policies of its responses."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

from writecliff.errors import ConfigError
from writecliff.http_manners import is_own_host

TOKEN = "token"  # Name of the token parameter in an address.
SHORTEST = 16  # Minimum token length.
_TOKEN_BYTES = 24


@dataclass(frozen=True)
class Access:
    """Dashboard token, and the host names accepted in requests."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES))
    # Additional host names besides `localhost` and this machine's names.
    names: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Check the format of the token.

        Raises:
            ConfigError: If the token is too short or contains characters that are not allowed in a
                URL.
        """
        plain = self.token.isascii() and self.token.replace("-", "").replace("_", "").isalnum()
        if len(self.token) < SHORTEST or not plain:
            raise ConfigError(
                f"--token requires at least {SHORTEST} letters and digits",
                hint="use a longer token, or omit --token for a random token",
            )

    def opens(self, given: str | None) -> bool:
        """Return `True` if the token is correct, using a constant-time comparison."""
        return given is not None and hmac.compare_digest(given.encode(), self.token.encode())

    def knows_host(self, host: str) -> bool:
        """Return `True` if `host`, as sent by a browser, is one of this machine's names.

        `host` may include a port.
        """
        return is_own_host(host, self.names)


def page_policy(nonce: str) -> str:
    """Return the Content-Security-Policy for pages, without foreign content and inline scripts.

    Bokeh's JavaScript creates `<style>` elements, which carry the page's `nonce`.
    """
    return (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
        f"style-src 'self' 'nonce-{nonce}'; frame-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


# A report file may come from an unknown origin. The scripts in a report have no access to other
# pages and cookies, and can neither load nor send data.
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)


def new_nonce() -> str:
    """Return a random nonce that permits the styles of one page."""
    return secrets.token_urlsafe(16)
