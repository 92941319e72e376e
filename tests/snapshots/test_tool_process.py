"""The tool that a plan is carried out with: missing, or interrupted."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from debrief.cli.capture import tool_command
from debrief.errors import ConfigurationError


def test_a_tool_that_is_not_there_is_named_with_the_setting() -> None:
    with pytest.raises(ConfigurationError, match=r"is not installed.*DEBRIEF_DROID_COMMAND"):
        tool_command("droid", "/nowhere/droid --fast")
    with pytest.raises(ConfigurationError, match="is no command"):
        tool_command("claude-code", "claude 'unclosed")


def test_an_interruption_typed_for_the_tool_does_not_end_us(tmp_path: Path) -> None:
    """The terminal sends it to both; the tool decides what it means."""
    program = textwrap.dedent(
        """
        import os, sys
        from pathlib import Path
        from debrief.cli.capture import run_tool
        child = "import os, signal, time; os.kill(os.getppid(), signal.SIGINT); time.sleep(0.2)"
        print(run_tool([sys.executable, "-c", child], Path("."), {}))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "0\n")
