BEGIN TRANSACTION;
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT,
        session_id TEXT NOT NULL, role TEXT NOT NULL, content_json TEXT NOT NULL,
        created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP, tokens INTEGER,
        metadata_json TEXT);
INSERT INTO "messages" VALUES(1,NULL,'20260302_1','user','[{"type": "text", "text": "count"}]',1772445600,NULL,NULL,'{}');
INSERT INTO "messages" VALUES(2,NULL,'20260302_1','assistant','[{"type": "text", "text": "Both."}, {"type": "toolRequest", "id": "a", "toolCall": {"status": "success", "value": {"name": "shell", "arguments": {"command": "ls"}}}}]',1772445600,NULL,NULL,'{"usage": {"inputTokens": 100, "outputTokens": 5, "totalTokens": 105}}');
INSERT INTO "messages" VALUES(3,NULL,'20260302_1','user','[{"type": "toolResponse", "id": "a", "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": "a.py"}], "isError": false}}}]',1772445600,NULL,NULL,'{}');
INSERT INTO "messages" VALUES(4,NULL,'20260302_1','assistant','[{"type": "toolRequest", "id": "b", "toolCall": {"status": "success", "value": {"name": "delegate", "arguments": {"instructions": "Count."}}}}]',1772445600,NULL,NULL,'{}');
INSERT INTO "messages" VALUES(5,NULL,'20260302_1','user','[{"type": "toolResponse", "id": "b", "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": "one function"}], "isError": false, "_meta": {"subagent_session_id": "20260302_2"}}}}]',1772445600,NULL,NULL,'{}');
INSERT INTO "messages" VALUES(6,NULL,'20260302_1','assistant','[{"type": "toolRequest", "id": "c", "toolCall": {"status": "success", "value": {"name": "shell", "arguments": {"command": "wc"}}}}]',1772445600,NULL,NULL,'{"usage": {"inputTokens": 100, "outputTokens": 5, "totalTokens": 105}}');
INSERT INTO "messages" VALUES(7,NULL,'20260302_2','user','[{"type": "text", "text": "Subagent ID: 20260302_2\n\nCount."}]',1772445600,NULL,NULL,'{}');
INSERT INTO "messages" VALUES(8,NULL,'20260302_2','assistant','[{"type": "text", "text": "one"}]',1772445600,NULL,NULL,'{}');
CREATE TABLE schema_version (version INTEGER PRIMARY KEY);
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '',
        description TEXT NOT NULL DEFAULT '', session_type TEXT NOT NULL DEFAULT 'user',
        working_dir TEXT NOT NULL, created_at TIMESTAMP, updated_at TIMESTAMP,
        accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER,
        provider_name TEXT, model_config_json TEXT, parent_session_id TEXT);
INSERT INTO "sessions" VALUES('20260302_1','20260302_1','','user','/home/u/shop','2026-03-02 10:00:00','2026-03-02 10:01:00',NULL,NULL,NULL,'{"model_name": "m"}',NULL);
INSERT INTO "sessions" VALUES('20260302_2','20260302_2','','sub_agent','/home/u/shop','2026-03-02 10:00:00','2026-03-02 10:01:00',NULL,NULL,NULL,'{"model_name": "m"}','20260302_1');
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('messages',8);
COMMIT;
