"""Material that stories name rather than spell out: planted secrets, and bulk.

The secrets were never issued by anybody. They are put together here from pieces, and written to
the transcripts in JSON's ``\\u`` form, so that a scanner of source code finds neither these lines
nor the transcripts, while whoever decodes the transcripts meets the whole secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from debrief.errors import InputError
from tools.samples import chance

SECRETS: dict[str, str] = {
    "aws-key-id": "AKIA" + "Q3ZT7RBX" + "5LMW2KVD",
    "aws-secret": "h7Lq0Zt4" + "Wc9Xv2Nb" + "8Rj5Ty1P" + "s6Kd3Fm0" + "Ga4Ue7Hq",
    "github-token": "ghp" + "_" + "4mTqZ8vRk2Lx" + "9WsYc6Hn1Bd5" + "Jf3Pg7Qa0UeK",
    "database-password": "vT7q" + "Zx2W" + "m9Kd" + "4Rb",
}
"""By the name that a story uses for them."""

_NAMED = re.compile(r"\{\{(secret|bulk):([^{}]+)\}\}")
_REASONS = (
    ("E17", "register rolled over without a meter exchange record"),
    ("E23", "reading older than the settlement window"),
    ("E31", "meter point unknown to the register of connections"),
    ("E40", "two readings for one instant with different values"),
    ("E44", "quality flag missing"),
    ("E52", "consumption negative after correction"),
)
_QUALITY = ("A", "A", "A", "E", "S")


def fill(text: str) -> str:
    """Return ``text`` with every ``{{secret:NAME}}`` and ``{{bulk:KIND ARGUMENTS}}`` filled in."""
    return _NAMED.sub(_filled, text)


def _filled(found: re.Match[str]) -> str:
    sort, name = found.groups()
    if sort == "secret":
        if name not in SECRETS:
            raise InputError(name, "no such planted secret")
        return SECRETS[name]
    kind, *arguments = name.split()
    makers: dict[str, Callable[..., str]] = {"rejects": _rejects, "log": _log, "count": _count}
    if kind not in makers:
        raise InputError(name, "no such bulk material")
    return makers[kind](*arguments)


def _rejects(day: str, region: str, rows: str) -> str:
    """Return a reject report as the meter job writes it, CSV with a header."""
    lines = ["row;meter_point;device;read_at;register_kwh;quality;code;reason"]
    for row in range(1, int(rows) + 1):
        key = (day, region, row)
        code, reason = _REASONS[chance.number(0, len(_REASONS) - 1, *key, "reason")]
        lines.append(
            f"{row};{_meter_point(region, key)};{_device(key)};"
            f"{day}T{_clock(key)}Z;{_register(key)};{_quality(key)};{code};{reason}"
        )
    return "\n".join(lines)


def _count(day: str, region: str, rows: str, code: str) -> str:
    """Return how many rows of a reject report have a code, for a story to tell truly."""
    return str(_rejects(day, region, rows).count(f";{code};"))


def _log(day: str, region: str, rows: str) -> str:
    """Return the job's log of one night."""
    stages = ("fetch", "parse", "dedupe", "window", "settle", "publish")
    lines = []
    for row in range(int(rows)):
        key = (day, region, row, "log")
        stage = stages[row * len(stages) // int(rows)]
        seconds = 7200 + row * 3 + chance.number(0, 2, *key)
        stamp = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        level = "WARNING" if chance.fraction(*key, "level") < 0.15 else "INFO"
        lines.append(
            f"{day} {stamp},{chance.number(0, 999, *key, 'ms'):03d} {level} meter_etl.{stage} "
            f"batch={region}-{chance.hexadecimal(6, *key, 'batch')} "
            f"point={_meter_point(region, key)} rows={chance.number(40, 2400, *key, 'rows')} "
            f"took={chance.number(3, 900, *key, 'took')}ms"
        )
    return "\n".join(lines)


def _meter_point(region: str, key: tuple[object, ...]) -> str:
    return f"{region}{chance.number(10**9, 10**10 - 1, *key, 'point')}"


def _device(key: tuple[object, ...]) -> str:
    return f"M{chance.number(100000, 999999, *key, 'device')}"


def _register(key: tuple[object, ...]) -> str:
    return f"{chance.number(120000, 98999999, *key, 'register') / 1000:.3f}"


def _quality(key: tuple[object, ...]) -> str:
    return _QUALITY[chance.number(0, len(_QUALITY) - 1, *key, "quality")]


def _clock(key: tuple[object, ...]) -> str:
    quarter = chance.number(0, 95, *key, "clock")
    return f"{quarter // 4:02d}:{quarter % 4 * 15:02d}:00"
