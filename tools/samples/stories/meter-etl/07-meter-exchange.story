---
title: Consumption across a meter exchange
tool: claude-code
repository: meter-etl
prompts: v2
at: 2026-10-29 09:58:16
version: 2.1.236
---
==> user
settle.consumption is wrong when a meter is exchanged within the period: max minus min over two devices gives nonsense. it should sum per device
==> read meter_etl/settle.py
==> +read tests/test_settle.py
==> edit meter_etl/settle.py
-    by_point: dict[str, list[Reading]] = {}
+    by_device: dict[tuple[str, str], list[Decimal]] = {}
     for reading in readings:
-        by_point.setdefault(reading.meter_point, []).append(reading)
-    return {
-        point: max(r.register_kwh for r in rows) - min(r.register_kwh for r in rows)
-        for point, rows in by_point.items()
-    }
+        key = (reading.meter_point, reading.device)
+        by_device.setdefault(key, []).append(reading.register_kwh)
+    total: dict[str, Decimal] = {}
+    for (point, _), registers in by_device.items():
+        total[point] = total.get(point, Decimal(0)) + max(registers) - min(registers)
+    return total
==> edit tests/test_settle.py
     assert consumption(rows) == {"DE1": Decimal("2.5")}
+
+
+def test_an_exchanged_meter_counts_with_both_devices():
+    day = datetime(2026, 10, 1, tzinfo=timezone.utc)
+    rows = [
+        Reading("DE1", "M1", day.replace(hour=0), Decimal("9000.0"), "A"),
+        Reading("DE1", "M1", day.replace(hour=6), Decimal("9001.5"), "A"),
+        Reading("DE1", "M2", day.replace(hour=6), Decimal("0.0"), "A"),
+        Reading("DE1", "M2", day.replace(hour=12), Decimal("2.0"), "A"),
+    ]
+    assert consumption(rows) == {"DE1": Decimal("3.5")}
==> tests pytest -q
ok tests/test_gaps.py 6
ok tests/test_parse.py 5
ok tests/test_publish.py 1
ok tests/test_reclassify.py 16
ok tests/test_rejects.py 3
ok tests/test_settle.py 2
ok tests/test_window.py 7
==> say
Consumption is summed per device: 40 passed.
==> user
now roll-over: a register that goes from 99999.9 to 0.3. use 100000 as modulus
==> edit meter_etl/settle.py
-        by_device.setdefault(key, []).append(reading.register_kwh)
+        by_device.setdefault(key, []).append(reading)
     total: dict[str, Decimal] = {}
-    for (point, _), registers in by_device.items():
-        total[point] = total.get(point, Decimal(0)) + max(registers) - min(registers)
+    for (point, _), rows in by_device.items():
+        rows.sort(key=lambda reading: reading.read_at)
+        steps = zip(rows, rows[1:])
+        used = sum(((b.register_kwh - a.register_kwh) % MODULUS for a, b in steps), Decimal(0))
+        total[point] = total.get(point, Decimal(0)) + used
     return total
==> tests pytest -q
ok tests/test_gaps.py 6
ok tests/test_parse.py 5
ok tests/test_publish.py 1
ok tests/test_reclassify.py 16
ok tests/test_rejects.py 3
ok tests/test_settle.py 0
bad tests/test_settle.py::test_consumption_is_last_minus_first
>       used = sum(((b.register_kwh - a.register_kwh) % MODULUS for a, b in steps), Decimal(0))
E       NameError: name 'MODULUS' is not defined
bad tests/test_settle.py::test_an_exchanged_meter_counts_with_both_devices
>       used = sum(((b.register_kwh - a.register_kwh) % MODULUS for a, b in steps), Decimal(0))
E       NameError: name 'MODULUS' is not defined
ok tests/test_window.py 7
==> edit meter_etl/settle.py
 from meter_etl.model import Reading
+
+MODULUS = Decimal(100_000)
==> edit meter_etl/settle.py
-    by_device: dict[tuple[str, str], list[Decimal]] = {}
+    by_device: dict[tuple[str, str], list[Reading]] = {}
==> tests pytest -q
ok tests/test_gaps.py 6
ok tests/test_parse.py 5
ok tests/test_publish.py 1
ok tests/test_reclassify.py 16
ok tests/test_rejects.py 3
ok tests/test_settle.py 2
ok tests/test_window.py 7
==> say
Steps are taken modulo 100000 now. One thing to know: Decimal's `%` takes the sign of the left side, so a negative step stays negative. I have not handled that yet.
==> slash /compact
Compacted (ctrl+o to see full summary)
==> compact manual
This session is being continued from a previous conversation that ran out of context. The summary below covers the earlier portion of the conversation.

Summary:
1. Request: make `consumption` in meter_etl/settle.py right across a meter exchange (sum per device), then across a register roll-over (modulus 100000).
2. Done: grouping by (meter_point, device); steps between consecutive readings, taken `% MODULUS`; a test for the exchange in tests/test_settle.py. 40 tests pass.
3. Open: Decimal's `%` keeps the sign of the left operand, so a roll-over gives a negative step. There is no test for the roll-over yet.
==> user
then handle the sign, and test the roll-over
==> read meter_etl/settle.py
==> edit meter_etl/settle.py
-        used = sum(((b.register_kwh - a.register_kwh) % MODULUS for a, b in steps), Decimal(0))
+        used = sum((_step(a, b) for a, b in steps), Decimal(0))
         total[point] = total.get(point, Decimal(0)) + used
     return total
+
+
+def _step(a: Reading, b: Reading) -> Decimal:
+    """Return what was used between two readings, the register having rolled over at most once."""
+    step = b.register_kwh - a.register_kwh
+    return step if step >= 0 else step + MODULUS
==> edit tests/test_settle.py
+def test_a_register_that_rolls_over():
+    day = datetime(2026, 10, 1, tzinfo=timezone.utc)
+    rows = [
+        Reading("DE1", "M1", day.replace(hour=0), Decimal("99999.9"), "A"),
+        Reading("DE1", "M1", day.replace(hour=6), Decimal("0.3"), "A"),
+    ]
+    assert consumption(rows) == {"DE1": Decimal("0.4")}
+
+
 def test_an_exchanged_meter_counts_with_both_devices():
==> tests pytest -q
ok tests/test_gaps.py 6
ok tests/test_parse.py 5
ok tests/test_publish.py 1
ok tests/test_reclassify.py 16
ok tests/test_rejects.py 3
ok tests/test_settle.py 3
ok tests/test_window.py 7
==> say
A negative step has the modulus added. The roll-over has its test; 41 passed.
==> user
hm, and a correction downwards (E52) would now look like a roll-over of 99999 kWh
==> say
True: a small step down cannot be told from a roll-over by its sign. A bound would do it: only a drop of more than half the modulus is a roll-over, any other is an error that should go to the rejects as E52.
==> user
not today. write it into the plan as open and stop here
==> run exit=1 ls plan.md
ls: cannot access 'plan.md': No such file or directory
==> say
There is no plan.md in this worktree, so I have written nothing. The open point: drops of less than half the modulus must become E52.
==> user
ok I'll note it
==> say
Thanks.
