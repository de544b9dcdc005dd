"""What each command does. A room is entered when its command is given, so a quick one does not wait for a slow one's."""

import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .base import files, project
from .base.errors import UserError, choose
from .setups import parameters, strategies, tpu


def every(given: list, valid) -> list:
    """The word all stands for every value."""
    return list(valid) if given == ["all"] else given


def generations(options) -> list[int]:
    return [choose("keras", keras, parameters.choices()["keras"]) for keras in options.keras]


def chosen_modes(options) -> list:
    from .rendering import mode_notebooks

    chosen = mode_notebooks.mode_notebooks(options.modes or ["all"])
    return [(each.mode, each.path) for each in chosen]


def run_notebooks(options) -> int:
    from .records import grid

    valid = parameters.choices()
    names = every(options.strategy or ["mirrored"], valid["strategy"])
    counts = every(options.devices or usual_counts(names), valid["devices"])
    kept_as = every(options.save_format or ["keras"], valid["save_format"])
    chosen, skipped = parameters.combinations(names, counts, kept_as, options.keras)
    for reason in skipped:
        print(f"skipped: {reason}")
    address, many = options.scheduler, options.jobs
    pool = grid.cluster(address) if address else ThreadPoolExecutor(many)
    seconds = options.limit or grid.RUN_LIMIT
    agreed = grid.run_grid(options.modes, chosen, options.output, pool, seconds, options.again)
    return 0 if agreed else 1


def usual_counts(names: list[str]) -> list[int]:
    """Without --devices each strategy gets two devices, or the one count it has."""
    rows = [strategies.TABLE[choose("strategy", name, strategies.TABLE)] for name in names]
    return sorted({2 if 2 in row.counts else row.counts[0] for row in rows})


def new_mode(options) -> int:
    from .rendering import new_mode

    require_clone("A new mode")
    new_mode.write_mode(options.id, options.slug)
    return 0


def render_notebooks(options) -> int:
    from .rendering import render, sources

    require_clone("Rendering")
    if options.pull:
        sources.pull(options.pull)
        return 0
    if not options.check:
        render.render_all(options.modes)
        return 0
    problems = render.stale(options.modes)
    print("\n".join(problems) or "every notebook is what its source says")
    return 1 if problems else 0


def require_clone(what: str):
    if not files.is_clone():
        address = f"https://github.com/{project.setting()['repository']}"
        raise UserError(f"{what} needs a clone of the repository; run: git clone {address}")


def record_verdicts(options) -> int:
    from .records import compare, version_records

    chosen = chosen_modes(options)
    if options.lane:
        version_records.record_lane(chosen, options.jobs, options.again)
        return 0
    for keras in generations(options):
        compare.record(chosen, keras, options.jobs, options.again)
    return 0


def check_runtime(options) -> int:
    """Every verdict against the nearest version that is recorded, and first of all what is news; then the stored outputs."""
    from .records import compare, junit

    chosen, wanted = chosen_modes(options), generations(options)
    junit.require_place(options.junit)
    found = {
        keras: compare.compare(chosen, keras, options.jobs, save=options.save) for keras in wanted
    }
    every = [each for listed in found.values() for each in listed]
    print("\n".join(compare.news(every) or ["no news: every verdict is as recorded"]), flush=True)
    outputs = nbval([path for _, path in chosen] if options.modes else [files.notebooks()])
    as_stored = compare.without_known(outputs)
    problems = [each.problem for each in every if each.problem]
    problems += [] if as_stored else ["stored outputs differ: see above what nbval says"]
    if options.junit:
        suites = [
            junit.suite(f"verdicts-keras{k}", [each.case() for each in found[k]]) for k in found
        ]
        junit.write_suites(options.junit, [*outputs, *suites])
    print("\n".join(problems) or "every output and every verdict is as stored")
    return 1 if problems else 0


def nbval(paths: list[Path]) -> list:
    """Strict nbval as anybody would run it, except that pytest, too, starts from what is imported already."""
    from .records import junit

    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "outputs.xml"
        asked = ["-q", "--nbval", "--junitxml", str(report), "-o", "junit_suite_name=outputs"]
        asked += ["-p", "no:cacheprovider"]  # which would leave a folder where the notebooks are
        pytest([*asked, *map(str, paths)])
        return junit.read_suites(report)


def pytest(arguments: list[str]):
    from .processes import forkserver_client, request_reply

    environment = dict(os.environ)
    process = forkserver_client.start_module(
        "pytest", environment, sys.__stdout__, forkserver_client.warm(environment), *arguments
    )
    try:
        process.wait()
    finally:
        request_reply.put_down(process)


def draw_atlas(options) -> int:
    from .records import atlas

    atlas.write_atlas(options.page)
    return 0


def name_mode(options) -> int:
    from .triage import command

    command.print_answer(
        options.file, "jsonl" if options.jsonl else "json" if options.json else "text"
    )
    return 0


def examine_program(options) -> int:
    from .examiner.frontends import command as desk

    if options.benchmark:
        return desk.examine_patients(options.program, options.keras or [3], options.strategy)
    words = ["-m", *options.module] if options.module is not None else options.program
    return desk.examine_words(tuple(words), options)


def compile_steps(options) -> int:
    from .compiler import programs

    names = every(options.tpu or [programs.USUAL], tpu.TPUS)
    for keras in generations(options):
        programs.compile_modes(chosen_modes(options), names, keras)
    return 0


def lay_out_notebooks(options) -> int:
    from .rendering import mode_notebooks

    mode_notebooks.copy_notebooks(options.folder)
    return 0


def hand_out(options) -> int:
    from .workshop import handout

    handout.write_handout(options.folder, options.modes or ["all"])
    return 0


def grade_folder(options) -> int:
    """Reports are written anew with every grade, so whatever stops the command leaves those that were finished."""
    from .records import junit
    from .workshop import grade

    wanted = {grade.write_grades: options.json, grade.write_junit: options.junit}
    places = {write: path for write, path in wanted.items() if path}
    for path in places.values():
        junit.require_place(path)

    def keep(grades):
        for write, path in places.items():
            write(path, grades)

    seconds = options.limit or grade.EXERCISE_LIMIT
    grades = grade.grade(options.folder, options.jobs, seconds, keep)
    return 0 if all(each.result == "green" for each in grades) else 1
