"""Addresses of served drives: parsing, NVMe/TCP checks and reachability."""

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
class ServedAddress:
    """A socket that serves a drive, with the drive's NVMe qualified name if known."""

    where: tuple[str, str]
    name: str | None = None


def parse_address(text: str) -> ServedAddress:
    """Parse an address in any form used by clients or `serve`.

    Accepted forms are `nvme-tcp://HOST:PORT[/NQN]`, `nbd://HOST:PORT`, `nbd+unix:///?socket=PATH`,
    `nbd+unix:PATH` and `unix:PATH`.

    Raises:
        ConfigError: If the address has a different form.
    """
    scheme, _, rest = text.partition(":")
    if scheme in ("unix", "nbd+unix") and not rest.startswith("//"):
        return ServedAddress(("unix", os.path.realpath(rest)))
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
        parts = urlsplit("")
    if parts.scheme == "nbd+unix" and (path := parse_qs(parts.query).get("socket")):
        return ServedAddress(("unix", os.path.realpath(path[0])))
    if host and port and parts.scheme == "nbd":
        return ServedAddress(("nbd", f"{_loopback_or(host)}:{port}"))
    if host and port and parts.scheme in _NVME:
        return ServedAddress(
            ("nvme", f"{_loopback_or(host)}:{port}"), parts.path.strip("/") or None
        )
    raise ConfigError(
        f"'{text}' is neither the address of a served drive nor a process ID",
        hint="specify nvme-tcp://HOST:PORT, nbd://HOST:PORT, nbd+unix:PATH, or the address that "
        "`serve` prints",
    )


def _loopback_or(host: str) -> str:
    return "127.0.0.1" if host == "localhost" else host


def check_nvme_addresses(addresses: Sequence[str]) -> None:
    """Check that addresses have the form HOST:PORT.

    Raises:
        ConfigError: If an address has a different form.
    """
    for address in addresses:
        match = _HOST_AND_PORT.fullmatch(address)
        if match is None or match[1] == "unix" or int(match[2]) > 65535:
            raise ConfigError(
                f"'{address}' is not an NVMe/TCP address (expected HOST:PORT)",
                hint="give --listen 127.0.0.1:4420",
            )


def is_open_to_others(address: str) -> bool:
    """Return `True` if other machines can connect to a listening `HOST:PORT` or `unix:PATH`."""
    if address.startswith("unix:"):
        return False
    name = address.rpartition(":")[0].strip("[]").partition("%")[0]
    numbers = {str(entry[4][0]) for entry in socket.getaddrinfo(name, None)}
    return not all(_is_loopback(ip_address(number.partition("%")[0])) for number in numbers)


def _is_loopback(host: IPv4Address | IPv6Address) -> bool:
    mapped = host.ipv4_mapped if isinstance(host, IPv6Address) else None
    return (mapped or host).is_loopback
