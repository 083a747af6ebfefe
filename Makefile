# `make run` and `make test` are all a newcomer needs; each works on a fresh machine.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PRODUCT := sasweb orders orchestration sandbox
SOURCES := $(PRODUCT) gunicorn.conf.py tests bench deploy drill $(shell git ls-files "docs/*.py")
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# compiled modules are kept, whatever is usual here: tests start hundreds of Pythons
export PYTHONDONTWRITEBYTECODE =

.PHONY: run test quick check hooks house check-machines image-check deploy-check alerts-check alerts-drill slow pattern bench goodput poison fair \
	flat flows locked scale waits ended size gate idle journeys pages pictures polls drill trace simulate interleave format messages lock sbom licences browser clean

run: $(VENV)/.run  ## everything, on this machine, until Ctrl-C
	@exec $(BIN)/python -m sasweb.stack --demo

# four processes on two cores: a test of whole processes mostly waits
PYTEST := $(BIN)/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder

test: $(VENV)/.dev browser  ## every test: real Postgres, Redis, processes and browser
	$(PYTEST) $(ARGS)

quick: $(VENV)/.dev  ## the unit tests and the quicker half of the integration tests: three minutes
	$(PYTEST) --quick tests/unit tests/integration $(ARGS)

# One target for each check, which the commit hooks call as well (.pre-commit-config.yaml), there with the
# changed files as CHANGED. Some tools look at the whole tree in any case.
CHECKS := check-format check-lint check-idioms check-types check-imports check-templates check-migrations check-settings
.PHONY: $(CHECKS)
check: $(CHECKS)  ## format, lint, types, layers, templates, Django's checks, missing migrations
$(CHECKS): export SECRET_KEY = only for checking; nothing is signed with it
$(CHECKS): $(VENV)/.dev

check-format:
	$(BIN)/ruff format --check --force-exclude $(or $(CHANGED),$(SOURCES) manage.py)
check-lint:
	$(BIN)/ruff check --force-exclude $(or $(CHANGED),$(SOURCES) manage.py)
check-idioms:
	$(BIN)/django-upgrade --target-version 5.2 $(or $(CHANGED),$$(git ls-files '*.py' ':!*/migrations/*'))
check-types:
	$(BIN)/mypy $(PRODUCT) docs
check-imports:
	$(BIN)/lint-imports
check-templates:
	$(BIN)/djlint $(or $(CHANGED),templates) --lint --quiet
check-migrations:
	$(BIN)/python -W ignore manage.py makemigrations --check --dry-run  # it warns that no database is there
check-settings:
	$(BIN)/python manage.py check --fail-level WARNING
	HTTPS=1 ALLOWED_HOSTS=example.org SECRET_KEY=$$($(BIN)/python -c 'import secrets; print(secrets.token_urlsafe(64))') \
		$(BIN)/python manage.py check --deploy --fail-level WARNING

hooks: $(VENV)/.dev  ## run the checks on the changed files at each commit
	$(BIN)/pre-commit install

house: $(VENV)/.dev  ## rooms, layers, circles of imports, lines: the layout in numbers, and its limits
	$(BIN)/python -m tests.house $(ARGS)

check-machines: $(VENV)/.dev  ## the first command as newcomers run it: other users, homes, outputs, Pythons (as root)
	$(BIN)/python -m tests.machines $(ARGS)

idle: $(VENV)/.run  ## memory and processor that `make run` takes when idle
	$(BIN)/python -m bench.idle $(ARGS)

bench: $(VENV)/.run  ## this engine beside its peers, in one run
	$(BIN)/python -m bench $(ARGS)

goodput: $(VENV)/.run  ## what gets done while a partner fails, with a circuit breaker and without
	$(BIN)/python -m bench.goodput $(ARGS)

poison: $(VENV)/.run  ## what a few requests that can never be done cost the others
	$(BIN)/python -m bench.poison $(ARGS)

locked: $(VENV)/.run  ## what a row that a stranger has locked costs all that does not need it
	$(BIN)/python -m bench.locked $(ARGS)

fair: $(VENV)/.run  ## ten tasks of one application behind 50,000 of another
	$(BIN)/python -m bench.fair $(ARGS)

flat: $(VENV)/.run  ## what a task costs with more tasks, schedulers, agents, and beside an open transaction
	$(BIN)/python -m bench.flat $(ARGS)

deploy-check: $(VENV)/.dev  ## have kubectl, systemd-analyze and nginx check the manifests, units and configuration
	$(BIN)/python -m deploy.check $(ARGS)

image-check: $(VENV)/.dev  ## build the image, run every service of compose from it, place orders (as root, on Debian)
	$(BIN)/python -m deploy.image_check $(ARGS)

slow: $(VENV)/.dev  ## clients that send and read slowly, behind the proxy and without it (needs nginx)
	$(BIN)/python -m bench.slow $(ARGS)

polls: $(VENV)/.run  ## customers watch their orders live while others are placed
	$(BIN)/python -m bench.polls $(ARGS)

pages: $(VENV)/.dev  ## every page of the dashboard at a million tasks, to its first byte
	$(BIN)/python -m bench.pages $(ARGS)

scale: $(VENV)/.dev  ## what a claim and a sweep cost beside a million tasks that wait, some of them held
	$(BIN)/python -m bench.scale $(ARGS)

