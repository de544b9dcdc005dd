"""The weights of helpers/triage/confidence.py, from labelled reports: python tests/fit_triage.py FILE.jsonl ...

Reports are judged as in score_triage.py, which says what a line holds; `counts` says how many reports one stands for, as one does
that nobody had seen when the modes were described. Each weight is drawn towards nothing, so that few reports
do not make it large. What is printed last is how far confidence and truth are apart where each report was left out in turn.
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import prose
import score_triage

from helpers.triage import answer, confidence

CALM = 10  # one of so many sentences of prose that the laws do not use stands for what is pasted and is no report
DRAWN = 0.3  # how strongly a weight is drawn towards nothing
STEPS = 50


def signs_and_truth(report: dict):
    """What `guess` was told of a report, whether the nearest mode is right, and whether any mode is."""
    seen = []
    shares_of = confidence.shares_of

    def watched(scores, signs, sharp):
        seen.append(signs)
        return shares_of(scores, signs, sharp)

    confidence.shares_of = watched
    try:
        found = answer.triage(report["text"], score_triage.known_without(report.get("source", "")))
    finally:
        confidence.shares_of = shares_of
    if found.known or not found.candidates:
        return None
    right = found.candidates[0].mode in score_triage.wanted(report)
    some = right or report["label"] != "none"
    return list(map(float, seen[-1].values())), right, some, report.get("counts", 1)


def fitted(signs: np.ndarray, truth: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The weights of a logistic regression, by Newton's method; the first, which is always there, is free."""
    signs, truth = np.repeat(signs, counts, axis=0), np.repeat(truth, counts)
    weights = np.zeros(signs.shape[1])
    pull = DRAWN * np.eye(len(weights))
    pull[0, 0] = 1e-6
    for _ in range(STEPS):
        chance = chances(signs, weights)
        slope = signs.T @ (chance - truth) + pull @ weights
        weights = weights - np.linalg.solve(
            (signs.T * (chance * (1 - chance))) @ signs + pull, slope
        )
    return weights


def chances(signs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-signs @ weights))


def left_out(signs: np.ndarray, truth: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """What each report is given by weights that do not know it."""
    others = [np.arange(len(truth)) != number for number in range(len(truth))]
    return np.array(
        [
            chances(one, fitted(signs[rest], truth[rest], counts[rest]))
            for one, rest in zip(signs, others, strict=True)
        ]
    )


def apart(chance: np.ndarray, truth: np.ndarray, parts: int = score_triage.STEPS) -> float:
    places = np.minimum((chance * parts).astype(int), parts - 1)
    means = [
        abs(chance[places == part].mean() - truth[places == part].mean()) * sum(places == part)
        for part in set(places)
    ]
    return sum(means) / len(truth)


def main(*paths: str):
    reports = [json.loads(line) for path in paths for line in Path(path).read_text().splitlines()]
    reports += [{"text": each, "label": "none"} for each in prose.sentences(1)[::CALM]]
    known = [each for each in map(signs_and_truth, reports) if each]
    signs, counts = (np.array([each[part] for each in known]) for part in (0, 3))
    for name, truth in ("RIGHT", 1), ("ANY", 2):
        truth = np.array([each[truth] for each in known], float)
        weights = dict(
            zip(confidence.RIGHT, fitted(signs, truth, counts).round(2).tolist(), strict=True)
        )
        print(f"{name} = {json.dumps(weights)}")
        print(
            f"of {len(truth)} left out, apart by {apart(left_out(signs, truth, counts), truth):.3f}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
