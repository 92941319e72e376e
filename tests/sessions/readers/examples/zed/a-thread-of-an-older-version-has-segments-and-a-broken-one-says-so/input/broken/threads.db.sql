BEGIN TRANSACTION;
CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT NOT NULL, updated_at TEXT NOT NULL,
        data_type TEXT NOT NULL, data BLOB NOT NULL, parent_id TEXT, folder_paths TEXT,
        folder_paths_order TEXT, created_at TEXT);
INSERT INTO "threads" VALUES('old','old','2026-03-02T10:09:00+00:00','zstd',X'28B52FFD00',NULL,NULL,NULL,NULL);
COMMIT;
