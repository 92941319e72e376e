---
title: Settlement window from configuration
tool: claude-code
repository: meter-etl
prompts: v1
model: claude-opus-4-5-20251101
at: 2026-10-07 08:15:27
version: 2.1.226
---
==> user
meter_etl/window.py has WINDOW = 3 days hard coded. From November on the regulator allows 10 days for quality "S" (substituted) readings, everything else stays at 3.

Please:
1. in_window takes a `Windows` (frozen dataclass: default: timedelta, by_quality: dict[str, timedelta])
2. `Windows.parse("3d,S=10d")` for the command line; bad text → ValueError that quotes the part it didn't understand
3. cli.py gets --windows with the default "3d,S=10d"

Existing tests in tests/test_window.py must stay green without edits to their assertions. New tests: S at 9 days kept, A at 4 days rejected, three bad strings. Run pytest.
==> read meter_etl/window.py
==> +read meter_etl/cli.py
==> +read tests/test_window.py
==> think
Existing tests call in_window(readings, NOW) with two arguments, so windows needs a default value. 
==> say
The present tests call `in_window(readings, now)`, so `windows` gets a default that is what holds today.
==> write meter_etl/window.py
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from meter_etl.model import Reading, Reject

_PART = re.compile(r"(?:(?P<quality>[A-Z])=)?(?P<days>\d+)d\Z")


@dataclass(frozen=True)
class Windows:
    """How long after its instant a reading can still be settled."""

    default: timedelta = timedelta(days=3)
    by_quality: dict[str, timedelta] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "Windows":
        """Parse ``3d,S=10d``; raise ValueError with the part that is not understood."""
        default = None
        by_quality: dict[str, timedelta] = {}
        for part in text.split(","):
            found = _PART.match(part.strip())
            if not found:
                raise ValueError(f"not a window: {part!r}")
            days = timedelta(days=int(found["days"]))
            if found["quality"]:
                by_quality[found["quality"]] = days
            elif default is None:
                default = days
            else:
                raise ValueError(f"a second default: {part!r}")
        if default is None:
            raise ValueError(f"no default in {text!r}")
        return cls(default, by_quality)

    def of(self, reading: Reading) -> timedelta:
        return self.by_quality.get(reading.quality, self.default)


def in_window(
    readings: list[Reading], now: datetime, windows: Windows = Windows()
) -> tuple[list[Reading], list[Reject]]:
    """Keep the readings that can still be settled."""
    kept: list[Reading] = []
    rejects: list[Reject] = []
    for number, reading in enumerate(readings, 1):
        if now - reading.read_at > windows.of(reading):
            rejects.append(Reject(number, "E23", "reading older than the settlement window"))
        else:
            kept.append(reading)
    return kept, rejects
==> edit tests/test_window.py
-from meter_etl.model import Reading
-from meter_etl.window import in_window
+import pytest
+
+from meter_etl.model import Reading
+from meter_etl.window import Windows, in_window
==> edit tests/test_window.py
-def reading(age: timedelta) -> Reading:
-    return Reading("DE1", "M1", NOW - age, Decimal("10"), "A")
+def reading(age: timedelta, quality: str = "A") -> Reading:
+    return Reading("DE1", "M1", NOW - age, Decimal("10"), quality)
==> edit tests/test_window.py
     assert not kept and rejects[0].code == "E23"
+
+
+def test_substituted_readings_have_ten_days():
+    windows = Windows.parse("3d,S=10d")
+    kept, rejects = in_window([reading(timedelta(days=9), "S")], NOW, windows)
+    assert len(kept) == 1 and not rejects
+
+
+def test_others_keep_three_days():
+    windows = Windows.parse("3d,S=10d")
+    kept, rejects = in_window([reading(timedelta(days=4), "A")], NOW, windows)
+    assert not kept and len(rejects) == 1
+
+
+@pytest.mark.parametrize(("text", "part"), [("3", "3"), ("3d,S", "S"), ("3d,4d", "4d")])
+def test_bad_windows_are_quoted(text, part):
+    with pytest.raises(ValueError, match=f"'{part}'"):
+        Windows.parse(text)
==> edit meter_etl/cli.py
 @click.argument("target", type=click.File("w"))
-def main(source: Path, target) -> None:
+@click.option("--windows", default="3d,S=10d", show_default=True)
+def main(source: Path, target, windows: str) -> None:
     readings, rejects = parse_file(source)
-    kept, late = in_window(dedupe(readings), datetime.now(timezone.utc))
+    kept, late = in_window(dedupe(readings), datetime.now(timezone.utc), Windows.parse(windows))
==> edit meter_etl/cli.py
-from meter_etl.window import in_window
+from meter_etl.window import Windows, in_window
==> tests pytest
ok tests/test_settle.py 1
ok tests/test_window.py 7
==> say
1. `Windows` in meter_etl/window.py, with today's 3 days as the default.
2. `Windows.parse`: quotes the part it does not understand.
3. `--windows`, default "3d,S=10d".

The two existing assertions are untouched; pytest: 8 passed.
==> user
good. tiny thing: a mutable dict in a frozen dataclass as a default argument, is Windows() in the signature safe?
==> say
It is as long as nobody writes to `by_quality`: the one instance is shared by all calls, but nothing in the module changes it. If you want a guarantee, `MappingProxyType` would give it.
==> user
ok leave it
==> say
Thanks.
