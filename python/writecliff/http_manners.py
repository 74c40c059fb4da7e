"""Rules for all of writecliff's HTTP servers: accepted `Host` headers and response headers."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import ip_address

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # An address may contain a token.
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "SAMEORIGIN",
}


def is_own_host(host: str, names: Iterable[str] = ()) -> bool:
    """Return `True` if a `Host` header, with or without a port, refers to this machine.

    An attacker can point a foreign host name at this machine ("DNS rebinding"), and the browser
    then sends that name. Therefore only IP addresses (which cannot be redirected), `localhost`,
    this machine's name and `names` are accepted.
    """
    name = _without_port(host).lower()
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        ours = {"localhost", socket.gethostname().lower(), *map(str.lower, names)}
        return name.rstrip(".") in ours
    return True


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() and (not name.count(":") or name[0] == "[") else host
