"""Silent modes that one run shows: what a checkpoint lacks, and what replicas make of a step. Rules from runs to findings."""

from ..recording import Finding, Observation
from . import blame
from .divergence import Parting


def observed(what: str, run: Observation) -> str:
    return f"observed on {run.devices} devices: {what}"


def each_run(rule):
    """A rule that needs one run only, asked of each in turn."""

    def rule_for_all(runs: list[Observation], partings: list[Parting]) -> list[Finding]:
        return [finding for run in runs for finding in rule(run)]

    return rule_for_all


def named(run: Observation, number: int) -> str:
    return run.variable(number).get("name", "a variable")


@each_run
def untracked(run: Observation) -> list[Finding]:
    """fm05: a variable that was changed before a checkpoint was saved, is in none of them, and is missed."""
    found = []
    for number, (lost, save) in left_out(run).items():
        why = missed(run, number, lost)
        if why:
            line = f"line {save['at'][0][1]}" if save["at"] else "a callback"
            says = f"{named(run, number)} is in no checkpoint, and {why}"
            proof = observed(f"{line} saved {len(save['held'])} variables without it", run)
            at = tuple(run.variable(number)["at"])
            found.append(Finding("fm05", at, says, proof, (run.devices,)))
    return found


def left_out(run: Observation) -> dict:
    """By number, the variables that were changed before a save and that no checkpoint holds, each with that save."""
    saves = [each for each in run.of("saved") if each["what"] == "checkpoint"]
    held = {
        number for each in run.of("saved") if each["what"] != "model" for number in each["held"]
    }
    left = {lost["number"]: (lost, save) for save in saves for lost in save["left"]}
    known = {number for number in left if run.variable(number).get("at")}
    return {number: left[number] for number in known - held}


def missed(run: Observation, number: int, lost: dict) -> str:
    """How it was seen that a restart goes on otherwise without this variable; nothing if that was not seen."""
    for each in run.of("missed"):
        if number in each["numbers"]:
            return each["why"]
    held = {each for save in run.of("saved") for each in save["held"]}
    together = [set(each["state"]["trains"]) for each in run.of("updated")]
    if lost["trained"] and any(number in each and each & held for each in together):
        return "it is trained together with what is"
    return ""


def in_question(run: Observation) -> list[int]:
    """Variables left out of every checkpoint of which only another run can tell whether they are missed."""
    return [
        number
        for number, (lost, _) in left_out(run).items()
        if lost["read"] and lost["changed"] and run.variable(number)["maker"] == "user"
        if "float" in run.variable(number)["dtype"] and not missed(run, number, lost)
    ]


def remade(run: Observation, number: int) -> int | None:
    """What takes the place of a variable after loading, made by the same words: it is read before anything writes to it."""
    old = run.variable(number)
    loads = [place for place, each in enumerate(run.facts) if each["fact"] == "loaded"]
    later = run.facts[loads[0] :] if loads else ()
    filled = {n for each in later if each["fact"] == "loaded" for n in each["numbers"]}
    alike = [each for each in later if each["fact"] == "variable" and is_like(each, old)]
    new = [each["number"] for each in alike if not is_part(run, each)]
    read_first = [n for n in new if n not in filled and first_of(later, n) == "used"]
    return next(iter(read_first), None)


def is_like(new: dict, old: dict) -> bool:
    alike = all(new[word] == old[word] for word in ("shape", "dtype", "maker"))
    return alike and bool(new["at"] and old["at"]) and blame.same_words(new["at"][0], old["at"][0])


def first_of(facts, number: int) -> str:
    touched = [each for each in facts if each["fact"] in ("used", "written")]
    return next((each["fact"] for each in touched if each["number"] == number), "")


def is_part(run: Observation, variable: dict) -> bool:
    """Whether this is one copy of a variable, and no variable of its own."""
    return any(variable["number"] in each["parts"] for each in run.of("variable"))


def means_in_question(run: Observation) -> bool:
    """Whether a mean over replicas was made in a graph, where its numbers cannot be seen, and batches were divided unevenly."""
    unseen = any(not each["values"] for each in run.of("reduced"))
    return unseen and any(len(set(each["sizes"])) > 1 for each in run.of("batch"))


@each_run
def restored_nothing(run: Observation) -> list[Finding]:
    """fm08: after a restart, the first restore is given no path, though a checkpoint of the same objects was saved."""
    saved = [each for each in run.of("saved before") if each["what"] == "checkpoint"]
    first = next(iter(run.of("restored")), {})
    if not saved or first.get("path", "") is not None or not first.get("at"):
        return []
    if any(each["made"][:1] != first["made"][:1] for each in saved):
        return []
    says = "restore is given no path, and restores nothing"
    proof = observed(f"{saved[-1]['path']} was there, saved before the restart", run)
    return [Finding("fm08", tuple(first["at"]), says, proof, (run.devices,))]


