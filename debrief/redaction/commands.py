"""Secrets on command lines: ``mysql -p…``, ``curl -u user:…``, ``… | sudo -S``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from debrief.redaction.plausibility import is_password, is_random
from debrief.redaction.spans import Span

_MINUS_P = re.compile(r"\s-p[ =]?(?P<q>\\*[\"']?)(?P<v>[^\s\"'\\]{4,128})")
_TAKES_P = re.compile(
    r"(?:mysql\w*|mariadb[\w-]*|mongo\w*|sshpass|docker login|podman login|7z\w?|zip|pscp|plink"
    r"|psexec\w*|oc login|az login)\b"
)
_USER = re.compile(
    r"\s(?:-u|--user|-a|--auth|-U|--proxy-user)[ =]?\\*[\"']?"
    r"(?P<user>[^\s:\"'\\/]{1,64}):(?P<v>[^\s\"'\\]{4,256})"
)
_TAKES_USER = re.compile(
    r"(?:curl|http|https|wget|xh|smbclient|nmap|hey|ab|wrk|crackmapexec|rclone|lftp)\b"
)
_OTHER = re.compile(r"\s-(?:a|P|w|W|bp?)[ =]?\\*[\"']?(?:\S+[ ]\S+[ ])?(?P<v>[^\s\"'\\]{6,128})")
_SUDO = re.compile(
    r"(?:echo|printf|<<<)\s{1,3}\\*[\"']?(?P<v>[^\s\"'\\]{4,128})\\*[\"']?\s{0,3}\|\s{0,3}sudo\s{1,3}-\w*S"
)


def _line_before(text: str, at: int) -> str:
    low = max(0, at - 300)
    return text[max(low, text.rfind("\n", low, at) + 1) : at]


def minus_p(text: str, at: int, since: int) -> Iterator[Span]:
    """Read the password of ``mysql -p…``, ``sshpass -p …`` and their like."""
    found = _MINUS_P.match(text, at)
    if found and _TAKES_P.search(_line_before(text, at)) and is_password(found["v"], 6):
        yield Span(found.start("v"), found.end("v"), "password")


def user_option(text: str, at: int, since: int) -> Iterator[Span]:
    """Read the password of ``curl -u user:…`` and its like."""
    found = _USER.match(text, at)
    if found is None or not _TAKES_USER.search(_line_before(text, at)):
        return
    value = found["v"]
    if value != found["user"] and (is_password(value, 6) or is_random(value)):
        yield Span(found.start("v"), found.end("v"), "password")


def other_options(text: str, at: int, since: int) -> Iterator[Span]:
    """Read the password of tools with options of their own, such as ``redis-cli -a …``."""
    end = text.find("\n", at, at + 300)
    for found in _OTHER.finditer(text, at, end if end >= 0 else min(len(text), at + 300)):
        if is_password(found["v"], 8):
            yield Span(found.start("v"), found.end("v"), "password")


def sudo(text: str, at: int, since: int) -> Iterator[Span]:
    """Read the password that a command line pipes into ``sudo -S``."""
    found = _SUDO.search(text, max(0, at - 160), at + 24)
    if found and is_password(found["v"], 6):
        yield Span(found.start("v"), found.end("v"), "password")


_ADD_USER = re.compile(
    r"(?:add_user|change_password|authenticate_user)\s+\S{1,64}\s+\\*[\"']?(?P<v>[^\s\"'\\]{6,128})"
)


def add_user(text: str, at: int, since: int) -> Iterator[Span]:
    """Read the password of ``rabbitmqctl add_user name …``."""
    found = _ADD_USER.match(text, at)
    if found and is_password(found["v"], strict=True):
        yield Span(found.start("v"), found.end("v"), "password")
