---
title: Page through events
tool: claude-code
repository: parcel-api
prompts: v2
at: 2026-10-21 11:02:09
version: 2.1.231
---
==> user
the events endpoint should page. some parcels have 400 events
==> read parcels/api.py
==> +read parcels/store.py
==> say
I'll add `limit` and `offset` to the route and to the store.
==> edit parcels/store.py
-    def events(self, parcel_id: str) -> list[tuple]:
+    def events(self, parcel_id: str, limit: int = 50, offset: int = 0) -> list[tuple]:
         return self._db.execute(
-            "select at, status, place from events where parcel_id = ? order by at", (parcel_id,)
+            "select at, status, place from events where parcel_id = ? order by at"
+            " limit ? offset ?",
+            (parcel_id, limit, offset),
         ).fetchall()
==> edit parcels/api.py
-    def events(parcel_id: str) -> list[dict]:
+    def events(parcel_id: str, limit: int = 50, offset: int = 0) -> list[dict]:
         try:
             found = service.refresh(parcel_id)
==> refuse
not offset please, we page with a cursor everywhere else: ?after=<timestamp>&limit=. And the limit is capped at 200
==> say
Understood: a cursor on the time, and a cap of 200.
==> edit parcels/store.py
-    def events(self, parcel_id: str, limit: int = 50, offset: int = 0) -> list[tuple]:
+    def events(self, parcel_id: str, after: str = "", limit: int = 50) -> list[tuple]:
         return self._db.execute(
-            "select at, status, place from events where parcel_id = ? order by at"
-            " limit ? offset ?",
-            (parcel_id, limit, offset),
+            "select at, status, place from events where parcel_id = ? and at > ?"
+            " order by at limit ?",
+            (parcel_id, after, limit),
         ).fetchall()
==> edit parcels/api.py
-from fastapi import FastAPI, HTTPException
+from typing import Annotated
+
+from fastapi import FastAPI, HTTPException, Query
==> edit parcels/api.py
-    def events(parcel_id: str) -> list[dict]:
+    def events(
+        parcel_id: str, after: str = "", limit: Annotated[int, Query(le=200)] = 50
+    ) -> list[dict]:
         try:
             found = service.refresh(parcel_id)
==> edit parcels/api.py
-        return [event.__dict__ for event in found]
+        page = [event for event in found if event.at.isoformat() > after]
+        return [event.__dict__ for event in page[:limit]]
==> tests pytest -q
ok tests/test_client.py 8
ok tests/test_tracking.py 4
==> say
Paged by `after` and `limit` (at most 200), in the store and in the route.
==> user
there is no test for it? add one for the route, with 3 events and limit=2, second page by the cursor of the last
==> write tests/test_api.py
from datetime import UTC, datetime

from fastapi import FastAPI
from fastapi.testclient import TestClient

from parcels import api
from parcels.tracking import TrackingEvent


class FakeService:
    def refresh(self, parcel_id):
        return [
            TrackingEvent(datetime(2026, 10, 21, hour, tzinfo=UTC), "in_transit", "Kiel")
            for hour in (8, 9, 10)
        ]


def test_the_second_page_starts_after_the_cursor():
    api.app = FastAPI()
    web = TestClient(api.routes(FakeService()))
    first = web.get("/parcels/p1/events", params={"limit": 2}).json()
    assert [event["at"][11:13] for event in first] == ["08", "09"]
    second = web.get("/parcels/p1/events", params={"limit": 2, "after": first[-1]["at"]}).json()
    assert [event["at"][11:13] for event in second] == ["10"]
==> tests pytest -q
ok tests/test_api.py 0
bad tests/test_api.py::test_the_second_page_starts_after_the_cursor
        second = web.get("/parcels/p1/events", params={"limit": 2, "after": first[-1]["at"]}).json()
>       assert [event["at"][11:13] for event in second] == ["10"]
E       AssertionError: assert ['09', '10'] == ['10']
ok tests/test_client.py 8
ok tests/test_tracking.py 4
==> think
The JSON has "Z", isoformat has "+00:00". String comparison: "Z" vs "+": "+00:00" > "Z"? '+' is 0x2b, 'Z' is 0x5a: "2026-10-21T09:00:00+00:00" > "2026-10-21T09:00:00Z" is False... pydantic serialises to "2026-10-21T09:00:00Z". Comparison '+' < 'Z' gives False, so 09 would be excluded. But the failure shows included: the plus in the query is a space? No, Z. Compare as datetimes in any case.
==> say
The cursor comes back as text in another notation than ours, so comparing strings is the mistake. Comparing times instead.
==> edit parcels/api.py
-        page = [event for event in found if event.at.isoformat() > after]
+        start = datetime.fromisoformat(after) if after else None
+        page = [event for event in found if start is None or event.at > start]
==> edit parcels/api.py
+from datetime import datetime
 from typing import Annotated
==> tests pytest -q
ok tests/test_api.py 1
ok tests/test_client.py 8
ok tests/test_tracking.py 4
==> say
The test found a real mistake: the cursor was compared as text. It compares times now; 13 passed.
==> user
ok
==> say
Thanks.
