BEGIN TRANSACTION;
CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
INSERT INTO "cursorDiskKV" VALUES('composer.content.1','a
b
');
INSERT INTO "cursorDiskKV" VALUES('composer.content.2','a
c
d
');
INSERT INTO "cursorDiskKV" VALUES('bubbleId:22b57e58-4764-45d1-8303-21d00aaa6ec5:b0','{"bubbleId": "b0", "type": 1, "text": "Go.", "createdAt": "2026-03-02T10:00:01.000Z", "images": [{"uuid": "i"}]}');
INSERT INTO "cursorDiskKV" VALUES('bubbleId:22b57e58-4764-45d1-8303-21d00aaa6ec5:b1','{"bubbleId": "b1", "type": 2, "text": "", "thinking": {"text": "Hm."}, "createdAt": "2026-03-02T10:00:02.000Z"}');
INSERT INTO "cursorDiskKV" VALUES('bubbleId:22b57e58-4764-45d1-8303-21d00aaa6ec5:b2','{"bubbleId": "b2", "type": 2, "text": "", "toolFormerData": {"toolCallId": "r", "name": "read_file_v2", "rawArgs": "{\"targetFile\": \"x.js\"}", "status": "completed", "result": "{\"totalLinesInFile\": 2}"}}');
INSERT INTO "cursorDiskKV" VALUES('bubbleId:22b57e58-4764-45d1-8303-21d00aaa6ec5:b3','{"bubbleId": "b3", "type": 2, "text": "", "toolFormerData": {"toolCallId": "e", "name": "edit_file_v2", "rawArgs": "{}", "status": "completed", "result": "{\"beforeContentId\": \"composer.content.1\", \"afterContentId\": \"composer.content.2\"}", "modelCallId": "one", "params": "{\"relativeWorkspacePath\": \"/w/x.js\"}"}}');
INSERT INTO "cursorDiskKV" VALUES('bubbleId:22b57e58-4764-45d1-8303-21d00aaa6ec5:b4','{"bubbleId": "b4", "type": 2, "text": "", "toolFormerData": {"toolCallId": "s", "name": "task_v2", "rawArgs": "{\"prompt\": \"Look.\", \"description\": \"A look\"}", "status": "completed", "result": "{}", "additionalData": {"subagentComposerId": "59c0d1aa-1c67-4e17-8954-0b6e2b3322f1"}, "modelCallId": "two"}}');
INSERT INTO "cursorDiskKV" VALUES('bubbleId:22b57e58-4764-45d1-8303-21d00aaa6ec5:b5','{"bubbleId": "b5", "type": 2, "text": "", "toolFormerData": {"toolCallId": "k", "name": "edit_file_v2", "rawArgs": "{\"relativeWorkspacePath\": \"/w/x.js\"}", "status": "cancelled", "result": "{}", "error": "{\"clientVisibleErrorMessage\": \"Edit rejected: User chose to skip\"}"}}');
INSERT INTO "cursorDiskKV" VALUES('composerData:22b57e58-4764-45d1-8303-21d00aaa6ec5','{"composerId": "22b57e58-4764-45d1-8303-21d00aaa6ec5", "createdAt": 1772445600000, "fullConversationHeadersOnly": [{"bubbleId": "b0", "type": 1}, {"bubbleId": "b1", "type": 2}, {"bubbleId": "b2", "type": 2}, {"bubbleId": "b3", "type": 2}, {"bubbleId": "b4", "type": 2}, {"bubbleId": "b5", "type": 2}], "modelConfig": {"modelName": "grok-4.6"}, "workspaceIdentifier": {"uri": {"fsPath": "/home/ann/shop"}}, "trackedGitRepos": [{"branches": [{"branchName": "main"}]}], "subagentComposerIds": ["59c0d1aa-1c67-4e17-8954-0b6e2b3322f1"]}');
INSERT INTO "cursorDiskKV" VALUES('bubbleId:59c0d1aa-1c67-4e17-8954-0b6e2b3322f1:b0','{"bubbleId": "b0", "type": 1, "text": "Look."}');
INSERT INTO "cursorDiskKV" VALUES('bubbleId:59c0d1aa-1c67-4e17-8954-0b6e2b3322f1:b1','{"bubbleId": "b1", "type": 2, "text": "It is there.", "thinking": {"text": ""}, "modelInfo": {"modelName": "composer-2.5"}}');
INSERT INTO "cursorDiskKV" VALUES('composerData:59c0d1aa-1c67-4e17-8954-0b6e2b3322f1','{"composerId": "59c0d1aa-1c67-4e17-8954-0b6e2b3322f1", "createdAt": 1772445600000, "fullConversationHeadersOnly": [{"bubbleId": "b0", "type": 1}, {"bubbleId": "b1", "type": 2}], "modelConfig": {"modelName": "default"}}');
COMMIT;
