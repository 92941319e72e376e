---
title: Labels, then caching, then something else
tool: claude-code
repository: parcel-api
prompts: v1
at: 2026-10-28 15:10:02
version: 2.1.231
discard: true
---
==> user
labels are slow, make it faster
==> read parcels/labels.py
==> say
Every call fetches the label from the carrier again. I'll cache the URL in memory.
==> edit parcels/labels.py
         self._uploads = uploads
+        self._cache: dict[str, str] = {}
==> edit parcels/labels.py
         """Fetch the label from the carrier, upload it, return its URL."""
+        if parcel_id in self._cache:
+            return self._cache[parcel_id]
         parcel = self._store.parcel(parcel_id)
         pdf = self._carriers[parcel.carrier].label(parcel.reference)
-        return self._uploads.put(f"labels/{parcel_id}.pdf", pdf)
+        url = self._uploads.put(f"labels/{parcel_id}.pdf", pdf)
+        self._cache[parcel_id] = url
+        return url
==> say
Repeated requests are answered from memory now.
==> user
hm no. we have 4 workers. use redis
==> run exit=1 python -c "import redis"
Traceback (most recent call last):
  File "<string>", line 1, in <module>
ModuleNotFoundError: No module named 'redis'
==> edit parcels/labels.py
-        self._cache: dict[str, str] = {}
+        import redis
+
+        self._cache = redis.Redis()
==> edit parcels/labels.py
-        if parcel_id in self._cache:
-            return self._cache[parcel_id]
+        cached = self._cache.get(parcel_id)
+        if cached:
+            return cached.decode()
==> user
actually also add a bulk endpoint while you're at it, and the dashboard wants counts per status
==> edit parcels/api.py
     return app
+
+
+def bulk(service, parcel_ids: list[str]) -> list[dict]:
+    return [event.__dict__ for parcel_id in parcel_ids for event in service.refresh(parcel_id)]
==> edit parcels/store.py
     def events(self, parcel_id: str, after: str = "", limit: int = 50) -> list[tuple]:
+        """Return events after a time."""
==> fails
String to replace not found in file.
String:     def events(self, parcel_id: str, after: str = "", limit: int = 50) -> list[tuple]:
        """
==> read parcels/store.py
==> edit parcels/store.py
         self._db.execute(
             "insert into parcels values (?, ?, ?)", (parcel.id, parcel.carrier, parcel.reference)
         )
+
+    def counts(self) -> dict[str, int]:
+        rows = self._db.execute("select status, count(*) from events group by status")
+        return dict(rows.fetchall())
==> tests pytest -q
ok tests/test_api.py 0
bad tests/test_api.py::test_the_second_page_starts_after_the_cursor
>       web = TestClient(api.routes(FakeService()))
E       AssertionError: A path prefix must start with '/'
ok tests/test_client.py 10
ok tests/test_settings.py 3
bad tests/test_settings.py::test_values_come_from_the_environment
E       ModuleNotFoundError: No module named 'redis'
==> interrupt
==> user
why is redis imported in a constructor?? and the counts count events, not parcels. that's wrong
==> edit parcels/store.py
-        rows = self._db.execute("select status, count(*) from events group by status")
+        rows = self._db.execute(
+            "select status, count(distinct parcel_id) from events group by status"
+        )
==> edit parcels/labels.py
-        import redis
-
-        self._cache = redis.Redis()
+        self._cache = cache
==> tests pytest -q
ok tests/test_api.py 0
bad tests/test_api.py::test_the_second_page_starts_after_the_cursor
>       web = TestClient(api.routes(FakeService()))
E       TypeError: LabelService.__init__() missing 1 required positional argument: 'cache'
ok tests/test_client.py 10
bad tests/test_labels.py::test_fetch
E       NameError: name 'cache' is not defined
==> say
Two tests still fail: the service is now built without a cache in two places.
==> user
no no no. this counts a parcel in three statuses. leave it, revert everything, I have a meeting
==> run git checkout -- .

==> say
Everything is reverted.
