"""Tools of the usual agents: what each does and takes."""

from __future__ import annotations

from msgspec import Struct


class Known(Struct, frozen=True):
    """A tool whose arguments are known: ``path*`` is required, ``:`` names a type other than
    string, ``[]`` an array of it."""

    description: str
    arguments: str = ""


_CLAUDE_CODE: dict[str, Known] = {
    "Bash": Known(
        "Run a shell command.",
        "command* description timeout:number run_in_background:boolean",
    ),
    "Read": Known("Read a file.", "file_path* offset:number limit:number pages"),
    "Edit": Known(
        "Replace a text in a file.", "file_path* old_string* new_string* replace_all:boolean"
    ),
    "MultiEdit": Known("Make several replacements in a file.", "file_path* edits*:object[]"),
    "Write": Known("Write a file.", "file_path* content*"),
    "NotebookEdit": Known(
        "Edit a cell of a notebook.",
        "notebook_path* new_source* cell_id cell_number:number cell_type edit_mode",
    ),
    "Glob": Known("Find files by a pattern.", "pattern* path"),
    "Grep": Known(
        "Search the contents of files.",
        "pattern* path glob output_mode -A:number -B:number -C:number context:number "
        "-n:boolean -i:boolean type head_limit:number offset:number multiline:boolean",
    ),
    "LS": Known("List a folder.", "path* ignore:string[]"),
    "Task": Known(
        "Hand work to a subagent.",
        "description* prompt* subagent_type model run_in_background:boolean name team_name",
    ),
    "Agent": Known(
        "Hand work to a subagent.",
        "description* prompt* subagent_type model run_in_background:boolean name isolation",
    ),
    "TodoWrite": Known("Write the list of things to do.", "todos*:object[]"),
    "TaskCreate": Known("Add a task to the list.", "subject* description activeForm"),
    "TaskUpdate": Known("Change a task of the list.", "taskId* status subject owner"),
    "TaskGet": Known("Look at a task of the list.", "taskId*"),
    "TaskList": Known("Look at the list of tasks."),
    "TaskOutput": Known(
        "Read what a background task printed.", "task_id* block:boolean timeout:number"
    ),
    "TaskStop": Known("Stop a background task.", "task_id*"),
    "BashOutput": Known("Read what a background command printed.", "bash_id* filter"),
    "KillShell": Known("Stop a background command.", "shell_id*"),
    "KillBash": Known("Stop a background command.", "shell_id*"),
    "WebFetch": Known("Fetch a page and ask about it.", "url* prompt*"),
    "WebSearch": Known(
        "Search the web.", "query* allowed_domains:string[] blocked_domains:string[]"
    ),
    "Skill": Known("Use a skill.", "skill* args"),
    "AskUserQuestion": Known("Ask the person.", "questions*:object[]"),
    "ToolSearch": Known("Find tools that can be used.", "query* max_results:number"),
    "LSP": Known("Ask the language server.", "operation* filePath* line*:number character*:number"),
    "SendMessage": Known("Send a message to another agent."),
    "TeamCreate": Known("Found a team of agents.", "team_name* description agent_type"),
    "TeamDelete": Known("Dissolve the team of agents."),
    "CronCreate": Known("Have a prompt sent at times.", "cron* prompt* recurring:boolean"),
    "CronDelete": Known("Have a prompt no longer sent at times.", "id*"),
    "CronList": Known("List the prompts that are sent at times."),
    "ScheduleWakeup": Known("Go on later.", "delaySeconds*:number prompt* reason*"),
    "ListMcpResourcesTool": Known("List what servers of tools offer to read.", "server"),
    "ReadMcpResourceTool": Known("Read what a server of tools offers.", "server* uri*"),
    "EnterPlanMode": Known("Start to plan."),
    "ExitPlanMode": Known("Show the plan to the person.", "plan"),
}
_DROID: dict[str, Known] = {
    "Execute": Known("Run a shell command.", "command* timeout:number riskLevel"),
    "Read": Known("Read a file.", "file_path* offset:number limit:number"),
    "LS": Known("List a folder.", "directory_path ignorePatterns:string[]"),
    "Create": Known("Create a file.", "file_path* content*"),
    "Edit": Known("Replace a text in a file.", "file_path* old_str* new_str*"),
    "ApplyPatch": Known("Apply a patch.", "input*"),
    "Glob": Known("Find files by patterns.", "patterns*:string[] folder"),
    "Grep": Known("Search the contents of files.", "pattern* path output_mode"),
    "TodoWrite": Known("Write the list of things to do.", "todos*"),
    "WebSearch": Known("Search the web.", "query*"),
    "FetchUrl": Known("Fetch a page.", "url*"),
}
_CODEX: dict[str, Known] = {
    "shell": Known("Run a command.", "command*:string[] workdir timeout_ms:number"),
    "shell_command": Known("Run a shell command.", "command* workdir timeout_ms:number"),
    "exec_command": Known(
        "Run a shell command.", "cmd* workdir yield_time_ms:number max_output_tokens:number"
    ),
    "write_stdin": Known(
        "Write to a command that is running, and read what it prints.",
        "session_id*:number chars yield_time_ms:number max_output_tokens:number",
    ),
    "view_image": Known("Look at an image.", "path*"),
    "apply_patch": Known("Apply a patch.", "input*"),
    "update_plan": Known("Write the plan.", "plan*:object[] explanation"),
    "web_search": Known("Search the web.", "query queries:string[] type"),
    "tool_search": Known("Find tools that can be used.", "query* limit:number"),
    "exec": Known("Run a script that calls tools.", "input*"),
    "wait": Known(
        "Read what a running script printed.",
        "cell_id* yield_time_ms:number max_tokens:number",
    ),
    "list_mcp_resources": Known("List what servers of tools offer to read.", "server cursor"),
    "read_mcp_resource": Known("Read what a server of tools offers.", "server* uri*"),
}
_RECORDER: dict[str, Known] = {
    "repo.readFile": Known("Read a file of the repository.", "path*"),
    "apply_patch": Known("Create, change or delete files.", "ops*:object[]"),
    "run_cmd": Known("Run a command.", "cmd* args:string[] cwd"),
}
_COPILOT: dict[str, Known] = {
    "bash": Known("Run a shell command.", "command* description"),
    "read_bash": Known("Read what a running command printed.", "shellId* delay:number"),
    "stop_bash": Known("Stop a running command.", "shellId*"),
    "view": Known("Look at a file or a folder.", "path* view_range:number[]"),
    "create": Known("Create a file.", "path* file_text*"),
    "edit": Known("Replace a text in a file.", "path* old_str* new_str*"),
    "ask_user": Known("Ask the person.", "question* choices:string[]"),
    "report_intent": Known("Say what comes next.", "intent*"),
}
_GEMINI: dict[str, Known] = {
    "run_shell_command": Known("Run a shell command.", "command* description dir_path"),
    "read_file": Known("Read a file.", "file_path* offset:number limit:number"),
    "write_file": Known("Write a file.", "file_path* content*"),
    "replace": Known(
        "Replace a text in a file.",
        "file_path* old_string* new_string* instruction expected_replacements:number",
    ),
    "list_directory": Known("List a folder.", "dir_path* ignore:string[]"),
    "search_file_content": Known("Search the contents of files.", "pattern* dir_path include"),
    "glob": Known("Find files by a pattern.", "pattern* dir_path"),
    "google_web_search": Known("Search the web.", "query*"),
    "web_fetch": Known("Fetch pages and ask about them.", "prompt*"),
    "save_memory": Known("Remember a fact.", "fact*"),
    "write_todos": Known("Write the list of things to do.", "todos*:object[]"),
}
_OPENCODE: dict[str, Known] = {
    "bash": Known("Run a shell command.", "command* description workdir timeout:number"),
    "read": Known("Read a file.", "filePath* offset:number limit:number"),
    "edit": Known(
        "Replace a text in a file.", "filePath* oldString* newString* replaceAll:boolean"
    ),
    "write": Known("Write a file.", "filePath* content*"),
    "glob": Known("Find files by a pattern.", "pattern* path"),
    "grep": Known("Search the contents of files.", "pattern* path include"),
    "list": Known("List a folder.", "path ignore:string[]"),
    "task": Known("Hand work to a subagent.", "description* prompt* subagent_type*"),
    "todowrite": Known("Write the list of things to do.", "todos*:object[]"),
    "todoread": Known("Read the list of things to do."),
    "webfetch": Known("Fetch a page.", "url* format timeout:number"),
}
OF_ANY_AGENT: dict[str, Known] = {
    "ask_user": Known("Ask the person.", "question*"),
    "report_to_user": Known("Tell the person something.", "message*"),
}
"""What a person is there for, whatever the agent."""
TABLES: dict[str, dict[str, Known]] = {
    "claude-code": _CLAUDE_CODE,
    "codex": _CODEX,
    "copilot-cli": _COPILOT,
    "droid": _DROID,
    "gemini-cli": _GEMINI,
    "opencode": _OPENCODE,
    "recorder": _RECORDER,
}
"""By agent, as a session's ``tool`` names it."""
