---
title: Respect Retry-After of SwiftLine
tool: droid
repository: parcel-api
prompts: v1
at: 2026-10-13 10:05:12
---
==> user
SwiftLine answers 429 with a Retry-After header when we poll too fast. Make CarrierClient wait for it.
==> todo
[>] Look at how the client retries
[ ] Wait for Retry-After on 429
[ ] Add a test
==> read parcels/carriers/client.py
==> read parcels/carriers/errors.py
==> edit parcels/carriers/errors.py
 class LabelRejected(CarrierError):
     """The carrier looked at the label and said no."""
+
+
+class RateLimited(CarrierUnavailable):
+    """The carrier asks for fewer calls."""
+
+    def __init__(self, carrier: str, wait: float) -> None:
+        self.wait = wait
+        super().__init__(carrier, f"rate limited for {wait:g} s", 429)
==> edit parcels/carriers/client.py
-from parcels.carriers.errors import CarrierError, CarrierUnavailable, LabelRejected
+from parcels.carriers.errors import (
+    CarrierError,
+    CarrierUnavailable,
+    LabelRejected,
+    RateLimited,
+)
==> edit parcels/carriers/client.py
         if answer.status_code >= 500:
             raise CarrierUnavailable(self.name, "server error", answer.status_code)
+        if answer.status_code == 429:
+            raise RateLimited(self.name, float(answer.headers.get("Retry-After", 1)))
==> edit parcels/carriers/client.py
-            except CarrierUnavailable:
+            except CarrierUnavailable as error:
                 if attempt == attempts:
                     raise
-                self._sleep(FIRST_WAIT * 2 ** (attempt - 1) + random.uniform(0, JITTER))
+                self._sleep(self._pause(error, attempt))
         raise AssertionError("unreachable")
+
+    def _pause(self, error: CarrierUnavailable, attempt: int) -> float:
+        if isinstance(error, RateLimited):
+            return error.wait
+        return FIRST_WAIT * 2 ** (attempt - 1) + random.uniform(0, JITTER)
==> say
429 is now a `RateLimited`, and the client waits as long as the header says before it tries again.
==> user
what if the header is 3600? we can't block a request for an hour. cap it at 5s and otherwise raise straight away
==> edit parcels/carriers/client.py
     def _pause(self, error: CarrierUnavailable, attempt: int) -> float:
         if isinstance(error, RateLimited):
+            if error.wait > LONGEST_WAIT:
+                raise error
             return error.wait
==> run exit=1 python -c "import parcels.carriers.client as c; print(c.LONGEST_WAIT)"
Traceback (most recent call last):
  File "<string>", line 1, in <module>
AttributeError: module 'parcels.carriers.client' has no attribute 'LONGEST_WAIT'
==> edit parcels/carriers/client.py
 JITTER = 0.05
+LONGEST_WAIT = 5.0
==> edit tests/test_client.py
 def test_a_post_is_sent_once():
+    calls = []
+    with pytest.raises(CarrierUnavailable):
+        client(flaky(1, calls)).book({})
+    assert calls == ["POST"]
+
+
+def limited(seconds: str, calls: list):
+    def handler(request):
+        calls.append(1)
+        if len(calls) == 1:
+            return httpx.Response(429, headers={"Retry-After": seconds})
+        return httpx.Response(200, json={"events": []})
+
+    return handler
+
+
+def test_a_short_rate_limit_is_waited_for():
+    calls, waits = [], []
+    client(limited("2", calls), waits.append).track("N1")
+    assert waits == [2.0]
+
+
+def test_a_long_rate_limit_is_raised_at_once():
     calls = []
     with pytest.raises(CarrierUnavailable):
-        client(flaky(1, calls)).book({})
-    assert calls == ["POST"]
+        client(limited("3600", calls)).track("N1")
+    assert calls == [1]
==> tests pytest tests/test_client.py
ok tests/test_client.py 8
==> todo
[x] Look at how the client retries
[x] Wait for Retry-After on 429
[x] Add a test
==> say
Waits of more than 5 s are raised at once, shorter ones are waited for. `pytest tests/test_client.py`: 8 passed.
==> user
Retry-After can also be a date, no?
==> say
Yes, it can be an HTTP date; `float()` would raise a `ValueError` there. SwiftLine sends seconds. I can take dates too, if you want.
==> user
nah, fine for swiftline
==> say
Thanks.
