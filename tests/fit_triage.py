"""What labelled reports teach triage: python tests/fit_triage.py FILE.jsonl ... [-- FILE.jsonl ...]

It needs scikit-learn, which nothing else does: `pip install scikit-learn` into an environment of its own. Reports are judged as
in score_triage.py, which says what a line holds; they teach weights, and their text stays where it is. It is done in two steps:

1. How much each trait of a text speaks for a mode or against it: a linear model over our own texts and the reports. What counts
   enough is written to helpers/triage/learned.json.
2. How sure that makes triage, for confidence.py, by what each part of the reports is told by the other parts: a repository is in
   one part alone. The weights are printed, and how far confidence and truth are apart.

Files after `--` teach nothing: they say how often a wording that names a mode is right, among reports as they come.
"""

import json
import sys
import zlib
from pathlib import Path

import numpy as np
from scipy import optimize
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).parents[1]))
import prose
import raised
import score_triage
from strategy_clinic.base import files
from strategy_clinic.triage import calibration, phrases, similarity, strip_code, wordings
from strategy_clinic.triage.wording_index import everything

CALM = 10  # one of so many sentences of prose that the laws do not use stands for what is pasted and is no report
ORDINARY = 0.4  # how much ordinary prose counts in what is taught
PARTS = 8  # of the reports, each of which is judged by the others
FREE = 5.0  # how far the linear model may go with what is rare
SHARE = 0.1  # how much of it is added to a likeness
LEAST = 0.08  # a smaller weight is left out
OFTEN = 3  # as is a trait that fewer texts have
DRAWN = 0.01  # how strongly the weights of confidence.py are drawn towards nothing
# The share of descriptions that are of a mode for which confidence is fitted: in a tracker they are one in thirty, among reports
# that are brought here because they look near two in three. The higher, the more is answered, and the more is claimed of none.
OF_MODES = 0.6
AS_THEY_COME = 2  # how much a report counts that nobody chose: few of those are named by a wording
NO_MODE = similarity.NO_MODE


def read(paths: tuple[str, ...]) -> list[dict]:
    reports = [each | {"path": path} for path in paths for each in score_triage.read(path)]
    return reports + [
        {"text": each, "label": "none", "source": each, "kind": "prose", "path": "prose"}
        for each in prose.sentences(1)[::CALM]
    ]


def part_of(report: dict) -> int:
    return zlib.crc32(report["source"].split("#")[0].encode()) % PARTS


# What each trait speaks for


def traits_of(text: str, rarity: dict) -> dict[str, float]:
    return similarity.weights_in(strip_code.in_prose(text), rarity)


def own_texts() -> list[tuple]:
    knowledge = everything()
    return [
        (traits_of(text, knowledge.index.rarity), mode or NO_MODE, weight)
        for mode, text, weight in similarity.texts_of(knowledge.entries)
    ]


def ordinary() -> list[tuple]:
    """Prose that the laws do not use, and what TensorFlow raises of what is none of the modes."""
    texts = [*prose.sentences(2), *(raised.filled(each) for each in raised.none())]
    rarity = everything().index.rarity
    return [(traits_of(each, rarity), NO_MODE, ORDINARY) for each in texts]


def as_text(report: dict) -> tuple:
    text = phrases.clean(report["text"])
    return traits_of(text, everything().index.rarity), report["label"].lower(), 1


def taught_by(texts: list[tuple]) -> dict[str, dict[str, float]]:
    """For each trait that counts the modes for which it speaks, and how much."""
    traits, modes, counts = zip(*texts, strict=True)
    names = DictVectorizer(dtype=np.float32)
    table = names.fit_transform(traits)
    often = np.flatnonzero(np.asarray((table > 0).sum(axis=0))[0] >= OFTEN)
    model = LogisticRegression(C=FREE, max_iter=200, tol=1e-3)
    model.fit(table[:, often], modes, sample_weight=counts)
    every = [similarity.ALWAYS, *names.get_feature_names_out()[often]]
    weights = SHARE * np.hstack([model.intercept_[:, None], model.coef_])
    found = {}
    for trait, column in zip(every, weights.T, strict=True):
        speaking = zip(model.classes_, column.tolist(), strict=True)
        least = LEAST if trait else 0
        if kept := {mode: round(each, 2) for mode, each in speaking if abs(each) > least}:
            found[trait] = kept
    return found


# How sure it is


def asked_of(report: dict):
    """What `guess` weighs for a report; nothing where a wording answers."""
    asked, shares_of = [], calibration.shares_of

    def watched(*what):
        asked.append(what)
        return shares_of(*what)

    calibration.shares_of = watched
    try:
        found = score_triage.judge(report)["answer"]
    finally:
        calibration.shares_of = shares_of
    return None if found.known else asked[-1]


def left_out(reports: list[dict], taught: list[dict], ask) -> list[tuple]:
    """What is answered for each report by what the other parts teach, or all of them where it is in none."""
    found = []
    for report in reports:
        part = PARTS if report.get("judged") else part_of(report)
        wordings.learned = lambda part=part: taught[part]
        found.append((report, ask(report)))
    return found


