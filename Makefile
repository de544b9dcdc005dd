# Three commands: `make lab`, `make test` and `make quick`. They install what they need on the first call and nothing on the next.
PYTHON ?= python3
BIN := .venv/bin
PINS := pyproject.toml requirements.lock
# A file is one worker's, and files are taken in their order: what takes long is not left for the end.
SIDE_BY_SIDE := pytest -n 2 --dist loadfile --no-loadscope-reorder
# Without plugins that take a second of every session and have no quick test.
QUICK := -m "not slow" -p no:nbval -p no:anyio --durations 10 tests
CODE := helpers tests tools book upstream hatch_build.py

# A reader runs and edits copies, which git does not see: what JupyterLab saves changes nothing of the clone.
lab: .venv/lab
	@$(BIN)/clinic notebooks my_notebooks --open

# Of the notebooks, eight and those that have changed since all have passed: see tools/changed_pages.py. Of the recorded
# examinations, the fewest are run that have every kind of run, and the others replayed: see tests/replayed.py.
test: export EXAMINATIONS = cover
test: lint types
	pages=$$($(BIN)/python tools/changed_pages.py) \
	  && $(BIN)/$(SIDE_BY_SIDE) -m "not thorough" --durations 10 --nbval tests $$pages

# All notebooks. The state that has passed is the one from before the run: they may be edited while it takes its minutes.
pages: .venv/test
	$(BIN)/python tools/changed_pages.py --state > .venv/pages_passed.txt
	$(BIN)/$(SIDE_BY_SIDE) --durations 10 --nbval notebooks
	cp .venv/pages_passed.txt tests/pages_passed.txt

# Everything: also the notebooks and the cases that `make test` leaves out, since others test the same code.
# No examination is replayed.
nightly: export EXAMINATIONS = live
nightly: lint types pages orbax
	$(BIN)/$(SIDE_BY_SIDE) --durations 10 tests

# After a change of the observer: runs the programs whose recorded runs are out of date, and records them again. What asks for
# other runs than before fails the first time, and is recorded by the second. A second call goes on where one was stopped.
recordings: .venv/test
	$(BIN)/python tools/recordings.py
	EXAMINATIONS=record $(BIN)/$(SIDE_BY_SIDE) -m replayed tests || EXAMINATIONS=record $(BIN)/$(SIDE_BY_SIDE) -m replayed --lf tests
	for set in read aside; do $(BIN)/python tools/score_folder.py tests/programs/$$set --record --jobs 2; done

# How much of the package the tests run that start no kernel and no TensorFlow, and the replayed examinations.
coverage: .venv/test
	$(BIN)/coverage run -m pytest $(QUICK)
	$(BIN)/coverage report --sort=cover

# An answer in less than a minute: style, types, the laws with their mutations, and all tests that need no kernel and no TensorFlow.
# Compiled files are kept, whatever the environment says: each worker would compile the assertions of all tests, which takes 5 s.
quick quick-%: export PYTHONDONTWRITEBYTECODE =
quick: lint types
	$(BIN)/$(SIDE_BY_SIDE) $(QUICK)

lint: .venv/test
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/python tools/lint_prose.py

types: .venv/test
	$(BIN)/mypy

# The quick tests on another Python, such as quick-3.13, in an environment for that Python alone.
quick-%: .venv-%/test
	.venv-$*/bin/$(SIDE_BY_SIDE) $(QUICK)

.PRECIOUS: .venv-%/test
.venv-%/test: $(PINS)
	@PYENV_VERSION=$* tools/new_environment python$* .venv-$*
	@$(call install,.venv-$*,-c requirements.lock -e '.[test]')
	touch $@

# The notebooks as pages that need no kernel and no network: site/html/index.html. All pages are written anew,
# since the list of pages stands beside each of them; only notebooks that changed are read again.
book: .venv/book
	rm -rf site/html
	$(BIN)/sphinx-build -qW --keep-going -d site/read book site/html

EXTRAS_lab := [notebooks,fast,wheel]
EXTRAS_book := [notebooks,fast,book]
EXTRAS_test := [test]

