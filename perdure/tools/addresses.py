"""Which addresses an agent's requests may reach: public ones, however they are written."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable

from perdure.errors import ToolFault, ToolUnavailable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

Resolve = Callable[[str, int], list[str]]
"""Host and port to addresses as text; raises ``OSError``."""

_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.ip_network("::/96")


def resolve(host: str, port: int) -> list[str]:
    """Ask the system's resolver; every address once, in its order."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_public(address: Address) -> bool:
    """Whether an address is somebody's on the Internet: no loopback, link, private, shared, multicast or test address.

    An IPv6 address that carries an IPv4 one (mapped, compatible, 6to4, Teredo, NAT64) counts as both.
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        if any(not is_public(inner) for inner in _carried(address)):
            return False
        if address.ipv4_mapped is not None or address in _NAT64[0]:
            return True  # judged by the IPv4 address just now
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _carried(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    found = [address.ipv4_mapped, address.sixtofour]
    if address.teredo is not None:
        found += address.teredo
    if any(address in network for network in (*_NAT64, _COMPATIBLE)):
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [inner for inner in found if inner is not None]


def choose_address(host: str, port: int, ask: Resolve) -> str:
    """Resolve once and return an address to connect to; nothing resolves the name again after this check.

    Raises:
        ToolFault: one of the addresses is not public: a name that answers with both is trusted in neither.
        ToolUnavailable: the name is not known now.
    """
    try:
        texts = ask(host, port)
        addresses = [ipaddress.ip_address(text) for text in texts]
    except (OSError, ValueError) as error:
        raise ToolUnavailable(f"{host} could not be resolved ({error}). Is the name right?") from None
    inner = [str(address) for address in addresses if not is_public(address)]
    if inner:
        raise ToolFault(f"{host} is {inner[0]}, which is no public address. Only public addresses are asked.")
    if not addresses:
        raise ToolUnavailable(f"{host} has no address. Is the name right?")
    return str(addresses[0])
