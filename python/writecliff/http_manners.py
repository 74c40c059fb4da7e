"""Rules that every HTTP server of ours follows: names that it answers to, and headers."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import ip_address

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # an address may contain a token
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "SAMEORIGIN",
}


def is_own_host(host: str, names: Iterable[str] = ()) -> bool:
    """Return whether a `Host` header, with or without a port, names this machine.

    A browser that is led to a name of somebody else with our address ("DNS rebinding") sends that
    name. So only numbers, which nobody can redirect, `localhost`, the name of this machine and
    `names` count.
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
