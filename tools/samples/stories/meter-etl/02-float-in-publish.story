---
title: Publish exact numbers
tool: droid
repository: meter-etl
prompts: v1
at: 2026-10-08 11:40:58
---
==> user
publish.py writes floats, 0.1+0.2 style. the settlement people complain about 1234.5600000000001
==> read meter_etl/publish.py
==> edit meter_etl/publish.py
-        target.write(json.dumps({"meter_point": point, "kwh": float(kwh)}) + "\n")
+        target.write(json.dumps({"meter_point": point, "kwh": str(kwh)}) + "\n")
==> run python -m pytest -q
........                                                                 [100%]
8 passed in 0.21s
==> say
kWh are written as strings now, digit for digit.
==> user
no, it must stay a JSON number, their loader is strict
==> say
Then the number has to be written without going through a float.
==> edit meter_etl/publish.py
-        target.write(json.dumps({"meter_point": point, "kwh": str(kwh)}) + "\n")
+        target.write(f'{{"meter_point": {json.dumps(point)}, "kwh": {kwh:f}}}\n')
==> run python -m pytest -q
........                                                                 [100%]
8 passed in 0.20s
==> say
`kwh` is a JSON number with exactly the digits of the Decimal; `:f` keeps the exponent form away.
==> user
is there a test?
==> write tests/test_publish.py
import io
import json
from decimal import Decimal

from meter_etl.publish import publish


def test_numbers_keep_their_digits():
    target = io.StringIO()
    publish({"DE1": Decimal("1234.560"), "DE2": Decimal("1E+3")}, target)
    first, second = target.getvalue().splitlines()
    assert first == '{"meter_point": "DE1", "kwh": 1234.560}'
    assert json.loads(second) == {"meter_point": "DE2", "kwh": 1000}
==> tests python -m pytest -q
ok tests/test_publish.py 1
ok tests/test_settle.py 1
ok tests/test_window.py 7
==> say
There is now: tests/test_publish.py checks the digits and the exponent form. 9 passed.
==> user
ok
==> say
Thanks.
