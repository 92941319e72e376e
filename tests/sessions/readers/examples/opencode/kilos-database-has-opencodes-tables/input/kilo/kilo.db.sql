BEGIN TRANSACTION;
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
INSERT INTO "message" VALUES('msg_001','ses_34fa6c8b1ffe2ZkQ9dUw7RtYbN',1772445601000,1772445601500,'{"role": "user", "time": {"created": 1772445601000, "completed": 1772445601500}}');
INSERT INTO "message" VALUES('msg_002','ses_34fa6c8b1ffe2ZkQ9dUw7RtYbN',1772445602000,1772445602500,'{"role": "assistant", "time": {"created": 1772445602000, "completed": 1772445602500}, "modelID": "opus", "tokens": {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 30, "write": 4}}}');
INSERT INTO "message" VALUES('msg_003','ses_34fa6c0a2ffe8MxT4cVp1LsHjK',1772445603000,1772445603500,'{"role": "user", "time": {"created": 1772445603000, "completed": 1772445603500}}');
INSERT INTO "message" VALUES('msg_004','ses_34fa6c0a2ffe8MxT4cVp1LsHjK',1772445604000,1772445604500,'{"role": "assistant", "time": {"created": 1772445604000, "completed": 1772445604500}, "modelID": "opus", "tokens": {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 30, "write": 4}}}');
INSERT INTO "message" VALUES('msg_005','ses_34fa6c8b1ffe2ZkQ9dUw7RtYbN',1772445605000,1772445605500,'{"role": "assistant", "time": {"created": 1772445605000, "completed": 1772445605500}, "modelID": "opus", "tokens": {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 30, "write": 4}}}');
INSERT INTO "message" VALUES('msg_006','ses_34fa6c8b1ffe2ZkQ9dUw7RtYbN',1772445606000,1772445606500,'{"role": "user", "time": {"created": 1772445606000, "completed": 1772445606500}}');
INSERT INTO "message" VALUES('msg_007','ses_34fa6c8b1ffe2ZkQ9dUw7RtYbN',1772445607000,1772445607500,'{"role": "assistant", "time": {"created": 1772445607000, "completed": 1772445607500}, "modelID": "opus", "tokens": {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 30, "write": 4}}}');
INSERT INTO "message" VALUES('msg_008','ses_34fa6b77cffe5GyB3nKd6WqEzA',1772445608000,1772445608500,'{"role": "user", "time": {"created": 1772445608000, "completed": 1772445608500}}');
INSERT INTO "message" VALUES('msg_009','ses_34fa6b77cffe5GyB3nKd6WqEzA',1772445609000,1772445609500,'{"role": "assistant", "time": {"created": 1772445609000, "completed": 1772445609500}, "modelID": "opus", "tokens": {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 30, "write": 4}}}');
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
INSERT INTO "part" VALUES('prt_0010','msg_001','ses_34fa6c8b1ffe2ZkQ9dUw7RtYbN',1772445601000,1772445601000,'{"type": "text", "text": "Fix it"}');
INSERT INTO "part" VALUES('prt_0020','msg_002','ses_34fa6c8b1ffe2ZkQ9dUw7RtYbN',1772445602000,1772445602000,'{"type": "text", "text": "Looking"}');
INSERT INTO "part" VALUES('prt_0021','msg_002','ses_34fa6c8b1ffe2ZkQ9dUw7RtYbN',1772445602000,1772445602000,'{"type": "tool", "tool": "task", "callID": "call_task", "state": {"status": "completed", "input": {"description": "Look", "subagent_type": "general", "prompt": "Read a.py"}, "output": "done", "metadata": {"sessionId": "ses_34fa6c0a2ffe8MxT4cVp1LsHjK"}}}');
INSERT INTO "part" VALUES('prt_0030','msg_003','ses_34fa6c0a2ffe8MxT4cVp1LsHjK',1772445603000,1772445603000,'{"type": "text", "text": "Read a.py"}');
INSERT INTO "part" VALUES('prt_0040','msg_004','ses_34fa6c0a2ffe8MxT4cVp1LsHjK',1772445604000,1772445604000,'{"type": "tool", "tool": "read", "callID": "call_read", "state": {"status": "completed", "input": {"filePath": "a.py"}, "output": "x", "metadata": {}}}');
INSERT INTO "part" VALUES('prt_0041','msg_004','ses_34fa6c0a2ffe8MxT4cVp1LsHjK',1772445604000,1772445604000,'{"type": "text", "text": "It says x"}');
INSERT INTO "part" VALUES('prt_0050','msg_005','ses_34fa6c8b1ffe2ZkQ9dUw7RtYbN',1772445605000,1772445605000,'{"type": "tool", "tool": "edit", "callID": "call_edit", "state": {"status": "completed", "input": {"filePath": "a.py", "oldString": "x", "newString": "y\nz"}, "output": "ok", "metadata": {"diff": "--- a.py\n+++ a.py\n@@ -1 +1,2 @@\n-x\n+y\n+z\n"}}}');
INSERT INTO "part" VALUES('prt_0060','msg_006','ses_34fa6c8b1ffe2ZkQ9dUw7RtYbN',1772445606000,1772445606000,'{"type": "text", "text": "And test it"}');
INSERT INTO "part" VALUES('prt_0070','msg_007','ses_34fa6c8b1ffe2ZkQ9dUw7RtYbN',1772445607000,1772445607000,'{"type": "tool", "tool": "bash", "callID": "call_bash", "state": {"status": "completed", "input": {"command": "make"}, "output": "1 failed", "metadata": {"exit": 1}}}');
INSERT INTO "part" VALUES('prt_0080','msg_008','ses_34fa6b77cffe5GyB3nKd6WqEzA',1772445608000,1772445608000,'{"type": "text", "text": "Hello"}');
INSERT INTO "part" VALUES('prt_0090','msg_009','ses_34fa6b77cffe5GyB3nKd6WqEzA',1772445609000,1772445609000,'{"type": "text", "text": "Hello, Ann"}');
CREATE TABLE session (
    id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text,
    slug text NOT NULL, directory text NOT NULL, path text, title text, version text NOT NULL,
    share_url text, cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL,
    tokens_output integer DEFAULT 0 NOT NULL, tokens_reasoning integer DEFAULT 0 NOT NULL,
    tokens_cache_read integer DEFAULT 0 NOT NULL, tokens_cache_write integer DEFAULT 0 NOT NULL,
    revert text, agent text, model text, time_created integer NOT NULL,
    time_updated integer NOT NULL, time_compacting integer, time_archived integer
);
INSERT INTO "session" VALUES('ses_34fa6c8b1ffe2ZkQ9dUw7RtYbN','p',NULL,NULL,'s','/home/ann/shop',NULL,'Retry','1.18.33',NULL,0.0,30,15,6,90,12,NULL,NULL,NULL,1772445600000,1772445600000,NULL,NULL);
INSERT INTO "session" VALUES('ses_34fa6c0a2ffe8MxT4cVp1LsHjK','p',NULL,'ses_34fa6c8b1ffe2ZkQ9dUw7RtYbN','s','/home/ann/shop',NULL,'Look','1.18.33',NULL,0.0,10,5,2,30,4,NULL,NULL,NULL,1772445600000,1772445600000,NULL,NULL);
INSERT INTO "session" VALUES('ses_34fa6b77cffe5GyB3nKd6WqEzA','p',NULL,NULL,'s','/home/ann/shop',NULL,'Retry','1.18.33',NULL,0.0,0,0,0,0,0,NULL,NULL,NULL,1773050400000,1772445600000,NULL,NULL);
CREATE INDEX session_parent_idx ON session (parent_id);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_session_idx ON part (session_id);
CREATE INDEX recall_message_role_idx ON message (json_extract(data, '$.role'));
COMMIT;
