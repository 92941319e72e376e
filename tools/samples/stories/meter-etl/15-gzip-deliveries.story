---
title: Read gzip deliveries
tool: claude-code
repository: meter-etl
prompts: v2
at: 2026-10-28 15:18:40
version: 2.1.234
---
==> user
parse_file should take .csv.gz too, operator SUED zips since monday
==> read meter_etl/parse.py
==> edit meter_etl/parse.py
-    with path.open(newline="") as file:
+    opened = gzip.open if path.suffix == ".gz" else open
+    with opened(path, "rt", encoding="utf-8", newline="") as file:
==> edit meter_etl/parse.py
-import csv
+import csv
+import gzip
==> edit tests/test_parse.py
-from datetime import datetime, timezone
+import gzip
+from datetime import datetime, timezone
==> edit tests/test_parse.py
     assert readings[0].meter_point == "DE1"
+
+
+def test_a_zipped_delivery_reads_as_the_plain_one(tmp_path):
+    text = (
+        "meter_point,device,read_at,register_kwh,quality\n"
+        "DE1,M1,2026-10-26T00:15:00+00:00,8123.400,A\n"
+    )
+    plain, zipped = tmp_path / "sued.csv", tmp_path / "sued.csv.gz"
+    plain.write_text(text)
+    zipped.write_bytes(gzip.compress(text.encode()))
+    assert parse_file(zipped) == parse_file(plain)
==> tests pytest -q
ok tests/test_gaps.py 6
ok tests/test_parse.py 5
ok tests/test_publish.py 1
ok tests/test_reclassify.py 16
ok tests/test_rejects.py 3
ok tests/test_settle.py 1
ok tests/test_window.py 7
==> say
`parse_file` reads `.csv.gz` as it does `.csv`; "39 passed". I named the encoding on the way: without it Python takes the machine's.
==> user
what about a .gz that is cut off halfway? happens with their sftp
==> run python -c "import gzip, io; d = gzip.compress(b'a' * 9000); gzip.open(io.BytesIO(d[:-9])).read()"
Traceback (most recent call last):
  File "<string>", line 1, in <module>
EOFError: Compressed file ended before the end-of-stream marker was reached
==> say
It raises `EOFError` at the end, and the job stops without settling anything of that file. I'd leave that so: half a delivery that looks whole is worse. The message does not name the file, though. Shall I wrap it?
==> user
yes wrap it, same exception, just with the path
==> edit meter_etl/parse.py
 def parse_file(path: Path) -> tuple[list[Reading], list[Reject]]:
-    """Read a delivery; a row that cannot be understood becomes a reject."""
+    """Read a delivery; a row that cannot be understood becomes a reject.
+
+    Raises:
+        EOFError: a zipped delivery is cut off.
+    """
+    try:
+        return _parsed(path)
+    except EOFError as error:
+        raise EOFError(f"{path}: {error}") from error
+
+
+def _parsed(path: Path) -> tuple[list[Reading], list[Reject]]:
     readings: list[Reading] = []
==> edit tests/test_parse.py
     assert parse_file(zipped) == parse_file(plain)
+    zipped.write_bytes(zipped.read_bytes()[:-9])
+    with pytest.raises(EOFError, match="sued.csv.gz"):
+        parse_file(zipped)
==> tests pytest tests/test_parse.py -q
ok tests/test_parse.py 5
==> say
The error names the file: "…/sued.csv.gz: Compressed file ended before the end-of-stream marker was reached". `pytest tests/test_parse.py -q`: "5 passed".
==> user
great
==> say
Thanks.
