"""Addresses at which a drive is served: which are NVMe/TCP's, and who can reach them."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import parse_qs, urlsplit

from writecliff.errors import ConfigError

_HOST_AND_PORT = re.compile(r"(\[[^\[\]]+\]|[^:\[\]]+):(\d{1,5})")


_NVME = ("nvme-tcp", "nvme+tcp")


@dataclass(frozen=True)
class Place:
    """Where a drive is served: at which socket, and under which NVMe qualified name if told."""

    where: tuple[str, str]
    name: str | None = None


def place_of(text: str) -> Place:
    """The place that an address means, in any of the forms that clients and `serve` write.

    `nvme-tcp://HOST:PORT[/NQN]`, `nbd://HOST:PORT`, `nbd+unix:///?socket=PATH`,
    `nbd+unix:PATH`, `unix:PATH`. Raises ConfigError for anything else.
    """
    scheme, _, rest = text.partition(":")
    if scheme in ("unix", "nbd+unix") and not rest.startswith("//"):
        return Place(("unix", os.path.realpath(rest)))
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
        parts = urlsplit("")
    if parts.scheme == "nbd+unix" and (path := parse_qs(parts.query).get("socket")):
        return Place(("unix", os.path.realpath(path[0])))
    if host and port and parts.scheme == "nbd":
        return Place(("nbd", f"{_loopback_or(host)}:{port}"))
    if host and port and parts.scheme in _NVME:
        return Place(("nvme", f"{_loopback_or(host)}:{port}"), parts.path.strip("/") or None)
    raise ConfigError(
        f"'{text}' is neither an address of a served drive nor the number of a process",
        hint="give nvme-tcp://HOST:PORT, nbd://HOST:PORT, nbd+unix:PATH, or what `serve` prints",
    )


def _loopback_or(host: str) -> str:
    return "127.0.0.1" if host == "localhost" else host


def check_nvme_addresses(addresses: Sequence[str]) -> None:
    """Raises ConfigError for an address that is no HOST:PORT."""
    for address in addresses:
        found = _HOST_AND_PORT.fullmatch(address)
        if found is None or found[1] == "unix" or int(found[2]) > 65535:
            raise ConfigError(
                f"'{address}' is not an address of NVMe/TCP, which needs HOST:PORT",
                hint="give --listen 127.0.0.1:4420",
            )


def is_open_to_others(address: str) -> bool:
    """Whether other machines may reach a listening `HOST:PORT` or `unix:PATH`."""
    if address.startswith("unix:"):
        return False
    name = address.rpartition(":")[0].strip("[]").partition("%")[0]
    numbers = {str(found[4][0]) for found in socket.getaddrinfo(name, None)}
    return not all(_is_loopback(ip_address(number.partition("%")[0])) for number in numbers)


def _is_loopback(host: IPv4Address | IPv6Address) -> bool:
    mapped = host.ipv4_mapped if isinstance(host, IPv6Address) else None
    return (mapped or host).is_loopback
