"""How programs with each saver go on after they were killed: python tools/score_restarts.py [--keras 2,3] [SAVER ...]

Each program is killed after a save, between two saves and during a save, and started again in the folder that it left. A table
says for each how it went on; below it is what `clinic examine` reports.
"""

import argparse
import tempfile
import textwrap
from pathlib import Path

from strategy_clinic.examiner import restarts
from strategy_clinic.examiner.findings import Examination
from strategy_clinic.examiner.recording import Moment, Recording, Role
from strategy_clinic.examiner.runs import plan
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.processes import python_process

BEGIN = """
    import glob, json, os, pickle
    import numpy as np
    import tensorflow as tf

    BATCH, EPOCHS = 16, 4
    tf.keras.utils.set_random_seed(1)
    numbers = np.random.default_rng(0).normal(size=(64, 3)).astype("float32")
    targets = numbers.sum(axis=1, keepdims=True)
    dataset = tf.data.Dataset.from_tensor_slices((numbers, targets)).batch(BATCH)
    strategy = tf.distribute.MirroredStrategy()

    def new_model():
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.Adam(0.01), tf.keras.losses.MeanSquaredError())
        model.optimizer.build(model.trainable_variables)
        return model

    def with_weights(model):
        with np.load("last.npz") as file:
            model.set_weights([file[name] for name in file.files])
        return model

    def with_pickled(model):
        with open("last.pickle", "rb") as file:
            model.set_weights(pickle.load(file))
        return model
"""
FIT = """
    with strategy.scope():
        model = new_model()
    os.makedirs("saved", exist_ok=True)
    model.fit(dataset, epochs=EPOCHS, verbose=0, callbacks=[{callbacks}])
"""
RESUMED = """
    found = sorted(glob.glob("saved/*"))
    first = {first}
    with strategy.scope():
        {load}
    os.makedirs("saved", exist_ok=True)
    model.fit(dataset, epochs=EPOCHS, initial_epoch=first, verbose=0, callbacks=[{callbacks}])
"""
OF_FILE = "int(os.path.basename(found[-1])[:2]) if found else 0"
WEIGHTS = """model = new_model()
        if found:
            model.load_weights(found[-1])"""
MODEL = "model = tf.keras.models.load_model(found[-1]) if found else new_model()"
LOOP = """
    with strategy.scope():
        {load}

    def step(batch):
        inputs, outputs = batch
        with tf.GradientTape() as tape:
            losses = tf.square(model(inputs) - outputs)[:, 0]
            loss = tf.nn.compute_average_loss(losses, global_batch_size=BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    @tf.function
    def train(batch):
        strategy.run(step, args=(batch,))

    for epoch in range({first}, EPOCHS):
        for batch in strategy.experimental_distribute_dataset(dataset):
            train(batch)
        {save}
"""
MANAGER = LOOP.format(
    load="""model = new_model()
        done = tf.Variable(0, trainable=False)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer, done=done)
    manager = tf.train.CheckpointManager(checkpoint, "saved", max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)""",
    first="int(done.numpy())",
    save="""done.assign_add(1)
        manager.save()""",
)
COUNTED = "json.load(open('done.json')) if os.path.exists('done.json') else 0"
COUNT = "json.dump(epoch + 1, open('done.json', 'w'))"
CHECKPOINT = 'tf.keras.callbacks.ModelCheckpoint("saved/{name}"{more})'
BACKUP = 'tf.keras.callbacks.BackupAndRestore("backup"{more})'

WHERE_EXISTS = "model = {load} if os.path.exists({path!r}) else new_model()"


def saved_each_epoch(
    path: str, save: str, load: str = "tf.keras.models.load_model({path!r})"
) -> str:
    """Returns a program that saves a model after each epoch, and then the number of the epoch."""
    load = WHERE_EXISTS.format(load=load.format(path=path), path=path)
    return LOOP.format(load=load, first=COUNTED, save=f"{save}\n        {COUNT}")


