---
title: Retry carrier calls with backoff
tool: claude-code
repository: parcel-api
prompts: v1
at: 2026-10-05 09:12:04
version: 2.1.226
---
==> user
In parcels/carriers/client.py, CarrierClient._send gives up on the first 5xx or timeout. NorthPost drops about 2% of calls at night and every one of those turns into a 502 for our customers.

Please retry there:
- at most 3 attempts in all, waits of 0.2 s and 0.4 s, plus up to 50 ms of jitter
- only for GET, and only for CarrierUnavailable. A POST must never be sent twice, we'd book two parcels
- the sleep has to be injectable so that the tests don't really wait

Done when tests/test_client.py covers: succeeds on the third try, gives up after three, POST is sent once. Run `pytest -q` at the end please.
==> read parcels/carriers/client.py
==> +read tests/test_client.py
==> think
_send is the single place. Split the single try out into _once and loop in _send for GET only. Inject sleep through the constructor.
==> say
`_send` is the one door for both verbs, so I'll keep a single try in `_once` and put the loop around it for GET alone. The sleep comes in through the constructor.
==> edit parcels/carriers/client.py
-import httpx
+import random
+import time
+from collections.abc import Callable
+
+import httpx
 
 from parcels.carriers.errors import CarrierError, CarrierUnavailable, LabelRejected
 
+ATTEMPTS = 3
+FIRST_WAIT = 0.2
+JITTER = 0.05
+
 
 class CarrierClient:
-    def __init__(self, name: str, base_url: str, token: str, timeout: float = 5.0) -> None:
+    def __init__(
+        self,
+        name: str,
+        base_url: str,
+        token: str,
+        timeout: float = 5.0,
+        sleep: Callable[[float], None] = time.sleep,
+    ) -> None:
         self.name = name
+        self._sleep = sleep
==> edit parcels/carriers/client.py
     def _send(self, method: str, path: str, **kwargs) -> dict:
+        """Send a request; repeat it when the carrier is unavailable and repeating is safe."""
+        attempts = ATTEMPTS if method == "GET" else 1
+        for attempt in range(1, attempts + 1):
+            try:
+                return self._once(method, path, **kwargs)
+            except CarrierUnavailable:
+                if attempt == attempts:
+                    raise
+                self._sleep(FIRST_WAIT * 2 ** (attempt - 1) + random.uniform(0, JITTER))
+        raise AssertionError("unreachable")
+
+    def _once(self, method: str, path: str, **kwargs) -> dict:
         try:
==> edit tests/test_client.py
-def client(handler) -> CarrierClient:
-    made = CarrierClient("northpost", "https://carrier.test", "t")
+def client(handler, sleep=lambda _: None) -> CarrierClient:
+    made = CarrierClient("northpost", "https://carrier.test", "t", sleep=sleep)
==> edit tests/test_client.py
     assert caught.value.status == 404
+
+
+def flaky(failures: int, calls: list):
+    def handler(request):
+        calls.append(request.method)
+        if len(calls) <= failures:
+            return httpx.Response(503)
+        return httpx.Response(200, json={"events": [], "reference": "N1"})
+
+    return handler
+
+
+def test_a_get_succeeds_on_the_third_try():
+    calls, waits = [], []
+    assert client(flaky(2, calls), waits.append).track("N1") == []
+    assert len(calls) == 3
+    assert 0.2 <= waits[0] <= 0.25
+    assert 0.4 <= waits[1] <= 0.45
+
+
+def test_a_get_gives_up_after_three_tries():
+    calls = []
+    with pytest.raises(CarrierUnavailable):
+        client(flaky(9, calls)).track("N1")
+    assert len(calls) == 3
+
+
+def test_a_post_is_sent_once():
+    calls = []
+    with pytest.raises(CarrierUnavailable):
+        client(flaky(1, calls)).book({})
+    assert calls == ["POST"]
==> tests pytest -q
ok tests/test_client.py 6
ok tests/test_tracking.py 1
==> run ruff check parcels tests
All checks passed!
==> say
Done.

- `parcels/carriers/client.py`: GETs are tried three times, waiting 0.2 s and 0.4 s plus up to 50 ms; POSTs once. `sleep` is a constructor argument.
- `tests/test_client.py`: third try succeeds (and the two waits are checked), gives up after three, POST sent once.

`pytest -q`: 7 passed. Note that `label()` goes past `_send` and is not retried.
==> user
good catch on label(), leave it for now. thanks, committing this
==> say
Left as it is. Nothing else is open on this one.
