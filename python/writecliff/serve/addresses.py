"""Addresses at which a drive is served: which are NVMe/TCP's, and who can reach them."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from writecliff.errors import ConfigError

_HOST_AND_PORT = re.compile(r"(\[[^\[\]]+\]|[^:\[\]]+):(\d{1,5})")


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
