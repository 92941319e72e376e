"""Names and notations of model providers and client libraries, as tables.

OpenAI puts calls beside a message's content, Anthropic and Bedrock into it, Gemini into ``parts``
without a type, OpenTelemetry into typed ``parts``, and the Responses API makes items of them that
belong to no message. Their keys hardly overlap, so one table of each reads them all.

Values are JSON, some of it as text, some of it binary data written as text.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import orjson

from debrief.sessions.readers.documents import compact_json, mend

Json = dict[str, Any]
Role = Literal["system", "user", "assistant", "tool"]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ROLES: dict[str, Role] = {
    **dict.fromkeys(_words("system developer SystemMessage SystemMessageChunk"), "system"),
    **dict.fromkeys(_words("user human HumanMessage HumanMessageChunk"), "user"),
    **dict.fromkeys(_words("assistant ai model chatbot tool-call"), "assistant"),
    **dict.fromkeys(_words("AIMessage AIMessageChunk"), "assistant"),
    **dict.fromkeys(_words("tool function ToolMessage FunctionMessage tool-response"), "tool"),
}
TYPES_WITH_A_ROLE = _words("human ai system tool")
"""Of LangChain's own form, which has no role."""

TYPES_OF_CALLS = _words(
    "tool_use server_tool_use mcp_tool_use tool-call tool_call toolCall server_tool_call "
    "function_call custom_tool_call mcp_call"
)
TYPES_OF_BUILT_IN_CALLS = _words(
    "web_search_call file_search_call computer_call code_interpreter_call local_shell_call "
    "shell_call apply_patch_call tool_search_call"
)
TYPES_OF_RESULTS = _words(
    "tool_result tool-result tool_call_response server_tool_call_response tool-error "
    "function_result"
)
ENDINGS_OF_RESULTS = ("_tool_result", "_call_output")
TYPES_OF_THOUGHTS = _words(
    "thinking redacted_thinking reasoning reasoning_content reasoning_text thought"
)
TYPES_OF_PICTURES = _words("image image_url input_image image_file image-url")
TYPES_OF_BINARIES = _words("blob file uri file_data input_audio audio input_file video document")

WRAPPED_CALLS = _words("functionCall function_call toolUse toolRequest tool_call")
WRAPPED_RESULTS = _words(
    "functionResponse function_response toolResult toolResponse tool_call_result"
)
WRAPPED_DATA = _words("inlineData inline_data fileData file_data media")
BLOCKS = _words("text toolUse toolResult reasoningContent")
"""Bedrock's parts, each of which is the only key of an object."""

CONTENTS = _words("content parts contents blocks")
CALLS = _words("tool_calls toolCalls invalid_tool_calls")
IN_MESSAGES = _words("function_call additional_kwargs refusal tool_call_id")
EVENT = "gen_ai.event.content"
IDS = _words("call_id toolCallId tool_call_id toolUseId tool_use_id id ref")
NAMES = _words("name toolName tool_name")
GIVEN = _words("arguments args input tool_kwargs action operation")
CAME_BACK = _words("output result response content value error")
MIME_TYPES = _words("mimeType mime_type contentType")
ERRORS = _words("error failed tool-error error-text error-json")
AROUND_RESULTS = {"content", "isError", "structuredContent", "_meta", "meta", "is_error"}

AROUND_REQUESTS = _words("messages contents input prompt new_message message")
REQUESTS_IN_WORDS = _words("input prompt contents")
"""Of those, the ones that may be a person's words as they are."""
AROUND_ANSWERS = _words("choices candidates generations output messages message response content")
ALTERNATIVES = _words("choices candidates")
"""Lists of answers of which the first is the one that counts."""
INSTRUCTIONS = _words("system instructions system_instruction systemInstruction")
REQUESTS = _words("prompt input query question messages content text message")
BESIDE_REQUESTS = _words("tools functions tool_choice function_call toolChoice model")
"""What is beside the words in a request, and is none."""
ANSWERS = _words("content text output answer response result completion message")

TOOL_LISTS = _words("tools functions")
TOOL_ATTRIBUTES = _words("gen_ai.tool.definitions ai.prompt.tools llm.tools llm.request.functions")
NUMBERED_TOOLS = re.compile(r"llm\.(?:tools|request\.functions)\.(\d{1,6})\.(.+)")
TOOL_MARKS = _words("gen_ai.tool ai.prompt.tools llm.tools llm.request.functions function_tools")
IN_TOOLS = _words(
    "description parameters inputSchema input_schema parameters_json_schema function "
    "functionDeclarations function_declarations toolSpec"
)
SCHEMAS = _words("parameters input_schema inputSchema args_schema")

OBSERVED_IDS = _words(
    "gen_ai.tool.call.id ai.toolCall.id tool_call.id tool_call_id toolCallId tool_use_id"
)
OBSERVED_NAMES = _words("gen_ai.tool.name ai.toolCall.name tool.name tool_name")
OBSERVED_MARKS = _words("tool. tool_ toolCall")
TOKENS = {
    "input": _words("input input_tokens prompt_tokens"),
    "output": _words("output output_tokens completion_tokens"),
    "cache_write": _words("cache_creation_input_tokens input_cache_creation"),
    "cache_read": _words("cache_read_input_tokens input_cached_tokens input_cache_read"),
}

_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)[\w.+;=-]*;base64,[A-Za-z0-9+/=_%-]*")
_MEDIA = re.compile(r"@@@langfuseMedia:type=([^|@]+)\|[^@]*@@@")


def decoded(value: object) -> Any:
    """Return what a text of a JSON list or object holds; any other value as it is.

    Servers give what was traced as text, and some keep a text of JSON as JSON once more.
    """
    if not isinstance(value, str):
        return value
    text = value.strip() if value[:1].isspace() else value
    if not text.startswith(("[", "{", '"')):
        return value
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = _leniently(text)
    if isinstance(found, str) and found.lstrip()[:1] in ("[", "{"):
        found = decoded(found)
    return found if isinstance(found, dict | list) else value


def _leniently(text: str) -> Any:
    """Decode what Python writes and JSON does not allow: ``NaN``, lone surrogates."""
    try:
        return mend(json.loads(text, strict=False))
    except (ValueError, RecursionError):
        return None


def plain(value: object) -> str:
    """Return any value as text: a text as it is, another as JSON, nothing as an empty text."""
    if value is None:
        return ""
    return without_binaries(value if isinstance(value, str) else compact_json(value))


def without_binaries(text: str) -> str:
    """Return ``text`` with the kind of each picture or recording in place of its data.

    >>> without_binaries("see data:image/png;base64,iVBORw0KGgo= here")
    'see [image/png] here'
    """
    if ";base64," in text:
        text = _DATA.sub(r"[\1]", text)
    return _MEDIA.sub(r"[\1]", text) if "@@@langfuseMedia:" in text else text


def arguments_of(value: object) -> str:
    """Return a call's arguments as compact JSON text of an object; what is none stands under
    ``input``."""
    found = decoded(value)
    if not isinstance(found, dict):
        found = {} if found is None or found == "" else {"input": found}
    return without_binaries(compact_json(found))


def first_of(item: dict[str, Any], *keys: str) -> object:
    """Return what the first of ``keys`` that is not null holds."""
    return next((item[key] for key in keys if item.get(key) is not None), None)
