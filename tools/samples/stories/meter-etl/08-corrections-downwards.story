---
title: Corrections downwards are rejects
tool: droid
repository: meter-etl
prompts: v3
at: 2026-11-01 23:41:08
---
==> user
Follow-up to settle.py: a drop of the register can be a roll-over or a correction downwards.

In meter_etl/settle.py: `consumption` returns (dict, list[Reject]).
- drop of more than MODULUS / 2 → roll-over, as today
- any smaller drop → the later reading becomes Reject(row, "E52", "consumption negative after correction"), row = its place in the input from 1, and it is left out of the sum
- cli.py must count these rejects too

Acceptance: tests/test_settle.py has a test for a drop of 3 kWh, one for exactly MODULUS / 2 (is a correction), and the roll-over stays. Run `pytest -q`, all green.
==> say
Done means: `consumption` hands back rejects, exactly half the modulus counts as a correction, the CLI's count includes them, and the suite is green.
==> read meter_etl/settle.py
==> +read tests/test_settle.py
==> +read meter_etl/cli.py
==> run python -m pytest -q
...........................................                              [100%]
43 passed in 0.33s
==> write meter_etl/settle.py
from decimal import Decimal

from meter_etl.model import Reading, Reject

MODULUS = Decimal(100_000)


def consumption(readings: list[Reading]) -> tuple[dict[str, Decimal], list[Reject]]:
    """Return kWh by meter point, summed over its devices, and the readings left out.

    A drop of more than half the modulus is a register that rolled over; a smaller one is a
    correction downwards, which nobody can settle.
    """
    by_device: dict[tuple[str, str], list[tuple[int, Reading]]] = {}
    for row, reading in enumerate(readings, 1):
        by_device.setdefault((reading.meter_point, reading.device), []).append((row, reading))
    total: dict[str, Decimal] = {}
    rejects: list[Reject] = []
    for (point, _), rows in by_device.items():
        rows.sort(key=lambda item: item[1].read_at)
        used = Decimal(0)
        last = rows[0][1].register_kwh
        for row, reading in rows[1:]:
            step = reading.register_kwh - last
            if step < -MODULUS / 2:
                step += MODULUS
            if step < 0:
                rejects.append(Reject(row, "E52", "consumption negative after correction"))
                continue
            used += step
            last = reading.register_kwh
        total[point] = total.get(point, Decimal(0)) + used
    return total, rejects
==> edit tests/test_settle.py
 def test_a_register_that_rolls_over():
     day = datetime(2026, 10, 1, tzinfo=timezone.utc)
     rows = [
         Reading("DE1", "M1", day.replace(hour=0), Decimal("99999.9"), "A"),
         Reading("DE1", "M1", day.replace(hour=6), Decimal("0.3"), "A"),
     ]
-    assert consumption(rows) == {"DE1": Decimal("0.4")}
+    assert consumption(rows) == ({"DE1": Decimal("0.4")}, [])
+
+
+@pytest.mark.parametrize("drop", [Decimal("3"), MODULUS / 2])
+def test_a_correction_downwards_is_left_out(drop):
+    day = datetime(2026, 10, 1, tzinfo=timezone.utc)
+    high = Decimal("70000")
+    rows = [
+        Reading("DE1", "M1", day.replace(hour=0), high, "A"),
+        Reading("DE1", "M1", day.replace(hour=6), high - drop, "A"),
+        Reading("DE1", "M1", day.replace(hour=12), high + 1, "A"),
+    ]
+    used, rejects = consumption(rows)
+    assert used == {"DE1": Decimal("1")}
+    assert [(reject.row, reject.code) for reject in rejects] == [(2, "E52")]
==> edit tests/test_settle.py
-    assert consumption(rows) == {"DE1": Decimal("2.5")}
+    assert consumption(rows) == ({"DE1": Decimal("2.5")}, [])
==> edit tests/test_settle.py
-    assert consumption(rows) == {"DE1": Decimal("3.5")}
+    assert consumption(rows) == ({"DE1": Decimal("3.5")}, [])
==> edit tests/test_settle.py
-from meter_etl.model import Reading
-from meter_etl.settle import consumption
+import pytest
+
+from meter_etl.model import Reading
+from meter_etl.settle import MODULUS, consumption
==> edit meter_etl/cli.py
-    count = publish(consumption(kept), target)
-    click.echo(f"{count} settled, {len(rejects) + len(late)} rejected")
+    used, corrected = consumption(kept)
+    count = publish(used, target)
+    click.echo(f"{count} settled, {len(rejects) + len(late) + len(corrected)} rejected")
==> tests python -m pytest -q
ok tests/test_gaps.py 6
ok tests/test_parse.py 5
ok tests/test_publish.py 1
ok tests/test_reclassify.py 16
ok tests/test_rejects.py 3
ok tests/test_settle.py 5
ok tests/test_window.py 9
==> say
- Roll-over above half the modulus, as before: `test_a_register_that_rolls_over`.
- Smaller drops become E52 and are left out: `test_a_correction_downwards_is_left_out`, for 3 kWh and for exactly half.
- The CLI counts them.

`python -m pytest -q`: "45 passed".
==> user
exactly. good night
==> say
Thanks.
