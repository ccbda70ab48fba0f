"""Which address an effect's request goes to: public ones; this machine and private ones only when the plan says so."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from perdure.effects.http_call import LOOK_LIMIT, Http, NotSent, place_of
from perdure.errors import EffectNotBegun, ToolFault, ToolUnavailable
from perdure.tools.addresses import Resolve, choose_address, resolve


def choose_for(url: str, *, private: bool, ask: Resolve = resolve) -> str:
    """Return the address to connect to for ``url``; the name is resolved here and never again.

    An address that stands in the URL itself, and ``localhost``, are what the reviewer has read. A name must lead to
    public addresses, unless the step says ``private: true``.

    Raises:
        EffectNotBegun: the name leads to an address that is not public.
        NotSent: the name is not known now.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if _is_address(host):
        return host
    try:
        if not (private or host == "localhost"):
            return choose_address(host, port, ask)
        return ask(host, port)[0]
    except (ToolUnavailable, OSError, IndexError) as error:
        raise NotSent(f"{host} could not be resolved ({error}).") from None
    except ToolFault as fault:
        raise EffectNotBegun(f"{fault.message} Write `private: true` in the step if that is meant.") from None


def open_page(url: str, *, private: bool = False) -> Http:
    """Return what looks at one URL, without a secret; its address is chosen by :func:`choose_for`."""
    return Http([place_of(url)], LOOK_LIMIT, headers={}, choose=lambda place: choose_for(place, private=private))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
