BEGIN TRANSACTION;
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL,
        parts TEXT NOT NULL default '[]', model TEXT, created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL, finished_at INTEGER, provider TEXT,
        is_summary_message INTEGER DEFAULT 0 NOT NULL);
INSERT INTO "messages" VALUES('m1','s','user','[{"type": "text", "data": {"text": "one"}}]','m',1772445600,1772445600,NULL,NULL,0);
INSERT INTO "messages" VALUES('m2','s','assistant','[{"type": "tool_call", "data": {"id": "b", "name": "bash", "input": "{\"command\": \"sleep 9\"}", "finished": true}}, {"type": "finish", "data": {"reason": "canceled", "time": 1772445609}}]','m',1772445600,1772445600,NULL,NULL,0);
INSERT INTO "messages" VALUES('m3','s','tool','[{"type": "tool_result", "data": {"tool_call_id": "b", "content": "Error: user cancelled assistant tool calling", "metadata": "{}", "is_error": true}}]','m',1772445600,1772445600,NULL,NULL,0);
INSERT INTO "messages" VALUES('m4','s','assistant','[{"type": "text", "data": {"text": "We did one."}}]','m',1772445600,1772445600,NULL,NULL,1);
INSERT INTO "messages" VALUES('m5','s','user','[{"type": "shell_command", "data": {"command": "ls", "output": "a.py", "exit_code": 0}}]','m',1772445600,1772445600,NULL,NULL,0);
INSERT INTO "messages" VALUES('m6','s','user','[{"type": "text", "data": {"text": "two"}}]','m',1772445600,1772445600,NULL,NULL,0);
INSERT INTO "messages" VALUES('m7','s','assistant','[{"type": "text", "data": {"text": "Done."}}, {"type": "finish", "data": {"reason": "end_turn", "time": 1772445609}}]','m',1772445600,1772445600,NULL,NULL,0);
CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL,
        message_count INTEGER NOT NULL DEFAULT 0, prompt_tokens INTEGER NOT NULL DEFAULT 0,
        completion_tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0.0,
        updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL, summary_message_id TEXT,
        todos TEXT);
INSERT INTO "sessions" VALUES('s',NULL,'Title of s',0,900,0,0.0,1772445600,1772445600,NULL,NULL);
COMMIT;
