BEGIN TRANSACTION;
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL,
        parts TEXT NOT NULL default '[]', model TEXT, created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL, finished_at INTEGER, provider TEXT,
        is_summary_message INTEGER DEFAULT 0 NOT NULL);
INSERT INTO "messages" VALUES('m1','s','user','[{"type": "text", "data": {"text": "change a"}}, {"type": "binary", "data": {"Path": "a.png", "MIMEType": "image/png", "Data": ""}}]','m',1772445600,1772445600,NULL,NULL,0);
INSERT INTO "messages" VALUES('m2','s','assistant','[{"type": "reasoning", "data": {"thinking": "hm"}}, {"type": "text", "data": {"text": "I change it."}}, {"type": "tool_call", "data": {"id": "e", "name": "edit", "input": "{\"file_path\": \"/home/u/shop/a.py\", \"old_string\": \"x\", \"new_string\": \"y\\nz\"}", "finished": true}}, {"type": "tool_call", "data": {"id": "b", "name": "bash", "input": "{\"command\": \"pytest -q\"}", "finished": true}}, {"type": "tool_call", "data": {"id": "g", "name": "agent", "input": "{\"prompt\": \"look\"}", "finished": true}}]','m',1772445600,1772445600,NULL,NULL,0);
INSERT INTO "messages" VALUES('m3','s','tool','[{"type": "tool_result", "data": {"tool_call_id": "e", "content": "edited", "metadata": "{\"additions\": 2, \"removals\": 1, \"old_content\": \"q\\nx\\n\", \"new_content\": \"q\\ny\\nz\\n\"}", "is_error": false}}, {"type": "tool_result", "data": {"tool_call_id": "b", "content": "1 failed\nExit code 2\n\n<cwd>/home/u/shop</cwd>", "metadata": "{\"end_time\": 1}", "is_error": false}}]','m',1772445600,1772445600,NULL,NULL,0);
INSERT INTO "messages" VALUES('m4','s','tool','[{"type": "tool_result", "data": {"tool_call_id": "g", "content": "nothing there", "metadata": "{}", "is_error": false}}]','m',1772445600,1772445600,NULL,NULL,0);
INSERT INTO "messages" VALUES('m5','s','assistant','[{"type": "tool_call", "data": {"id": "w", "name": "write", "input": "{\"file_path\": \"b.py\", \"content\": \"q\"}", "finished": true}}]','m',1772445600,1772445600,NULL,NULL,0);
INSERT INTO "messages" VALUES('m6','s','tool','[{"type": "tool_result", "data": {"tool_call_id": "w", "content": "User denied permission", "metadata": "{}", "is_error": true}}]','m',1772445600,1772445600,NULL,NULL,0);
INSERT INTO "messages" VALUES('m7','m2$$g','user','[{"type": "text", "data": {"text": "look"}}]','m',1772445600,1772445600,NULL,NULL,0);
INSERT INTO "messages" VALUES('m8','m2$$g','assistant','[{"type": "text", "data": {"text": "nothing there"}}]','m',1772445600,1772445600,NULL,NULL,0);
CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL,
        message_count INTEGER NOT NULL DEFAULT 0, prompt_tokens INTEGER NOT NULL DEFAULT 0,
        completion_tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0.0,
        updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL, summary_message_id TEXT,
        todos TEXT);
INSERT INTO "sessions" VALUES('s',NULL,'Title of s',0,900,0,0.0,1772445600,1772445600,NULL,NULL);
INSERT INTO "sessions" VALUES('m2$$g','s','Title of m2$$g',0,900,0,0.0,1772445600,1772445600,NULL,NULL);
COMMIT;
