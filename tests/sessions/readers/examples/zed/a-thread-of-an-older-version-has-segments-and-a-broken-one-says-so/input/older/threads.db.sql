BEGIN TRANSACTION;
CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT NOT NULL, updated_at TEXT NOT NULL,
        data_type TEXT NOT NULL, data BLOB NOT NULL, parent_id TEXT, folder_paths TEXT,
        folder_paths_order TEXT, created_at TEXT);
INSERT INTO "threads" VALUES('old','old','2026-03-02T10:09:00+00:00','zstd',zstd('{"version": "0.2.0", "summary": "Old", "messages": [{"id": 0, "role": "user", "segments": [{"type": "text", "text": "run it"}]}, {"id": 1, "role": "assistant", "segments": [{"type": "text", "text": "I do."}], "tool_uses": [{"id": "t", "name": "terminal", "input": {"command": "ls"}}], "tool_results": [{"tool_use_id": "t", "is_error": false, "content": "a.py"}]}]}'),NULL,NULL,NULL,NULL);
COMMIT;