size: $(VENV)/.run  ## what a task and a step cost: processor, rows, bytes, WAL; for `manage.py size`
	$(BIN)/python -m bench.size $(ARGS)

gate: $(VENV)/.run  ## where one agent's gate saturates, simulated with many schedulers
	$(BIN)/python -m bench.gate $(ARGS)

flows: $(VENV)/.run  ## orders that wait for a bank, on this engine and on DBOS
	$(BIN)/python -m bench.flows $(ARGS)

waits: $(VENV)/.run  ## plain tasks beside payments that wait, and while the service is asked about 10,000 of them
	$(BIN)/python -m bench.waits $(ARGS)

ended: $(VENV)/.dev  ## what a million ended tasks cost: claims while old ones are removed, audits, bytes
	$(BIN)/python -m bench.ended $(ARGS)

journeys: $(VENV)/.dev browser  ## what people come for, in a real browser, with a stopwatch and a count of clicks
	$(BIN)/python -m tests.journeys $(ARGS)

pictures: $(VENV)/.dev browser  ## every page in both themes, wide and narrow: barriers, and docs/images
	$(BIN)/python -m tests.pictures $(ARGS)

pattern: $(VENV)/.dev browser  ## each requirement of the pattern: its tests, run, and a verdict; ARGS=--mutations breaks its lines
	$(BIN)/python -m tests.pattern $(ARGS)

alerts-check:  ## the rules for Prometheus, and each alert in a case of its own; needs promtool (Debian: prometheus)
	promtool check rules deploy/prometheus/*.rules.yaml
	promtool test rules deploy/prometheus/tests/*.yaml

alerts-drill: $(VENV)/.dev  ## each alert fires on a stack whose condition is provoked, watched by a real Prometheus
	$(BIN)/python -m drill.alerts

drill: $(VENV)/.dev browser  ## real faults on a stack of its own, and a verdict on each; DRILL=full for all
	$(BIN)/python -m drill $(ARGS)

trace: $(VENV)/.dev  ## one order on a stack of its own, and its trace as a collector gets it
	$(BIN)/python -m drill.trace

simulate: $(VENV)/.dev  ## any number of simulated runs: make simulate ARGS='--seeds 100000 --start 2000'
	$(BIN)/python -m tests.simulation $(ARGS)

interleave: $(VENV)/.dev  ## the product's functions in threads that a seed switches: make interleave ARGS='--seeds 1000'
	$(BIN)/python -m tests.interleave $(ARGS)

format: $(VENV)/.dev
	$(BIN)/ruff format $(SOURCES) manage.py
	$(BIN)/ruff check --fix $(SOURCES) manage.py

messages: $(VENV)/.dev  ## collect what the shop says, and compile its translations
	SECRET_KEY=x $(BIN)/python -m tests.support.translations

lock: $(VENV)/.dev  ## each package that requirements.txt leads to, with its version and hashes
	$(BIN)/uv pip compile requirements.txt --output-file requirements.lock --universal --python-version 3.11 \
		--generate-hashes --no-annotate --no-header --no-emit-index-url --quiet

# by uvx, apart from .venv: with what the SBOM's writer needs installed, each Python that loads jsonschema starts 0.9 s later
sbom: $(VENV)/locked  ## sbom.cdx.json: what is installed from requirements.lock, as CycloneDX
	$(BIN)/uvx --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py environment $(VENV)/locked --pyproject pyproject.toml --output-reproducible \
		--output-format JSON --output-file sbom.cdx.json

licences: $(VENV)/locked  ## the licences of what is installed; an unexpected one fails (pyproject.toml lists them)
	$(BIN)/pip-licenses --python $(VENV)/locked/bin/python

clean:  ## forget the demo's data; the environment stays
	@$(PYTHON) -m sasweb.stack.clean

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements.txt requirements-demo.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --requirement requirements-demo.txt
	@touch $@

$(VENV)/.dev: requirements.txt requirements-demo.txt requirements-dev.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --requirement requirements-dev.txt
	@touch $@ $(VENV)/.run

$(VENV)/locked: requirements.lock $(VENV)/.dev
	rm -rf $@
	$(BIN)/python -m venv --without-pip $@
	$(BIN)/python -m pip --python $@/bin/python install --quiet --no-deps --require-hashes --requirement requirements.lock
	@touch $@

# The tests drive a Chromium, shift clocks with libfaketime and go through a PgBouncer; as root on Debian all
# are installed: of Chromium the program without windows, which takes a third less processor time.
TESTERS := chromium-headless-shell libfaketime pgbouncer
AT_HAND = ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 && PATH=$$PATH:/usr/sbin command -v pgbouncer >/dev/null
browser:
	@{ command -v chromium-headless-shell >/dev/null && $(AT_HAND); } \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
			&& apt-get update -qq && apt-get install -y -qq $(TESTERS) >/dev/null; } \
		|| { $(BIN)/python -c 'from tests.support.chromium import program; program()' 2>/dev/null && $(AT_HAND); } \
		|| { echo "The tests need Chromium (or CHROMIUM=/path/of/one), libfaketime and PgBouncer: sudo apt-get install $(TESTERS)"; exit 1; }
