---
title: Retry label downloads
tool: claude-code
repository: parcel-api
prompts: v3
at: 2026-11-03 14:22:37
version: 2.1.238
---
==> user
label() in client.py isn't retried. do the same there
==> say
One question before I start: should a 422 (label rejected) stay an immediate error, and a 5xx or a timeout be retried like the GETs of `_send`? I'd do exactly that unless you say otherwise.
==> user
yes
==> read parcels/carriers/client.py
==> think
_once returns JSON. Need to split raw response from JSON. _send returns dict; add _request returning Response and let _once parse.
==> edit parcels/carriers/client.py
     def label(self, reference: str) -> bytes:
-        answer = self._http.get(f"/shipments/{reference}/label")
-        if answer.status_code == 422:
-            raise LabelRejected(self.name, answer.json()["detail"], 422)
-        return answer.content
+        """Return the label as PDF; raise LabelRejected when the carrier refuses to print it."""
+        try:
+            return self._send("GET", f"/shipments/{reference}/label", parse=bytes)
+        except CarrierError as error:
+            if error.status == 422:
+                raise LabelRejected(self.name, str(error), 422) from error
+            raise
==> edit parcels/carriers/client.py
-    def _once(self, method: str, path: str, **kwargs) -> dict:
+    def _once(self, method: str, path: str, parse=dict, **kwargs):
         try:
==> edit parcels/carriers/client.py
             raise CarrierError(self.name, answer.text, answer.status_code)
-        return answer.json()
+        return answer.content if parse is bytes else answer.json()
==> tests pytest -q
ok tests/test_api.py 1
ok tests/test_client.py 10
ok tests/test_settings.py 5
ok tests/test_tracking.py 4
==> say
Label downloads are retried as GETs are. `pytest -q`: "20 passed".
==> user
passing the type `bytes` as a flag is ugly. can you split that properly
==> edit parcels/carriers/client.py
-    def _once(self, method: str, path: str, parse=dict, **kwargs):
+    def _once(self, method: str, path: str, **kwargs) -> httpx.Response:
         try:
==> edit parcels/carriers/client.py
             raise CarrierError(self.name, answer.text, answer.status_code)
-        return answer.content if parse is bytes else answer.json()
+        return answer
==> edit parcels/carriers/client.py
-    def _send(self, method: str, path: str, **kwargs) -> dict:
+    def _send(self, method: str, path: str, **kwargs) -> httpx.Response:
==> tests pytest -q
ok tests/test_api.py 1
ok tests/test_client.py 4
bad tests/test_client.py::test_book_returns_the_reference
>       return answer["reference"]
E       TypeError: 'Response' object is not subscriptable
bad tests/test_client.py::test_a_get_succeeds_on_the_third_try
>       return self._send("GET", f"/shipments/{reference}/events")["events"]
E       TypeError: 'Response' object is not subscriptable
ok tests/test_settings.py 5
ok tests/test_tracking.py 4
==> say
`_send` hands out the response now, so its callers take what they need from it.
==> edit parcels/carriers/client.py
-        return answer["reference"]
+        return answer.json()["reference"]
==> edit parcels/carriers/client.py
-        return self._send("GET", f"/shipments/{reference}/events")["events"]
+        return self._send("GET", f"/shipments/{reference}/events").json()["events"]
==> edit parcels/carriers/client.py
-            return self._send("GET", f"/shipments/{reference}/label", parse=bytes)
+            return self._send("GET", f"/shipments/{reference}/label").content
==> tests pytest -q
ok tests/test_api.py 1
ok tests/test_client.py 10
ok tests/test_settings.py 5
ok tests/test_tracking.py 4
==> say
The flag is gone: `_send` and `_once` return the response, and the three callers read it. "20 passed". There is no test of `label()` itself yet.
==> user
ok good enough
==> say
Thanks.
