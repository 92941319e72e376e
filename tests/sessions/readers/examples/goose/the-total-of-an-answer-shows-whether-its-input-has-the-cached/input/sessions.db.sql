BEGIN TRANSACTION;
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT,
        session_id TEXT NOT NULL, role TEXT NOT NULL, content_json TEXT NOT NULL,
        created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP, tokens INTEGER,
        metadata_json TEXT);
INSERT INTO "messages" VALUES(1,NULL,'20260302_1','user','[{"type": "text", "text": "count"}]',1772445600,NULL,NULL,'{}');
INSERT INTO "messages" VALUES(2,NULL,'20260302_1','assistant','[{"type": "text", "text": "Two."}]',1772445600,NULL,NULL,'{"usage": {"inputTokens": 40, "outputTokens": 5, "cacheWriteTokens": 10, "cacheReadTokens": 60, "totalTokens": 115}}');
INSERT INTO "messages" VALUES(3,NULL,'20260302_1','user','[{"type": "text", "text": "again"}]',1772445600,NULL,NULL,'{}');
INSERT INTO "messages" VALUES(4,NULL,'20260302_1','assistant','[{"type": "text", "text": "Still two."}]',1772445600,NULL,NULL,'{"usage": {"inputTokens": 110, "outputTokens": 5, "cacheWriteTokens": 10, "cacheReadTokens": 60, "totalTokens": 115}}');
CREATE TABLE schema_version (version INTEGER PRIMARY KEY);
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '',
        description TEXT NOT NULL DEFAULT '', session_type TEXT NOT NULL DEFAULT 'user',
        working_dir TEXT NOT NULL, created_at TIMESTAMP, updated_at TIMESTAMP,
        accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER,
        provider_name TEXT, model_config_json TEXT, parent_session_id TEXT);
INSERT INTO "sessions" VALUES('20260302_1','20260302_1','','user','/home/u/shop','2026-03-02 10:00:00','2026-03-02 10:01:00',NULL,NULL,NULL,'{"model_name": "m"}',NULL);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('messages',4);
COMMIT;
