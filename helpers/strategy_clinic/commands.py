"""The functions of the commands; each imports its modules when it runs, so that quick commands start quickly."""

import importlib.util
import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .base import files, project
from .base.errors import UserError, choose
from .setups import parameters, strategies, tpu


def expand(given: list[Any], valid: Iterable[Any]) -> list[Any]:
    """Returns all valid values for the word `all`, and other values as they are."""
    return list(valid) if given == ["all"] else given


def generations(options: Namespace) -> list[int]:
    return [choose("keras", keras, parameters.choices()["keras"]) for keras in options.keras]


def chosen_modes(options: Namespace) -> list[Any]:
    from .rendering import mode_notebooks

    notebooks = mode_notebooks.mode_notebooks(options.modes or ["all"])
    return [(notebook.mode, notebook.path) for notebook in notebooks]


def require_packages(*modules: str) -> None:
    """Raises ModuleNotFoundError for a package of an extra before anything runs; cli.py says which extra has it."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)


def run_notebooks(options: Namespace) -> int:
    from .records import grid

    require_packages("papermill", "ipykernel")
    valid = parameters.choices()
    names = expand(options.strategy or ["mirrored"], valid["strategy"])
    counts = expand(options.devices or usual_counts(names), valid["devices"])
    formats = expand(options.save_format or ["keras"], valid["save_format"])
    setups, skipped = parameters.combinations(names, counts, formats, options.keras)
    for reason in skipped:
        print(f"skipped: {reason}")
    address = options.scheduler
    pool = grid.cluster(address) if address else ThreadPoolExecutor(options.jobs)
    seconds = options.limit or grid.RUN_LIMIT
    agreed = grid.run_grid(options.modes, setups, options.output, pool, seconds, options.again)
    return 0 if agreed else 1


def usual_counts(names: list[str]) -> list[int]:
    """Returns two devices for each strategy, or the only number that it supports."""
    rows = [strategies.TABLE[choose("strategy", name, strategies.TABLE)] for name in names]
    return sorted({2 if 2 in row.counts else row.counts[0] for row in rows})


def new_mode(options: Namespace) -> int:
    from .rendering import new_mode

    require_clone("A new mode")
    new_mode.write_mode(options.id, options.slug)
    return 0


def render_notebooks(options: Namespace) -> int:
    from .rendering import render, sources

    require_clone("Rendering")
    if options.pull:
        sources.pull(options.pull)
        return 0
    if not options.check:
        require_packages("papermill", "ipykernel", "matplotlib")
        render.render_all(options.modes)
        return 0
    problems = render.stale(options.modes)
    print("\n".join(problems) or "every notebook is what its source says")
    return 1 if problems else 0


def require_clone(what: str) -> None:
    if not files.is_clone():
        address = f"https://github.com/{project.setting()['repository']}"
        raise UserError(f"{what} needs a clone of the repository; run: git clone {address}")


def record_verdicts(options: Namespace) -> int:
    from .records import compare, version_records

    chosen = chosen_modes(options)
    if options.lane:
        version_records.record_lane(chosen, options.jobs, options.again)
        return 0
    for keras in generations(options):
        compare.record(chosen, keras, options.jobs, options.again)
    return 0


def check_runtime(options: Namespace) -> int:
    """Compares every verdict with the nearest recorded version, prints what is new first, and then compares stored outputs."""
    from .records import compare, junit

    require_packages("nbval", "ipykernel", "matplotlib")
    chosen = chosen_modes(options)
    junit.require_place(options.junit)
    compared = {
        keras: compare.compare(chosen, keras, options.jobs, save=options.save)
        for keras in generations(options)
    }
    verdicts = [verdict for of_keras in compared.values() for verdict in of_keras]
    news = compare.news(verdicts) or ["no news: every verdict is as recorded"]
    print("\n".join(news), flush=True)
    outputs = nbval([path for _, path in chosen] if options.modes else [files.notebooks()])
    problems = [verdict.problem for verdict in verdicts if verdict.problem]
    if not compare.without_known(outputs):
        problems.append("stored outputs differ: see above what nbval says")
    if options.junit:
        suites = [
            junit.suite(f"verdicts-keras{keras}", [verdict.case() for verdict in of_keras])
            for keras, of_keras in compared.items()
        ]
        junit.write_suites(options.junit, [*outputs, *suites])
    print("\n".join(problems) or "every output and every verdict is as stored")
    return 1 if problems else 0


def nbval(paths: list[Path]) -> list[Any]:
    """Runs strict nbval on notebooks and returns the suites of its report."""
    from .records import junit

    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "outputs.xml"
        options = ["-q", "--nbval", "--junitxml", str(report), "-o", "junit_suite_name=outputs"]
        options += ["-p", "no:cacheprovider"]  # its folder would lie beside the notebooks
        pytest([*options, *map(str, paths)])
        return junit.read_suites(report)


def pytest(arguments: list[str]) -> None:
    from .processes import python_process, request_reply

    environment = os.environ | python_process.warm_kernels()
    process = python_process.start_module(
        "pytest", environment, sys.__stdout__, python_process.fork_server(), *arguments
    )
    try:
        process.wait()
    finally:
        request_reply.end(process)


def draw_atlas(options: Namespace) -> int:
    from .records import atlas

    atlas.write_atlas(options.page)
    return 0


def name_mode(options) -> int:
    from .triage import command

    command.print_answer(
        options.file, "jsonl" if options.jsonl else "json" if options.json else "text"
    )
    return 0


def examine_program(options: Namespace) -> int:
    if options.benchmark:
        from .examiner.benchmark.score import run_benchmark

        return run_benchmark(options.program, options.keras or [3], options.strategy)
    from .examiner.frontends.command import examine_command

    return examine_command(options)


def compile_steps(options: Namespace) -> int:
    from .compiler import programs

    names = expand(options.tpu or [programs.USUAL], tpu.TPUS)
    for keras in generations(options):
        programs.compile_modes(chosen_modes(options), names, keras)
    return 0


def lay_out_notebooks(options: Namespace) -> int:
    from .rendering import mode_notebooks

    mode_notebooks.copy_notebooks(options.folder)
    return 0


def hand_out(options: Namespace) -> int:
    from .workshop import handout

    handout.write_handout(options.folder, options.modes or ["all"])
    return 0


def grade_folder(options: Namespace) -> int:
    """Grades exercises. Reports are rewritten after every grade, so a command that is stopped leaves the finished ones."""
    from .records import junit
    from .workshop import grade

    wanted = {grade.write_grades: options.json, grade.write_junit: options.junit}
    reports: dict[Callable[..., None], Path] = {
        write: path for write, path in wanted.items() if path
    }
    for path in reports.values():
        junit.require_place(path)

    def write_reports(grades: list[Any]) -> None:
        for write, path in reports.items():
            write(path, grades)

    seconds = options.limit or grade.EXERCISE_LIMIT
    grades = grade.grade(options.folder, options.jobs, seconds, write_reports)
    return 0 if all(graded.result == "green" for graded in grades) else 1
