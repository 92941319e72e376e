---
title: Header variants of the grid operators
tool: claude-code
repository: meter-etl
prompts: v1
at: 2026-10-15 19:22:45
version: 2.1.227
damage: [doubled, not-utf8, unknown-type, truncated]
---
==> user
some operators send other column names (zaehlpunkt, geraet, zeitpunkt). parse.py should take them
==> read meter_etl/parse.py
==> say
I'll translate the header before the rows are read.
==> run head -2 samples/nord.csv samples/temp.csv
 samples/nord.csv
zaehlpunkt,geraet,zeitpunkt,stand_kwh,guete
DE0004711,M220145,2026-10-14T00:00:00+00:00,8123.400,A

 samples/temp.csv
station,temp °C
Kiel,11.2
==> edit meter_etl/parse.py
 from meter_etl.model import Reading, Reject
 
+COLUMNS = {
+    "zaehlpunkt": "meter_point",
+    "geraet": "device",
+    "zeitpunkt": "read_at",
+    "stand_kwh": "register_kwh",
+    "guete": "quality",
+}
+
 
==> fails
Found 1 match of the string to replace, but the file has been modified since it was read, either by the user or by a linter. Read it again before attempting to write it.
==> read meter_etl/parse.py
==> edit meter_etl/parse.py
 from meter_etl.model import Reading, Reject
 
+COLUMNS = {
+    "zaehlpunkt": "meter_point",
+    "geraet": "device",
+    "zeitpunkt": "read_at",
+    "stand_kwh": "register_kwh",
+    "guete": "quality",
+}
+
 
==> edit meter_etl/parse.py
         for number, row in enumerate(csv.DictReader(file), 1):
+            row = {COLUMNS.get(name, name): value for name, value in row.items()}
             try:
==> write tests/test_parse.py
from meter_etl.parse import parse_file


def test_german_headers_are_understood(tmp_path):
    path = tmp_path / "nord.csv"
    path.write_text(
        "zaehlpunkt,geraet,zeitpunkt,stand_kwh,guete\n"
        "DE1,M1,2026-10-14T00:00:00+00:00,8123.400,A\n"
    )
    readings, rejects = parse_file(path)
    assert not rejects
    assert readings[0].meter_point == "DE1"
==> tests pytest -q
ok tests/test_parse.py 1
ok tests/test_publish.py 1
ok tests/test_settle.py 1
ok tests/test_window.py 7
==> say
German headers are understood, mixed ones too. `pytest -q`: 10 passed.
==> user
and uppercase? ZAEHLPUNKT
==> edit meter_etl/parse.py
-            row = {COLUMNS.get(name, name): value for name, value in row.items()}
+            row = {
+                COLUMNS.get(name.strip().lower(), name.strip().lower()): value
+                for name, value in row.items()
+            }
==> tests pytest -q
ok tests/test_parse.py 1
ok tests/test_publish.py 1
ok tests/test_settle.py 1
ok tests/test_window.py 7
==> say
Case and spaces around a name no longer matter: both are taken off before the name is looked up. I have not added a test for upper case, shall I? It would be one more row in tests/test_parse.py.
