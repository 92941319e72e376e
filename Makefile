# Each target does all its own set-up, in .venv, from locks with hashes. Python 3.11+ and pip suffice.
PYTHON ?= python3
BIN := .venv/bin
LOCKS := deploy/locks
UV := VIRTUAL_ENV=.venv $(BIN)/uv
export PYTHONUTF8 = 1
export LITELLM_LOCAL_MODEL_COST_MAP = True
# Some images set it, and then every process compiles all that it imports anew: half of its time.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo pictures test check pytest test-shared test-model test-programs former-lake test-trainers test-harbor test-pages test-proxy test-langfuse wheel-test ui vscode \
	vscode-check test-vscode locks clean

demo: .venv/.run
	@$(BIN)/debrief demo

# The UI on the demo's lake; another port: make ui PORT=3100.
ui: .venv/.run
	@exec $(BIN)/debrief ui --demo $(if $(PORT),--port $(PORT))

# Both at once: tests wait for servers and processes half of their time.
test: .venv/.test
	@echo 'Checks and tests, side by side: several minutes; the first failure of each ends it.'
	@$(MAKE) --no-print-directory --jobs 3 --output-sync=line check pytest vscode-check

pytest: .venv/.test
	$(BIN)/python -m pytest -n 3 --hypothesis-seed=0

# Over a folder of real sessions beside the checkout, ../shared/sessions: the golden run, and a lake
# that is made to forget.
test-shared: .venv/.test
	$(BIN)/python -m pytest -m shared tests/goldens tests/pipelines

# The project's own judges by the model that they name: takes OPENROUTER_API_KEY, costs a cent.
test-model: .venv/.test
	@DEBRIEF_TEST_OPENROUTER_KEY="$$OPENROUTER_API_KEY" $(BIN)/python -m pytest -n0 tests/judging/real_model.py

# The real coding agents of npm against a scripted model: takes npm, minutes and 3 GB.
PROGRAMS ?= /tmp/debrief-programs
test-programs: .venv/.run
	@command -v npm >/dev/null || { echo "npm is needed: install Node.js, which brings it"; exit 1; }
	@$(BIN)/python -m tools.programs "$(PROGRAMS)" $(OPTIONS)

# A small lake by an earlier version, for the tests of upgrades: takes a registry and two minutes.
FORMER ?= /tmp/debrief-former
former-lake: .venv/.test
	@test -n "$(COMMIT)" || { echo "COMMIT names no version, such as the last one that was released"; exit 1; }
	@$(BIN)/python -m tools.former_lake "$(COMMIT)" "$(FORMER)"

# Every page in Chromium: accessibility, both colour schemes, two widths, a story by keys. Takes
# npm, Chromium and a minute.
PAGES ?= /tmp/debrief-pages
test-pages: .venv/.test
	@$(BIN)/python -m tests.view.browser "$(PAGES)"

# Two people through the login proxy of deploy/: takes caddy and half a minute.
test-proxy: .venv/.test
	@$(BIN)/python -m tests.door.proxy

# The recipes of docs/training-sets.md with the real trainers, and what they train on, on tiny random
# models: takes minutes and 3 GB. pip has to find PyTorch's build without CUDA.
TRAINERS ?= /tmp/debrief-trainers
test-trainers: .venv/.test
	@$(BIN)/python -m tools.trainers "$(TRAINERS)" $(OPTIONS)

# Tasks that debrief tasks wrote, by Harbor's own models and linter: takes a Python of 3.12 or newer
# (HARBOR_PYTHON) and a minute. No container is built.
HARBOR_IN ?= /tmp/debrief-harbor
HARBOR_PYTHON ?= python3.12
test-harbor: .venv/.test
	@test -n "$(TASKS)" || { echo "TASKS names no folder: make one with debrief tasks --to"; exit 1; }
	@$(BIN)/python -m tools.harbor_tasks "$(HARBOR_IN)" "$(TASKS)" --python "$(HARBOR_PYTHON)"

# The docs' pictures, from the demo: takes npm, Chromium (CHROMIUM names one) and a minute or two.
PICTURES_IN ?= /tmp/debrief-pictures
pictures: .venv/.run
	@$(BIN)/python -m tools.pictures "$(PICTURES_IN)"

# The same stories on the stand-in and on a real server, whose project keeps what they send:
# make test-langfuse DEBRIEF_TEST_LANGFUSE=http://<public key>:<secret key>@<host>
test-langfuse: .venv/.test
	@test -n "$(DEBRIEF_TEST_LANGFUSE)" || { echo "DEBRIEF_TEST_LANGFUSE names no server"; exit 1; }
	DEBRIEF_TEST_LANGFUSE="$(DEBRIEF_TEST_LANGFUSE)" \
		$(BIN)/pytest -n 0 tests/langfuse/test_both_servers.py \
		tests/langfuse/test_shapes.py tests/langfuse/test_writing.py

