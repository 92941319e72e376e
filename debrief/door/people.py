"""Who sends a request and what they may do: from a login proxy's header, or this machine's user."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import Literal, get_args

from msgspec import Struct
from starlette.datastructures import Headers

from debrief.door.peers import Endpoint, is_own_account
from debrief.door.refusal import Refusal
from debrief.errors import CONTROLS
from debrief.settings import Settings, variable_of

Role = Literal["read", "label", "run"]
"""Each may do what those before it may: read pages; label, note and name prompts; use Dagster's UI
and release what is held back."""
ROLES: tuple[Role, ...] = get_args(Role)
_LONGEST_NAME = 200
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""What proxies add: such a request comes from elsewhere, whatever address it arrives from."""
_HOW = "docs/operations.md says how a login proxy is put in front"
_OTHER_ACCOUNT = (
    "These pages belong to {}; another account of this machine asks for them. A login proxy that "
    f"{variable_of('identity_header')} names can give it a role: docs/operations.md."
)


class Person(Struct, frozen=True):
    """Whoever sent a request."""

    name: str
    """As the login proxy or the machine knows them; empty for nobody known."""
    role: Role

    def may(self, role: Role) -> bool:
        """Return whether this person may do what a role stands for."""
        return ROLES.index(self.role) >= ROLES.index(role)


def person_of(
    headers: Headers, client: Endpoint | None, server: Endpoint | None, settings: Settings
) -> Person | Refusal:
    """Return who sends a request, or why it is refused.

    With ``DEBRIEF_IDENTITY_HEADER`` the login proxy says who it is, and nobody else may. Without
    it, a request from this machine comes from the account that runs the pages, or is refused;
    people on other machines may read.

    Args:
        headers: Headers of the request.
        client: Where the request comes from; None for a Unix socket.
        server: The address that it reached.
        settings: Name the header, the proxies and the roles.
    """
    header = settings.identity_header
    peer = client[0] if client else None
    if not header:
        if client and server and ip_address(client[0]).is_loopback:
            if not is_own_account(client, server):
                return Refusal(403, _OTHER_ACCOUNT.format(_user(settings)))
        elif client:
            return Person("", "read")
        if any(name in headers for name in _FORWARDED):
            return Person("", "read")
        return Person(_user(settings), "run")
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
