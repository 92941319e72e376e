"""Who sends a request and what they may do: from a login proxy's header, or this machine's user."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import Literal, get_args

from msgspec import Struct
from starlette.datastructures import Headers

from debrief.door.refusal import Refusal
from debrief.errors import CONTROLS
from debrief.settings import Settings, variable_of

Role = Literal["read", "label", "run"]
"""Each may do what those before it may: read pages; label, note and name; use Dagster's UI."""
ROLES: tuple[Role, ...] = get_args(Role)
_LONGEST_NAME = 200
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""What proxies add: such a request comes from elsewhere, whatever address it arrives from."""
_HOW = "docs/operations.md says how a login proxy is put in front"


class Person(Struct, frozen=True):
    """Whoever sent a request."""

    name: str
    """As the login proxy or the machine knows them; empty for nobody known."""
    role: Role

    def may(self, role: Role) -> bool:
        """Return whether this person may do what a role stands for."""
        return ROLES.index(self.role) >= ROLES.index(role)


def person_of(headers: Headers, peer: str | None, settings: Settings) -> Person | Refusal:
    """Return who sends a request, or why it is refused.

    With ``DEBRIEF_IDENTITY_HEADER`` the login proxy says who it is, and nobody else may. Without
    it, whoever is on this machine is its user, and others may read.

    Args:
        headers: of the request.
        peer: the address that it arrives from; None for a Unix socket.
        settings: name the header, the proxies and the roles.
    """
    header = settings.identity_header
    if not header:
        is_local = peer is None or ip_address(peer).is_loopback
        if is_local and not any(name in headers for name in _FORWARDED):
            return Person(_user(settings), "run")
        return Person("", "read")
    if not _is_trusted(peer, settings):
        name = variable_of("trusted_proxies")
        return Refusal(403, f"{peer} is not a login proxy that {name} names; {_HOW}.")
    said = [" ".join(CONTROLS.sub(" ", value).split()) for value in headers.getlist(header)]
    if len(said) != 1 or not said[0] or len(said[0]) > _LONGEST_NAME:
        name = variable_of("identity_header")
        return Refusal(401, f"The login proxy names nobody in {header} ({name}); {_HOW}.")
    role = role_of(said[0], settings.roles)
    if role is None:
        return Refusal(403, f"{said[0]} has no role: {variable_of('roles')} can give one.")
    return Person(said[0], role)


def role_of(name: str, roles: Mapping[str, Role]) -> Role | None:
    """Return the role of the first pattern that a name fits; all may everything without a table.

    >>> role_of("ada@example.org", {"ada@*": "run", "*@example.org": "label"})
    'run'
    """
    if not roles:
        return "run"
    return next((role for pattern, role in roles.items() if fnmatchcase(name, pattern)), None)


def _is_trusted(peer: str | None, settings: Settings) -> bool:
    if peer is None:
        return False
    address = ip_address(peer)
    mapped = getattr(address, "ipv4_mapped", None) or address
    return any(mapped in network for network in settings.trusted_proxies)


def _user(settings: Settings) -> str:
    try:
        return settings.rater.strip() or getpass.getuser()
    except (KeyError, OSError):  # a container's user that has no name
        return "somebody"
