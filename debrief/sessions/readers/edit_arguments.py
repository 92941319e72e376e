"""What tools call the arguments of an edit: the file, its text, what was there and what comes."""

from __future__ import annotations

PATHS = (
    "file_path",
    "filePath",
    "notebook_path",
    "target_file",
    "targetFile",
    "relativeWorkspacePath",
    "relative_workspace_path",
    "target_notebook",
    "absolute_path",
    "absolutePath",
    "path",
    "filename",
    "directory_path",
    "dir_path",
    "target_directory",
    "uri",
)
"""A file or a folder."""
WHOLE = ("content", "contents", "file_text")
"""All that a file holds then."""
OLD = ("old_string", "old_str", "oldString", "oldText", "old_text")
"""What is replaced."""
NEW = ("new_string", "new_str", "newString", "newText", "new_text")
"""What comes in its place."""
