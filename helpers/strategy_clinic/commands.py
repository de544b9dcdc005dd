"""What each command does; each imports what it needs, so that a quick one does not wait for a slow one's imports.

A function returns the exit status: 0, or 1 where something is not as it should be.
"""

import importlib.util
import shlex
from argparse import Namespace
from collections.abc import Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any

from .base import files, project
from .base.display import say
from .base.errors import UserError, choose
from .setups import parameters, strategies, tpu

if TYPE_CHECKING:
    from .rendering.mode_notebooks import ModeNotebook
    from .workshop.scores import Grade


def expand_all(values: list[Any], valid: Iterable[Any]) -> list[Any]:
    """Returns all valid values for the word all."""
    return list(valid) if values == ["all"] else values


def keras_versions(options: Namespace) -> list[int]:
    return [choose("keras", keras, parameters.choices()["keras"]) for keras in options.keras]


def chosen_modes(options: Namespace) -> "list[ModeNotebook]":
    from .rendering.mode_notebooks import mode_notebooks

    return mode_notebooks(options.modes or ["all"])


def require_clone(what: str) -> None:
    if not files.is_clone():
        address = project.address()
        where = f"run: git clone {address}" if address else "it has no public address yet"
        raise UserError(f"{what} needs a clone of the repository; {where}")


def require_packages(*modules: str) -> None:
    """Raises ModuleNotFoundError for a package of an extra before anything runs; cli.py says which extra has it."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)


def run_notebooks(options: Namespace) -> int:
    from .records import grid

    require_packages("papermill", "ipykernel")
    valid = parameters.choices()
    names = expand_all(options.strategy or ["mirrored"], valid["strategy"])
    counts = expand_all(options.devices or usual_counts(names), valid["devices"])
    save_formats = expand_all(options.save_format or ["keras"], valid["save_format"])
    setups, skipped = parameters.combinations(names, counts, save_formats, options.keras)
    for reason in skipped:
        print(f"skipped: {reason}")
    workers: Executor = ThreadPoolExecutor(options.jobs)
    if options.scheduler:
        workers = grid.cluster(options.scheduler)
    seconds = options.limit or grid.RUN_LIMIT
    agree = grid.run_grid(options.modes, setups, options.output, workers, seconds, options.again)
    return 0 if agree else 1


def usual_counts(names: list[str]) -> list[int]:
    """Returns what each strategy gets without --devices: two devices, or the one count that it has."""
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
    if options.text:
        render.write_texts(options.modes)
        return 0
    if not options.check:
        require_packages("papermill", "ipykernel", "matplotlib")
        render.render_all(options.modes)
        return 0
    problems = list(render.stale(options.modes))
    print("\n".join(problems) or "every notebook is what its source says")
    return 1 if problems else 0


def record_verdicts(options: Namespace) -> int:
    from .records import compare, version_records

    chosen = chosen_modes(options)
    if options.lane:
        version_records.record_versions(chosen, options.jobs, options.again)
        return 0
    for keras in keras_versions(options):
        compare.record(chosen, keras, options.jobs, options.again)
    return 0


def check_runtime(options: Namespace) -> int:
    from .processes import reductions
    from .records import check, junit
    from .setups import runtime
    from .triage import known_errors

    require_packages("nbval", "ipykernel", "matplotlib")
    chosen, versions = chosen_modes(options), keras_versions(options)
    junit.require_writable(options.junit)
    report = check.Report(options.junit)
    about_gpus = reductions.report(len(runtime.accelerators())) if runtime.kind() == "gpu" else ()
    for sentence in chain(known_errors.about_installed(), about_gpus):
        say(sentence)
    check.tell_expected(chosen, versions, options.jobs, options.quick)
    check.measure(report, chosen, versions, options.jobs, options.quick, options.save)
    if not options.quick:
        pages = [each.path for each in chosen] if options.modes else [files.notebooks()]
        report.outputs = check.nbval(pages)
    return check.close(report)


def sweep_keras(options: Namespace) -> int:
    if options.generate:
        from .sweep.generated.command import generate_programs

        return generate_programs(options.generate, options.seed)
    from .sweep.runs import command

    versions = keras_versions(options)
    if options.check:
        return command.check_sweep(versions, options.only, options.jobs, options.json, options.save)
    return command.record_sweep(versions, options.only, options.jobs, options.again, options.json)


def draw_atlas(options: Namespace) -> int:
    from .records import atlas

    atlas.write_atlas(options.page)
    return 0


def name_mode(options: Namespace) -> int:
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


def show_program(options: Namespace) -> int:
    from .examiner.frontends.show import show_command

    return show_command(options)


def compile_steps(options: Namespace) -> int:
    from .compiler import programs

    names = expand_all(options.tpu or [programs.USUAL], tpu.TPUS)
    for keras in keras_versions(options):
        programs.compile_modes(chosen_modes(options), names, keras)
    return 0


def copy_notebooks(options: Namespace) -> int:
    from .processes import python_process
    from .rendering import mode_notebooks

    if options.open:
        require_packages("jupyterlab", "ipykernel", "matplotlib")
    mode_notebooks.copy_notebooks(options.folder)
    start = options.folder / mode_notebooks.START
    if options.open:
        python_process.open_lab(start)
    print(f"now run: jupyter lab {shlex.quote(str(start))}")
    return 0


def build_wheel(options: Namespace) -> int:
    from .workshop import wheel

    require_clone("A wheel")
    require_packages(wheel.BACKEND)
    wheel.build_wheel(options.of or files.ROOT, options.folder)
    return 0


def hand_out(options: Namespace) -> int:
    from .workshop import handout

    handout.write_handout(options.folder, options.modes or ["all"], options.nbgrader)
    return 0


def grade_folder(options: Namespace) -> int:
    """Writes the reports again with every grade, so that those of finished exercises are kept if it is stopped."""
    from .records import junit
    from .workshop import grade, scores

    reports = {
        scores.write_grades: options.json,
        scores.write_junit: options.junit,
        scores.write_csv: options.csv,
    }
    for path in reports.values():
        junit.require_writable(path)

    def write_reports(grades: "list[Grade]") -> None:
        for write, path in reports.items():
            if path:
                write(path, grades)

    seconds = options.limit or grade.EXERCISE_LIMIT
    grades = grade.grade(options.folder, options.jobs, seconds, write_reports)
    return 0 if all(each.result == "green" for each in grades) else 1