# $(call install,ENVIRONMENT,WHAT): uv takes seconds where pip takes a minute and more; where only pip's own settings name an index,
# pip does it. What is imported is byte-compiled by all cores: importing TensorFlow takes more than twice as long without.
PIP := pip --disable-pip-version-check install --root-user-action=ignore
install = echo "Installing TensorFlow and JupyterLab into $(1), once: about 2.5 GB on disk, which takes minutes." \
  && $(1)/bin/$(PIP) -q --no-compile uv \
  && { $(1)/bin/uv pip install --python $(1)/bin/python $(2) || $(1)/bin/$(PIP) --no-compile $(2); } \
  && echo "Compiling what was installed." \
  && $(1)/bin/python -W ignore -m compileall -qq -j 0 -x '/(tests?|pip|setuptools)/' $(1)/lib helpers

# One environment, with more in it for some.
.venv/lab .venv/book .venv/test: $(PINS) binder/overrides.json
	@tools/new_environment "$(PYTHON)" .venv
	@$(call install,.venv,-c requirements.lock -e '.$(EXTRAS_$(@F))')
	@mkdir -p .venv/share/jupyter/lab/settings
	@cp binder/overrides.json .venv/share/jupyter/lab/settings/overrides.json
	@$(BIN)/python -m strategy_clinic.forkserver.kernelspec > /dev/null
	@touch .venv/lab $@

# After editing the ranges in pyproject.toml. The lock is universal and holds no address of a registry.
COMPILE := $(BIN)/uv pip compile -q pyproject.toml --universal --python-version 3.11 --no-header --no-annotate
lock: .venv/test
	$(COMPILE) --extra dev -o requirements.lock
	$(COMPILE) --extra notebooks -c requirements.lock -o binder/requirements.txt
	$(BIN)/python -m strategy_clinic.base.project

# The oldest supported versions, in an environment of their own.
oldest: tests/oldest.txt
	@tools/new_environment "$(PYTHON)" .venv-oldest
	$(call install,.venv-oldest,-c tests/oldest.txt -e '.[test]')
	.venv-oldest/bin/python -m strategy_clinic.forkserver.kernelspec
	.venv-oldest/bin/pytest tests -m "not browser"
	.venv-oldest/bin/pytest --nbval notebooks

# What Colab has, in an environment of its own in which the clinic is not installed: notebooks fetch it themselves.
# Eight notebooks are run whole: of each kind one in a cold kernel, the others forked from one process that has TensorFlow.
# `make colab COLAB=` runs all of them.
COLAB = -m "not thorough"
colab: .venv-colab/test
	.venv-colab/bin/python -m pytest -n 2 --durations 10 --noconftest $(COLAB) tests/test_colab.py tests/test_tf_internals.py
	.venv-colab/bin/python -m pytest --noconftest --nbval notebooks/fm25_*.ipynb

.venv-colab/test: tests/colab.txt
	test -x .venv-colab/bin/python || PYENV_VERSION=3.13 python3.13 -m venv .venv-colab \
	  || { echo "No Python 3.13 as on Colab: its versions run on $$($(PYTHON) --version)."; $(PYTHON) -m venv .venv-colab; }
	$(call install,.venv-colab,-r tests/colab.txt papermill nbval pytest-xdist)
	touch $@

# nbgrader, beside the environment and not in it: there it would add its own extension to JupyterLab. 30 MB.
nbgrader: .venv/test
	test -d .nbgrader || $(BIN)/pip install -q --no-deps --target .nbgrader nbgrader==0.9.6 alembic mako rapidfuzz
	PATH="$(CURDIR)/.nbgrader/bin:$$PATH" PYTHONPATH=$(CURDIR)/.nbgrader $(BIN)/pytest tests/test_nbgrader.py

# Orbax, beside the environment and not in it: Keras saves with it where a program asks for that, and it brings JAX. 625 MB.
orbax: .venv/test
	test -d .orbax || $(BIN)/uv pip install -q --python $(BIN)/python -c requirements.lock --target .orbax orbax-checkpoint==0.12.8
	PYTHONPATH=$(CURDIR)/.orbax $(BIN)/pytest tests/test_orbax.py

# The repair of each report in `upstream`, in copies of the installed Keras: its tests fail before and pass after. It takes half an
# hour; NAMES="scalar_loss_in_fit" proves what is named.
upstream: .venv/test
	$(BIN)/python tools/prove_repairs.py $(NAMES)

# Other versions of TensorFlow and Keras, each in an environment of its own, and what each mode comes to there. One lane takes
# ten minutes or more; a second call goes on where the first was stopped. LANES="2.19 2.18" names some.
lanes: tools/lanes.toml
	$(PYTHON) tools/make_lanes.py $(LANES)

.PHONY: lab test pages nightly recordings coverage quick lint types book lock oldest colab nbgrader orbax upstream lanes
