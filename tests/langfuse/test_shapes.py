"""The stand-in, and any real server, answer our requests in the shapes that were recorded."""

from __future__ import annotations

import pytest

from tests.langfuse.recorded import MODES, ask, opened, recorded, shapes
from tests.langfuse.scenario import client_of
from tests.langfuse.server import LangfuseServer, Mode
from tests.langfuse.sites import ADDRESS, Site, open_site


@pytest.mark.parametrize("mode", ["events_only", "dual", "legacy"])
def test_the_stand_in_answers_as_the_real_server_of_its_mode(mode: Mode) -> None:
    with LangfuseServer(mode) as server, client_of(server) as client:
        site = Site(client, server)
        site.fill()
        keys = f"{server.public_key}:{server.secret_key}"
        with opened(server.host.replace("//", f"//{keys}@")) as http:
            answers = ask(http, site.session, patience=0)
    assert shapes(answers) == shapes(recorded(mode))


@pytest.mark.skipif(not ADDRESS, reason="DEBRIEF_TEST_LANGFUSE names no server")
def test_a_real_server_answers_as_it_did_when_it_was_recorded() -> None:
    with open_site("real") as site, opened(ADDRESS) as http:
        answers = shapes(ask(http, site.session))
    assert answers in [shapes(recorded(mode)) for mode in MODES]
