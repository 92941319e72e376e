"""Codex's token counts, which are cumulative, repeat, and count cached tokens twice."""

from __future__ import annotations

from typing import Any

from debrief.sessions.model import Usage

Counts = tuple[int, int, int]

_FIELDS = ("input_tokens", "cached_input_tokens", "output_tokens")


class TokenMeter:
    """Turns the stream of counts into what each API call cost.

    A count repeats whenever the limits are shown again; only a changed total is a new call. The
    total begins anew when a session is resumed by some versions.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._total: Counts | None = None

    def read(self, payload: dict[str, Any]) -> Usage | None:
        """Return the cost of the API call that ``payload`` counts; None when it is no new one."""
        info = payload.get("info")
        if info is None and "input_tokens" in payload:
            info = {"total_token_usage": payload}
        if not isinstance(info, dict):
            return None
        total = _numbers(info.get("total_token_usage"))
        last = _numbers(info.get("last_token_usage"))
        before, self._total = self._total, total or self._total
        if total is not None:
            if total == before:
                return None
            if last is None:
                last = _difference(before, total)
        if last is None or not any(last):
            return None
        self.calls += 1
        fresh, cached, output = last
        return Usage(max(0, fresh - cached), output, 0, cached)


def _numbers(usage: Any) -> Counts | None:
    if not isinstance(usage, dict):
        return None
    values = [usage.get(field) for field in _FIELDS]
    numbers = [value if isinstance(value, int) and value > 0 else 0 for value in values]
    return numbers[0], numbers[1], numbers[2]


def _difference(before: Counts | None, total: tuple[int, int, int]) -> tuple[int, int, int]:
    if before is None or any(now < then for now, then in zip(total, before, strict=True)):
        return total
    return total[0] - before[0], total[1] - before[1], total[2] - before[2]