BEST = CHECKPOINT.replace("saved/", "").format(
    name="best.keras", more=', monitor="loss", save_best_only=True'
)
SAVERS = {
    "BackupAndRestore": FIT.format(callbacks=BACKUP.format(more="")),
    "BackupAndRestore, double": FIT.format(
        callbacks=BACKUP.format(more=", double_checkpoint=True")
    ),
    "BackupAndRestore, steps": FIT.format(callbacks=BACKUP.format(more=", save_freq=3")),
    "BackupAndRestore, 3 callbacks": FIT.format(
        callbacks=f"{BACKUP.format(more='')}, {BEST}, "
        'tf.keras.callbacks.EarlyStopping("loss", patience=2), '
        'tf.keras.callbacks.ReduceLROnPlateau("loss", patience=1)'
    ),
    "ModelCheckpoint, weights": RESUMED.format(
        first=OF_FILE,
        load=WEIGHTS,
        callbacks=CHECKPOINT.format(name="{epoch:02d}.weights.h5", more=", save_weights_only=True"),
    ),
    "ModelCheckpoint, model": RESUMED.format(
        first=OF_FILE, load=MODEL, callbacks=CHECKPOINT.format(name="{epoch:02d}.keras", more="")
    ),
    "CheckpointManager": MANAGER,
    "Checkpoint": LOOP.format(
        load="""model = new_model()
        done = tf.Variable(0, trainable=False)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer, done=done)
    checkpoint.restore(tf.train.latest_checkpoint("saved"))""",
        first="int(done.numpy())",
        save="""done.assign_add(1)
        checkpoint.save("saved/ck")""",
    ),
    "save_weights": LOOP.format(
        load="""model = new_model()
        if os.path.exists("last.weights.h5"):
            model.load_weights("last.weights.h5")""",
        first=COUNTED,
        save=f'model.save_weights("last.weights.h5")\n        {COUNT}',
    ),
    "save, .keras": saved_each_epoch("last.keras", 'model.save("last.keras")'),
    "save, .keras, renamed": saved_each_epoch(
        "last.keras", 'model.save("new.keras")\n        os.replace("new.keras", "last.keras")'
    ),
    "save, .h5": saved_each_epoch("last.h5", 'model.save("last.h5")'),
    "save, SavedModel": saved_each_epoch("saved", 'model.save("saved")'),
    "NumPy": saved_each_epoch(
        "last.npz", 'np.savez("last.npz", *model.get_weights())', "with_weights(new_model())"
    ),
    "pickle": saved_each_epoch(
        "last.pickle",
        'with open("last.pickle", "wb") as file:\n            pickle.dump(model.get_weights(), file)',
        "with_pickled(new_model())",
    ),
}
# Savers that one of the two versions of Keras does not have.
ONLY = {"BackupAndRestore, double": 3, "save, SavedModel": 2}


def program(saver: str) -> str:
    return textwrap.dedent(BEGIN) + textwrap.dedent(SAVERS[saver])


def examined(folder: Path, text: str, keras: int, restart: bool | None = True) -> Examination:
    """Examines a program on two devices, without those runs that compare numbers of devices."""
    (folder / "train.py").write_text(text)
    server = python_process.fork_server()
    spec = ProgramSpec(("train.py",), folder, keras=keras, limit=120, fork_server=server)
    return plan.examine(spec, [2], restart)


def outcomes(examination: Examination) -> dict[Moment, str]:
    """Returns by moment how a restarted program went on."""
    runs = [run for run in examination.recordings if run.role is Role.RESTARTED]
    return {run.moment: outcome(run, run.whole) for run in runs if run.moment and run.whole}


def outcome(run: Recording, whole: Recording) -> str:
    if not run.finished:
        return "fails"
    if restarts.begins_from_zero(run, whole):
        return "starts over"
    mine, theirs = restarts.steps_at_end(run), restarts.steps_at_end(whole)
    if mine != theirs:
        return f"{mine} steps, not {theirs}"
    return restarts.other_end(run, whole) or "goes on"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keras", default="2,3")
    parser.add_argument("savers", nargs="*", default=list(SAVERS))
    options = parser.parse_args()
    for saver in options.savers:
        for keras in map(int, options.keras.split(",")):
            if ONLY.get(saver, keras) == keras:
                with tempfile.TemporaryDirectory() as folder:
                    report(saver, keras, examined(Path(folder), program(saver), keras))


def report(saver: str, keras: int, examination: Examination) -> None:
    ends = outcomes(examination)
    cells = " | ".join(f"{ends.get(moment, 'not killed'):12}" for moment in Moment)
    print(f"{saver:30} Keras {keras} | {cells}", flush=True)
    for finding in examination.findings:
        print(f"    {finding.mode} line {finding.line}: {finding.message} ({finding.proof})")
    for note in filter(None, [*examination.unseen, *examination.notes, examination.failure]):
        print(f"    note: {note}")


if __name__ == "__main__":
    main()