@each_run
def slots_missing(run: Observation) -> list[Finding]:
    """fm09: a restore left an optimizer's variables as they were, since they did not exist when the file was saved."""
    found, saves = [], {each["path"]: each for each in run.of("saved")}
    for fact in run.of("restored"):
        save = saves.get(fact["path"])
        later = set(fact["holds"]) - set(save["held"]) if save else set()
        slots = [n for n in later if run.variable(n).get("maker") == "optimizer"]
        stepped = [
            each
            for each in fact.get("optimizers", ())
            if each["steps"] and set(slots) & set(each["variables"])
        ]
        if fact["unmatched"] and slots and stepped and save["at"]:
            says = f"the optimizer had no slots when this was saved: a restore leaves {len(slots)} as they are"
            line = f"line {fact['at'][0][1]}" if fact["at"] else "a restore"
            proof = observed(
                f"after {line} {named(run, slots[0])} kept the value of step {stepped[0]['steps']}",
                run,
            )
            found.append(Finding("fm09", tuple(save["at"]), says, proof, (run.devices,)))
    return found


@each_run
def nothing_applied(run: Observation) -> list[Finding]:
    """fm11: an optimizer was given no gradients at all, for a model that had been asked for variables too early."""
    early = run.last("unbuilt")
    empty = [each for each in run.of("updated") if not each["gradients"]]
    if not early or not empty:
        return []
    says = f"{early['name']} has no variables here, since it was never called: what is made of them is empty"
    line = empty[0]["at"][0][1] if empty[0]["at"] else "?"
    proof = observed(f"line {line} gave the optimizer 0 gradients", run)
    at = blame.deciding(early["at"], early["made"])
    return [Finding("fm11", at, says, proof, (run.devices,))]


@each_run
def mean_of_means(run: Observation) -> list[Finding]:
    """fm19: a mean over replicas that had different numbers of examples."""
    found = {}
    for fact in run.of("reduced"):
        sizes, values = fact["sizes"], fact["values"]
        if not values:
            continue
        plain = sum(values) / len(values)
        right = sum(n * v for n, v in zip(sizes, values) if n) / max(1, sum(sizes))
        if fact["at"] and not abs(plain - right) <= 1e-6 * (1 + abs(right)):
            parts = " and ".join(map(str, sizes))
            says = f"a mean of means: the replicas had {parts} examples, and count the same"
            proof = observed(
                f"it is {plain:.6g}, and {right:.6g} if every example counts the same", run
            )
            found.setdefault(
                tuple(fact["at"][0]),
                Finding("fm19", tuple(fact["at"]), says, proof, (run.devices,)),
            )
    return list(found.values())


@each_run
def written_by_replicas(run: Observation) -> list[Finding]:
    """fm23: a variable that the strategy does not know, and that each of its replicas writes to."""
    found = {}
    for fact in run.of("written"):
        variable = run.variable(fact["number"])
        single = not variable.get("copies") and variable.get("maker") in ("user", "layer")
        single = single and not run.is_spread(fact["number"])
        if fact["replicas"] > 1 and fact["by"] == "user" and single and variable["at"]:
            at = blame.from_factory(variable["at"])
            line = f"line {fact['at'][0][1]}" if fact["at"] else "a step"
            says = f"{variable['name']} was made outside the scope, and every replica writes to it"
            proof = observed(f"{fact['replicas']} replicas wrote to it at {line}", run)
            found.setdefault(fact["number"], Finding("fm23", at, says, proof, (run.devices,)))
    return list(found.values())


def differing(run: Observation) -> tuple[str, list[dict]]:
    """At the end, or after a step: what is loaded last makes copies one again. What optimizers keep for themselves is theirs."""
    looks = [(f"after step {each['number']}", each.get("apart", [])) for each in run.of("step")]
    if run.ended == "finished":
        looks.append(("at the end", run.last("ended").get("apart", [])))
    for when, apart in looks[::-1]:
        makers = {each["number"]: run.variable(each["number"]).get("maker") for each in apart}
        listed = [each for each in apart if each["apart"] > 1e-5]
        listed = [each for each in listed if makers[each["number"]] in ("user", "layer")]
        if listed:
            return when, listed
    return "", []


@each_run
def replicas_apart(run: Observation) -> list[Finding]:
    """fm38: a variable that is one for whoever reads it has another value on each replica."""
    found = []
    when, listed = differing(run)
    for each in listed[:1]:
        variable = run.variable(each["number"])
        others = f", and so do {len(listed) - 1} others" if len(listed) > 1 else ""
        if variable.get("at"):
            says = f"{variable['name']} has another value on each of {variable['copies']} replicas{others}"
            proof = observed(f"the copies are {each['apart']:.2g} of their size apart {when}", run)
            at = blame.from_choice(each.get("layer") or variable["at"])
            found.append(Finding("fm38", at, says, proof, (run.devices,)))
    return found
