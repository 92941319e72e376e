---
title: Readings whose time has no zone
tool: claude-code
repository: meter-etl
prompts: v2
at: 2026-10-20 13:44:09
version: 2.1.230
---
==> user
prod died tonight:

```
  File "meter_etl/window.py", line 53, in in_window
    if now - reading.read_at > windows.of(reading):
TypeError: can't subtract offset-naive and offset-aware datetimes
```

operator TEMP sends 2026-10-19T00:15:00 without an offset
==> read meter_etl/parse.py
==> +read meter_etl/window.py
==> +grep fromisoformat :: meter_etl/
==> say
`parse_file` takes whatever `fromisoformat` gives, so a time without an offset stays naive until `in_window` subtracts it. I'll settle it where the row is read: a naive time is taken as UTC.
==> edit meter_etl/parse.py
-                        datetime.fromisoformat(row["read_at"]),
+                        _instant(row["read_at"]),
==> edit meter_etl/parse.py
-from datetime import datetime
+from datetime import datetime, timezone
==> edit meter_etl/parse.py
 def parse_file(path: Path) -> tuple[list[Reading], list[Reject]]:
+    """Read a delivery; a row that cannot be understood becomes a reject."""
     readings: list[Reading] = []
==> edit meter_etl/parse.py
     return readings, rejects
+
+
+def _instant(text: str) -> datetime:
+    found = datetime.fromisoformat(text)
+    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
==> tests pytest -q
ok tests/test_parse.py 1
ok tests/test_publish.py 1
ok tests/test_reclassify.py 16
ok tests/test_rejects.py 3
ok tests/test_settle.py 1
ok tests/test_window.py 7
==> say
Times without an offset are UTC now; "29 passed".
==> user
not UTC. the format spec says local time of the grid area, that's Europe/Berlin for all of ours
==> edit meter_etl/parse.py
 def _instant(text: str) -> datetime:
+    """Return a time with its zone; without one it is the grid area's local time, by the spec."""
     found = datetime.fromisoformat(text)
-    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
+    return found if found.tzinfo else found.replace(tzinfo=GRID_AREA)
==> edit meter_etl/parse.py
-from datetime import datetime, timezone
+from datetime import datetime
==> edit meter_etl/parse.py
 from pathlib import Path
+from zoneinfo import ZoneInfo
==> edit meter_etl/parse.py
+GRID_AREA = ZoneInfo("Europe/Berlin")
 COLUMNS = {
==> edit tests/test_parse.py
-from meter_etl.parse import parse_file
+from datetime import datetime, timezone
+
+import pytest
+
+from meter_etl.parse import parse_file
==> edit tests/test_parse.py
     assert not rejects
     assert readings[0].meter_point == "DE1"
+
+
+@pytest.mark.parametrize(
+    ("text", "hour"),
+    [("2026-10-19T00:15:00", 22), ("2026-12-19T00:15:00", 23), ("2026-10-19T00:15:00+00:00", 0)],
+    ids=["summer", "winter", "with an offset"],
+)
+def test_a_time_without_a_zone_is_the_grid_areas(tmp_path, text, hour):
+    path = tmp_path / "temp.csv"
+    path.write_text(
+        f"meter_point,device,read_at,register_kwh,quality\nDE1,M1,{text},8123.400,A\n"
+    )
+    readings, _ = parse_file(path)
+    assert readings[0].read_at.astimezone(timezone.utc).hour == hour
==> tests pytest -q
ok tests/test_parse.py 4
ok tests/test_publish.py 1
ok tests/test_reclassify.py 16
ok tests/test_rejects.py 3
ok tests/test_settle.py 1
ok tests/test_window.py 7
==> say
A time without an offset is Europe/Berlin's now, tested in summer and in winter; one with an offset stays what it is. `pytest -q`: "32 passed".

One thing that a zone cannot settle: 02:00 to 02:59 on 25 October happens twice. Python takes the first of the two.
==> user
I know, they send offsets on that day. thanks
==> say
You are welcome.
