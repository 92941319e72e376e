BEGIN TRANSACTION;
CREATE TABLE messages (id, session_id, ordinal, role, content, thinking_text, timestamp, has_thinking, has_tool_use, content_length, is_system, model, token_usage, is_compact_boundary, claude_message_id TEXT DEFAULT '', claude_request_id TEXT DEFAULT '');
INSERT INTO "messages" VALUES(1,'hermes:s1',0,'user','Make the totals exact.','','2026-03-02T10:00:01Z',0,0,22,0,'','',0,'','');
INSERT INTO "messages" VALUES(2,'hermes:s1',1,'assistant','[Thinking]
Look first.
[/Thinking]
I look.
[Read: totals.py]
[Bash]
$ pytest -q','Look first.','2026-03-02T10:00:05Z',0,0,79,0,'hermes-4','{"input_tokens": 900, "output_tokens": 50, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 0}',0,'','');
INSERT INTO "messages" VALUES(3,'hermes:s1',2,'user','The tests are slow.','','2026-03-02T10:00:08Z',0,0,19,1,'','',0,'','');
INSERT INTO "messages" VALUES(4,'hermes:s1',3,'assistant','[Edit: totals.py]
Done.','','2026-03-02T10:00:20Z',0,0,23,0,'hermes-4','{"input_tokens": 100, "output_tokens": 40, "cache_creation_input_tokens": 50, "cache_read_input_tokens": 1000}',0,'','');
INSERT INTO "messages" VALUES(5,'hermes:s1',4,'user','The totals were made exact.','','2026-03-02T10:00:30Z',0,0,27,0,'','',1,'','');
INSERT INTO "messages" VALUES(6,'hermes:s1',5,'user','Now the taxes.','','2026-03-02T10:00:40Z',0,0,14,0,'','',0,'','');
INSERT INTO "messages" VALUES(7,'hermes:s1',6,'assistant','I begin.','','2026-03-02T10:01:00Z',0,0,8,0,'hermes-4','{"input_tokens": 500, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}',0,'','');
INSERT INTO "messages" VALUES(90,'hermes:s1',90,'assistant','[Thinking]
Look first.
[/Thinking]
I look.
[Read: totals.py]
[Bash]
$ pytest -q','Look first.','2026-03-02T10:00:05Z',0,0,79,0,'hermes-4','{"input_tokens": 100, "output_tokens": 1}',0,'msg_1','req_1');
INSERT INTO "messages" VALUES(91,'hermes:s1',91,'assistant','[Thinking]
Look first.
[/Thinking]
I look.
[Read: totals.py]
[Bash]
$ pytest -q','Look first.','2026-03-02T10:00:05Z',0,0,79,0,'hermes-4','{"input_tokens": 100, "output_tokens": 7}',0,'msg_1','req_1');
CREATE TABLE sessions (id, project, machine, agent, first_message, display_name, started_at, ended_at, message_count, cwd, git_branch, source_version, relationship_type, parent_session_id, deleted_at);
INSERT INTO "sessions" VALUES('hermes:s1','shop','local','hermes','Make the totals exact.','Exact totals','2026-03-02T10:00:00Z','2026-03-02T10:01:00Z',5,'/home/ann/shop','main','0.9','',NULL,NULL);
CREATE TABLE tool_calls (id, message_id, session_id, tool_name, category, tool_use_id, input_json, skill_name, result_content_length, result_content, subagent_session_id);
INSERT INTO "tool_calls" VALUES(1,2,'hermes:s1','Read','Read','c1','{"path": "totals.py"}',NULL,0,'',NULL);
INSERT INTO "tool_calls" VALUES(2,2,'hermes:s1','Bash','Bash','c2','{"command": "pytest -q"}',NULL,8,'1 failed',NULL);
INSERT INTO "tool_calls" VALUES(3,4,'hermes:s1','Edit','Edit','c3','{"file_path": "totals.py", "old_string": "round(price)", "new_string": "price"}',NULL,2,'ok',NULL);
CREATE TABLE tool_result_events (id, session_id, tool_call_message_ordinal, call_index, tool_use_id, agent_id, subagent_session_id, source, status, content, content_length, timestamp, event_index);
INSERT INTO "tool_result_events" VALUES(1,'hermes:s1',1,1,'c2',NULL,NULL,'hermes','errored','1 failed',8,'2026-03-02T10:00:07Z',0);
COMMIT;
