"""The names by which clients may call the server.

A page of any site can let its own name resolve to this machine, and then read the server's answers through the browser
of someone who reaches the server (DNS rebinding). The browser still sends the name of that site as Host.
"""

import ipaddress
from collections.abc import Sequence

LOCAL = "localhost"


def accepted_hosts(names: Sequence[str], address: str, *, keys: bool) -> Sequence[str] | None:
    """Return the names that are accepted besides addresses and localhost; None is any.

    Without names, only a server for this machine that asks for no keys refuses names: others may be called by any.
    """
    if "*" in names or (not names and (keys or not _is_loopback(address))):
        return None
    return [name.lower() for name in names]


def is_accepted(header: bytes | None, names: Sequence[str] | None) -> bool:
    """Return whether a request may name this host; old clients, which are no browsers, name none."""
    if names is None or header is None:
        return True
    host = _without_port(header.decode("latin-1").strip().lower())
    return host == LOCAL or host in names or _is_address(host)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(address: str) -> bool:
    return address == LOCAL or (_is_address(address) and ipaddress.ip_address(address).is_loopback)