def named_by_wording(report: dict):
    """How sure a wording is by itself that names a mode, how much more speaks for the mode than for none, whether it is that
    mode, and how much that counts."""
    found = score_triage.judge(report)["answer"]
    if not found.known or found.mode is None:
        return None
    text = phrases.without_warnings(phrases.clean(report["text"]))
    speaks = similarity.spoken_for(text, everything().index)
    more = calibration.more_than_none(found.mode, speaks)
    right = found.mode in score_triage.wanted(report)
    return found.confidence, more, right, AS_THEY_COME if report.get("judged") else 1


def believed(named: list[tuple]) -> dict[str, float]:
    """How far a wording can be believed, by what else a text says."""
    sure, more, right, counts = map(np.array, zip(*named, strict=True))

    def loss(values):
        share = np.minimum(sure, 1 / (1 + np.exp(-values[0] - values[1] * more)))
        return -(counts * np.log(np.where(right, share, 1 - share))).sum()

    found = optimize.minimize(loss, (2, 5), method="Nelder-Mead").x
    return {"known": round(float(found[0]), 2), "speaks": round(float(found[1]), 2)}


def chance_of_truth(values: np.ndarray, names: tuple, asked: list[tuple]) -> np.ndarray:
    weights = dict(zip(names, values, strict=True))
    return np.array(
        [
            sum(shares.get(mode, 0) for mode in score_triage.wanted(report))
            for report, scores, hints, signs, _ in asked
            for shares in [calibration.shares_of(scores, hints, signs, weights)]
        ]
    )


def fitted(asked: list[tuple], before: dict[str, float], counts: np.ndarray) -> dict[str, float]:
    names, start = tuple(before), np.array(list(before.values()))

    def loss(values):
        chance = chance_of_truth(values, names, asked)
        return -(counts * np.log(chance + 1e-9)).sum() + DRAWN * (values**2).sum()

    found = optimize.minimize(loss, start, method="Powell", options={"maxfev": 400}).x
    return dict(zip(names, found.round(2).tolist(), strict=True))


def counts_of(asked: list[tuple], share: float) -> np.ndarray:
    """How much each report counts, so that those of a mode have a share of all."""
    of_mode = np.array([report["label"] != "none" for report, *_ in asked])
    return len(asked) * np.where(of_mode, share / of_mode.sum(), (1 - share) / (~of_mode).sum())


def accepted(judged: list[dict]) -> float:
    """The power of a share that is nearest to how often an answer by likeness is right."""
    guesses = [each for each in judged if not each["answer"].known and each["kind"] != "prose"]
    shares = np.array([each["answer"].confidence for each in guesses])
    right = np.array([each["first"] for each in guesses])

    def loss(power):
        said = np.clip(shares**power, 0.001, 0.999)
        return -np.log(np.where(right, said, 1 - said)).sum()

    return round(float(optimize.minimize_scalar(loss, bounds=(0.1, 2), method="bounded").x), 2)


def write(taught: dict[str, dict[str, float]]):
    lines = [f"{json.dumps(trait)}: {json.dumps(taught[trait])}" for trait in sorted(taught)]
    path = files.package() / "triage" / "learned.json"
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(taught)} traits, {path.stat().st_size} bytes")


def main(*paths: str):
    at = paths.index("--") if "--" in paths else len(paths)
    texts, reports = own_texts() + ordinary(), read(paths[:at])
    others = [
        each | {"path": path, "judged": True}
        for path in paths[at + 1 :]
        for each in score_triage.read(path)
    ]
    taught = [
        taught_by(texts + [as_text(each) for each in reports if part_of(each) != part])
        for part in range(PARTS + 1)
    ]
    asked = [(report, *what) for report, what in left_out(reports, taught, asked_of) if what]
    for name in ("BY_DESCRIPTION", "BY_ERROR"):
        weights = getattr(calibration, name)
        mine = [each for each in asked if each[-1] is weights]
        found = np.mean([report["label"] != "none" for report, *_ in mine])
        share = OF_MODES if weights is calibration.BY_DESCRIPTION else found
        weights.update(fitted(mine, weights, counts_of(mine, share)))
        chance = chance_of_truth(np.array(list(weights.values())), tuple(weights), mine)
        print(f"{name} = {json.dumps(weights)}  # {len(mine)}, by {-np.log(chance).mean():.3f}")
    # So that a wording is as sure as it is alone.
    calibration.BY_WORDING = {"known": 99, "speaks": 0}
    named = [each for _, each in left_out(reports + others, taught, named_by_wording) if each]
    calibration.BY_WORDING = believed(named)
    print(f"BY_WORDING = {json.dumps(calibration.BY_WORDING)}  # {len(named)}")
    calibration.ACCEPTED = 1
    judged = [each for _, each in left_out(reports, taught, score_triage.judge)]
    calibration.ACCEPTED = accepted(judged)
    print(f"ACCEPTED = {calibration.ACCEPTED}")
    judged = [each for _, each in left_out(reports + others, taught, score_triage.judge)]
    for path in (*paths[:at], *paths[at + 1 :], ""):
        print(f"left out of {path or 'all'}:")
        mine = [each for each in judged if path in ("", each["report"]["path"])]
        print("\n".join(score_triage.table(mine)))
    write(taught[PARTS])


if __name__ == "__main__":
    main(*sys.argv[1:])
