---
title: Reject readings that are still to come
tool: claude-code
repository: meter-etl
prompts: v2
at: 2026-10-30 14:06:27
version: 2.1.236
---
==> user
Some devices have a wrong clock and deliver readings of next year. in_window (meter_etl/window.py) should reject a reading more than 15 minutes ahead of `now` with E31, "reading lies in the future". The 15 minutes are a constant. Late readings stay E23.

Tests: 14 minutes ahead is kept, 16 rejected with E31. Run tests/test_window.py
==> read meter_etl/window.py
==> +read tests/test_window.py
==> edit meter_etl/window.py
-        if now - reading.read_at > windows.of(reading):
+        if reading.read_at - now > AHEAD:
+            rejects.append(Reject(number, "E31", "reading lies in the future"))
+        elif now - reading.read_at > windows.of(reading):
             rejects.append(Reject(number, "E23", "reading older than the settlement window"))
==> edit tests/test_window.py
+def test_a_clock_may_be_a_quarter_of_an_hour_ahead():
+    kept, rejects = in_window([reading(timedelta(minutes=-14))], NOW)
+    assert len(kept) == 1 and not rejects
+
+
+def test_readings_of_the_future_are_rejected():
+    kept, rejects = in_window([reading(timedelta(minutes=-16))], NOW)
+    assert not kept and rejects[0].code == "E31"
+
+
 def test_substituted_readings_have_ten_days():
==> tests pytest tests/test_window.py -q
ok tests/test_window.py 0
bad tests/test_window.py::test_fresh_readings_are_kept
>       if reading.read_at - now > AHEAD:
E       NameError: name 'AHEAD' is not defined
bad tests/test_window.py::test_a_clock_may_be_a_quarter_of_an_hour_ahead
>       if reading.read_at - now > AHEAD:
E       NameError: name 'AHEAD' is not defined
==> say
I used the constant and did not define it.
==> edit meter_etl/window.py
 _PART = re.compile(r"(?:(?P<quality>[A-Z])=)?(?P<days>\d+)d\Z")
+AHEAD = timedelta(minutes=15)
+"""How far a device's clock may be ahead."""
==> tests pytest tests/test_window.py -q
ok tests/test_window.py 9
==> say
Readings more than 15 minutes ahead are rejected with E31, late ones with E23 as before. `pytest tests/test_window.py -q`: "9 passed".
==> user
ok
==> say
Thanks.
