---
title: Survive unknown tracking codes
tool: claude-code
repository: parcel-api
prompts: v2
model: claude-opus-4-5-20251101
at: 2026-10-15 13:20:48
version: 2.1.229
---
==> user
This morning's page: SwiftLine introduced a code CUSTOMS_HOLD and every refresh of such a parcel now fails.

```
  File "parcels/tracking.py", line 40, in _event
    status=STATUSES[item["code"]],
KeyError: 'CUSTOMS_HOLD'
```

What I want in parcels/tracking.py:
1. CUSTOMS_HOLD maps to a new status "held"
2. any other unknown code must not lose the whole refresh: keep the event with status "unknown", and log a warning once per code, not once per event
3. tests for both in tests/test_tracking.py, plus one for the once-per-code rule

Don't touch the store. When you're done let change-reviewer have a look, tracking is what customers stare at.
==> read parcels/tracking.py
==> +read tests/test_tracking.py
==> +read parcels/store.py
==> think
A module-level set for seen codes would leak between tests; better on the service instance. Write the failing tests first.
==> say
I'll start from the failing case. The memory of codes already warned about goes on the service, so that tests and workers don't share it.
==> edit tests/test_tracking.py
     assert found[0].place == "Kiel"
+
+
+def event(code: str, hour: int = 8) -> dict:
+    return {"timestamp": f"2026-10-15T{hour:02d}:00:00+00:00", "code": code, "location": "Kiel"}
+
+
+def test_a_customs_hold_is_held():
+    assert service([event("CUSTOMS_HOLD")]).refresh("p1")[0].status == "held"
+
+
+def test_an_unknown_code_keeps_the_other_events():
+    found = service([event("PICKED_UP", 8), event("ON_MULE", 9)]).refresh("p1")
+    assert [item.status for item in found] == ["in_transit", "unknown"]
+
+
+def test_an_unknown_code_is_warned_about_once(caplog):
+    tracking = service([event("ON_MULE", 8), event("ON_MULE", 9), event("ON_RAFT", 10)])
+    tracking.refresh("p1")
+    tracking.refresh("p1")
+    assert [record.args for record in caplog.records] == [
+        ("northpost", "ON_MULE"),
+        ("northpost", "ON_RAFT"),
+    ]
==> tests pytest tests/test_tracking.py -q
ok tests/test_tracking.py 1
bad tests/test_tracking.py::test_a_customs_hold_is_held
>           status=STATUSES[item["code"]],
E       KeyError: 'CUSTOMS_HOLD'
bad tests/test_tracking.py::test_an_unknown_code_keeps_the_other_events
>           status=STATUSES[item["code"]],
E       KeyError: 'ON_MULE'
bad tests/test_tracking.py::test_an_unknown_code_is_warned_about_once
>           status=STATUSES[item["code"]],
E       KeyError: 'ON_MULE'
==> say
Three failures, as on the page. Now the change.
==> edit parcels/tracking.py
+import logging
 from dataclasses import dataclass
 from datetime import datetime
 
 from parcels.carriers.client import CarrierClient
 from parcels.store import Store
 
+logger = logging.getLogger(__name__)
+
 STATUSES = {
==> edit parcels/tracking.py
     "RETURNED": "returned",
+    "CUSTOMS_HOLD": "held",
 }
+UNKNOWN = "unknown"
==> edit parcels/tracking.py
         self._store = store
         self._carriers = carriers
+        self._warned: set[tuple[str, str]] = set()
==> edit parcels/tracking.py
-        events = [self._event(item) for item in raw]
+        events = [self._event(item, parcel.carrier) for item in raw]
         self._store.save_events(parcel_id, events)
         return events
 
-    def _event(self, item: dict) -> TrackingEvent:
+    def _event(self, item: dict, carrier: str) -> TrackingEvent:
         return TrackingEvent(
             at=datetime.fromisoformat(item["timestamp"]),
-            status=STATUSES[item["code"]],
+            status=self._status(item["code"], carrier),
             place=item.get("location", ""),
         )
+
+    def _status(self, code: str, carrier: str) -> str:
+        if code not in STATUSES and (carrier, code) not in self._warned:
+            self._warned.add((carrier, code))
+            logger.warning("%s sent the unknown code %s", carrier, code)
+        return STATUSES.get(code, UNKNOWN)
==> tests pytest -q
ok tests/test_client.py 8
ok tests/test_tracking.py 4
==> task change-reviewer :: Review unknown codes
Review the uncommitted change in parcels/tracking.py and tests/test_tracking.py. Intent: CUSTOMS_HOLD becomes "held"; other unknown codes become "unknown", with one warning per carrier and code. The store must not change. Look for callers that rely on STATUSES or on the signature of _event.
==> run git diff --stat
 parcels/tracking.py    | 17 +++++++++++++++--
 tests/test_tracking.py | 24 ++++++++++++++++++++++++
 2 files changed, 39 insertions(+), 2 deletions(-)
==> grep _event\(|STATUSES
==> read lines=14-40 parcels/tracking.py
==> report
No blocking findings.

1. `parcels/tracking.py`, `_status`: an item without a "code" key still raises `KeyError` and loses the refresh. For input `{"timestamp": …}` only. Outside the request, worth a note.
2. Nobody else calls `_event` or reads `STATUSES`.
==> say
All three points are in:

1. `CUSTOMS_HOLD` → `held` (`STATUSES` in parcels/tracking.py).
2. Other unknown codes → `unknown`, one warning per carrier and code (`_status`).
3. Three tests in tests/test_tracking.py; they failed before the change. `pytest -q`: 12 passed.

The reviewer found nothing blocking. It notes that an event with no code at all still raises; I left that alone since you didn't ask for it.
==> user
perfect. agree on leaving the no-code case
==> say
Good. Nothing is left open then.
