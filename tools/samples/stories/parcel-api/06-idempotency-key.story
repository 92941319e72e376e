---
title: Idempotency key for bookings
tool: droid
repository: parcel-api
prompts: v3
model: claude-sonnet-4-5-20250929
at: 2026-10-23 09:31:55
---
==> user
Bookings (CarrierClient.book in parcels/carriers/client.py) are never retried because a repeated POST would book twice. Both carriers accept an `Idempotency-Key` header now.

Requirements:
- book() sends `Idempotency-Key: <uuid4>`; the same key on each attempt of one call, another key for another call
- with the key present, POST /shipments is retried like a GET (3 attempts, same waits)
- other POSTs, should there ever be any, must still go out once

Acceptance: a test that two 503 then 200 books once with one key three times; existing test_a_post_is_sent_once has to change its meaning to "a POST without key". Run the whole suite, please.
==> say
When this is done: `book()` survives two 503s, the three requests carry one and the same key, and a POST without a key is still sent once. Checked by tests in tests/test_client.py.
==> read parcels/carriers/client.py
==> +read tests/test_client.py
==> edit tests/test_client.py
 def test_a_post_is_sent_once():
     calls = []
     with pytest.raises(CarrierUnavailable):
-        client(flaky(1, calls)).book({})
+        client(flaky(1, calls))._send("POST", "/other")
     assert calls == ["POST"]
+
+
+def test_a_booking_is_repeated_under_one_key():
+    keys = []
+
+    def handler(request):
+        keys.append(request.headers["Idempotency-Key"])
+        if len(keys) < 3:
+            return httpx.Response(503)
+        return httpx.Response(200, json={"reference": "N1"})
+
+    assert client(handler).book({}) == "N1"
+    assert len(keys) == 3
+    assert len(set(keys)) == 1
+
+
+def test_two_bookings_have_two_keys():
+    keys = []
+
+    def handler(request):
+        keys.append(request.headers["Idempotency-Key"])
+        return httpx.Response(200, json={"reference": "N1"})
+
+    carrier = client(handler)
+    carrier.book({})
+    carrier.book({})
+    assert len(set(keys)) == 2
==> tests pytest tests/test_client.py -q
ok tests/test_client.py 8
bad tests/test_client.py::test_a_booking_is_repeated_under_one_key
>       keys.append(request.headers["Idempotency-Key"])
E       KeyError: 'Idempotency-Key'
bad tests/test_client.py::test_two_bookings_have_two_keys
>       keys.append(request.headers["Idempotency-Key"])
E       KeyError: 'Idempotency-Key'
==> say
Both fail for the expected reason. Now the client.
==> edit parcels/carriers/client.py
         """Book a shipment; return the carrier's reference."""
-        answer = self._send("POST", "/shipments", json=shipment)
+        key = {KEY_HEADER: str(uuid4())}
+        answer = self._send("POST", "/shipments", json=shipment, headers=key)
         return answer["reference"]
==> edit parcels/carriers/client.py
-        attempts = ATTEMPTS if method == "GET" else 1
+        repeatable = method == "GET" or KEY_HEADER in kwargs.get("headers", {})
+        attempts = ATTEMPTS if repeatable else 1
==> edit parcels/carriers/client.py
 from collections.abc import Callable
+from uuid import uuid4
==> edit parcels/carriers/client.py
 LONGEST_WAIT = 5.0
+KEY_HEADER = "Idempotency-Key"
==> tests pytest -q
ok tests/test_api.py 1
ok tests/test_client.py 10
ok tests/test_tracking.py 4
==> run ruff check parcels tests
All checks passed!
==> say
Point by point:

- One key per call of `book()`, the same on each attempt: `book()` in parcels/carriers/client.py, `test_a_booking_is_repeated_under_one_key`, `test_two_bookings_have_two_keys`.
- A POST with a key is retried like a GET: `_send`.
- A POST without one goes out once: `test_a_post_is_sent_once`, which now sends such a POST.

`pytest -q`: "15 passed"; `ruff check`: "All checks passed!".
==> user
great, exactly that
==> say
Good. The worktree is ready to commit.