# The editor's extension, as vscode/session-recorder.vsix.
vscode: vscode/node_modules/.package-lock.json
	@cd vscode && npm run --silent check && npm run --silent package

vscode/node_modules/.package-lock.json: vscode/package-lock.json
	@command -v npm >/dev/null || { echo "npm is needed: install Node.js 20 or newer"; exit 1; }
	@cd vscode && npm ci --silent && touch node_modules/.package-lock.json

# Its types and unit tests. Where there is no Node.js, or npm reaches no registry, this says so.
vscode-check:
	@if ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null; then \
		echo "vscode: not tested, there is no Node.js 20 or newer"; \
	elif test ! -e vscode/node_modules/.package-lock.json && ! (cd vscode && \
		npm ci --silent --fetch-retries=0 --fetch-timeout=20000 >/dev/null 2>&1); then \
		rm -rf vscode/node_modules; echo "vscode: not tested, npm cannot install what its tests take"; \
	else cd vscode && npm run --silent check && npm test --silent; fi

# The extension in a real editor: takes npm, Chromium (DEBRIEF_CHROMIUM), minutes and 1 GB.
EDITOR_PROGRAMS ?= /tmp/debrief-editor
test-vscode: .venv/.run vscode
	@vscode/test/editor/install.sh "$(EDITOR_PROGRAMS)"
	@cd vscode && node build.mjs --editor && \
		node out/editor/story.js "$(CURDIR)/$(BIN)/debrief" "$(EDITOR_PROGRAMS)" \
		"$(CURDIR)/vscode/session-recorder.vsix" $(PICTURES)

check: .venv/.test
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports
	$(BIN)/mypy

# The built wheels alone, in an empty environment and an empty folder, run the demo.
wheel-test: .venv/.run
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	for source in recorder .; do \
		$(UV) build --quiet --wheel --no-build-isolation --out-dir "$$folder" $$source || exit 1; \
	done && \
	$(PYTHON) -m venv --without-pip "$$folder/venv" && \
	VIRTUAL_ENV="$$folder/venv" $(BIN)/uv pip install --quiet --constraints $(LOCKS)/run.lock "$$folder"/*.whl && \
	cd "$$folder" && DEBRIEF_HOME="$$folder/home" venv/bin/debrief demo

.venv/bin/uv: $(LOCKS)/tools.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12"; exit 1; }
	@echo 'Setting up in .venv, once (1 of 3): a virtual environment, and uv to install with'
	@$(PYTHON) -m venv --without-pip .venv
	@$(PYTHON) -m pip --python .venv/bin/python install --quiet --disable-pip-version-check \
		--require-hashes -r $(LOCKS)/tools.lock
	@touch $@

.venv/.run: $(LOCKS)/run.lock pyproject.toml recorder/pyproject.toml | .venv/bin/uv
	@echo 'Setting up (2 of 3): packages of $(LOCKS)/run.lock, about a minute with a good connection'
	@if ! test -e .venv/.test; then $(FETCH) --compile-bytecode --require-hashes -r $(LOCKS)/run.lock; fi
	@echo 'Setting up (3 of 3): Debrief itself'
	@$(UV) pip install --quiet --no-deps --no-build-isolation -e recorder -e .
	@touch $@

.venv/.test: $(LOCKS)/test.lock pyproject.toml recorder/pyproject.toml | .venv/bin/uv
	@echo 'Setting up (2 of 3): packages of $(LOCKS)/test.lock, a minute or two'
	@$(FETCH) --require-hashes -r $(LOCKS)/test.lock
	@echo 'Setting up (3 of 3): Debrief itself'
	@$(UV) pip install --quiet --no-deps --no-build-isolation -e recorder -e .
	@touch $@ .venv/.run

# Says every ten seconds that it goes on: fetching takes most of the time.
FETCH = s=0; while sleep 1; do s=$$((s + 1)); [ $$((s % 10)) -ne 0 ] || echo "  fetching and installing: $$s s"; done & \
	ticker=$$!; trap 'kill $$ticker' EXIT; $(UV) pip install --quiet
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	--no-annotate --no-emit-package debrief-recorder --no-emit-index-url --no-emit-find-links --exclude-newer "$$(date -d '7 days ago' +%F)"

locks: .venv/bin/uv
	echo uv | $(COMPILE) - -o $(LOCKS)/tools.lock
	$(COMPILE) --extra build --extra team --extra test pyproject.toml -o $(LOCKS)/test.lock
	$(COMPILE) --extra build --extra sandbox -c $(LOCKS)/test.lock pyproject.toml -o $(LOCKS)/run.lock
	$(COMPILE) --extra build --extra team -c $(LOCKS)/test.lock pyproject.toml -o $(LOCKS)/team.lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis vscode/node_modules vscode/out
