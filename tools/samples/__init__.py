"""The generator of the sample sessions: ``python -m tools.samples.build [FOLDER]``.

Nothing was recorded: three made-up code bases and 36 made-up sessions are written down as
scripts (``stories/``), and ``build`` turns them into the very files that Claude Code and Factory
droid would have left behind. The result is committed in ``debrief/samples/data``.
"""
