"""What programs are drawn from. The first of each list is the plainest, to which a program that differs is shrunk."""

from hypothesis import strategies as st

from .program import (
    ARRAYS,
    BACKUPS,
    BATCH,
    DATA,
    DISTRIBUTION,
    IN_SCOPE,
    LONG,
    LOOP,
    NUDGES,
    PLAIN,
    SAVES,
    TWO_OUTPUTS,
    Loss,
    Program,
)

DENSE = (
    "keras.layers.Dense(4, activation='relu')",
    "keras.layers.Dense(4, kernel_regularizer='l2')",
    "keras.layers.Dense(4, activity_regularizer='l2')",
    "keras.layers.Dense(4, kernel_constraint='non_neg')",
    "keras.layers.LayerNormalization()",
    "keras.layers.UnitNormalization()",
    "keras.layers.BatchNormalization()",
    "keras.layers.BatchNormalization(synchronized=True)",
    "keras.layers.Dropout(0.5)",
    "keras.layers.GaussianNoise(1.0)",
    "keras.layers.PReLU()",
    "AddsLoss()",
    "Counts('sum')",
    "Counts('mean')",
)
RECURRENT = (
    "keras.layers.LSTM(3)",
    "keras.layers.GRU(3, return_sequences=True)",
    "keras.layers.SimpleRNN(3, dropout=0.5)",
    "keras.layers.Bidirectional(keras.layers.LSTM(2))",
    "keras.layers.Conv1D(3, 3)",
    "keras.layers.TimeDistributed(keras.layers.Dense(2))",
    "keras.layers.SpatialDropout1D(0.5)",
)
CONVOLUTIONS = (
    "keras.layers.Conv2D(2, 3)",
    "keras.layers.DepthwiseConv2D(3)",
    "keras.layers.SeparableConv2D(2, 3)",
    "keras.layers.BatchNormalization()",
    "keras.layers.MaxPooling2D()",
    "keras.layers.RandomFlip()",
    "keras.layers.SpatialDropout2D(0.5)",
)
# For each kind of input the layers that must come first, and those of which some may follow.
LAYERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "vectors": ((), DENSE),
    "sequences": ((), RECURRENT),
    "padded sequences": (("keras.layers.Masking()",), ("keras.layers.LSTM(3)",)),
    "ids": (("keras.layers.Embedding(9, 3)",), RECURRENT),
    "images": ((), CONVOLUTIONS),
    LONG: ((), ("keras.layers.LSTM(3, return_sequences=True)", "keras.layers.Dense(2)")),
}
LOSSES = (
    Loss("keras.losses.MeanSquaredError()", "numbers"),
    Loss("'mse'", "numbers"),
    Loss("'mae'", "numbers"),
    Loss("keras.losses.Huber()", "numbers"),
    Loss("keras.losses.CosineSimilarity()", "numbers"),
    Loss("keras.losses.MeanSquaredError(reduction='sum')", "numbers"),
    Loss("keras.losses.MeanSquaredError(reduction='mean_with_sample_weight')", "numbers"),
    Loss("lambda y, found: tf.reduce_mean(tf.square(y - found), axis=-1)", "numbers"),
    Loss("lambda y, found: tf.reduce_mean(tf.square(y - found))", "numbers"),
    Loss("'mse'", "one number"),
    Loss("'categorical_crossentropy'", "onehot"),
    Loss("keras.losses.SparseCategoricalCrossentropy()", "classes"),
    Loss("keras.losses.SparseCategoricalCrossentropy(ignore_class=1)", "classes"),
    Loss("keras.losses.BinaryCrossentropy(from_logits=True)", "binary"),
    Loss("keras.losses.Dice()", "binary"),
)
OPTIMIZERS = (
    "SGD",
    "Adam",
    "RMSprop",
    "Adagrad",
    "AdamW",
    "Adadelta",
    "Adamax",
    "Lamb",
    "Muon",
    "Nadam",
    "ScheduleFreeAdamW",
)
OPTIONS = (
    "weight_decay=0.1",
    "clipnorm=0.01",
    "clipvalue=0.001",
    "global_clipnorm=0.01",
    "use_ema=True",
    "use_ema=True, ema_overwrite_frequency=2",
    "gradient_accumulation_steps=2",
    "loss_scale_factor=8.0",
)
COMPILED = (
    "metrics=['mae']",
    "weighted_metrics=['mae']",
    "steps_per_execution=2",
    "run_eagerly=True",
    "jit_compile=True",
    "auto_scale_loss=False",
)
MODELS = ("keras.Sequential", "OwnStep", "OwnLoss", TWO_OUTPUTS)
ROWS = (32, 29, 17, 13)
FITTED = (
    "validation_data=(x[:13], y[:13])",
    "sample_weight=random.uniform(0.2, 2, size=len(x)).astype('float32')",
    "callbacks=[Logs()]",
    "initial_epoch=1",
    "steps_per_epoch=1",
    "callbacks=[keras.callbacks.ReduceLROnPlateau('loss', patience=0, min_delta=1.0)]",
)
OF_ARRAYS = "sample_weight", "validation_data"
METHODS = (
    PLAIN,
    "evaluate",
    "predict",
    "train_on_batch",
    "test_on_batch",
    "predict_on_batch",
    IN_SCOPE,
    LOOP,
)
GOES_ON = (ARRAYS, "a tf.data.Dataset", "a PyDataset")  # data of which a later run gets the rest
INTERRUPTIONS = (*SAVES, *BACKUPS)
AGAIN = ("", "fit again")
VALUES = ("finite", "an infinite row")
STRATEGIES = ("MirroredStrategy", DISTRIBUTION)
RARELY = 4  # one of so many programs has such a choice


def some(choices: tuple[str, ...], at_most: int) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(choices), unique_by=argument, max_size=at_most).map(tuple)


def argument(text: str) -> str:
    """Returns the name of the argument that a choice gives, so that none is given twice."""
    return text.partition("=")[0] if "=" in text.partition("(")[0] else text


def rarely(plain: str, *others: str) -> st.SearchStrategy[str]:
    return st.sampled_from((*[plain] * (RARELY * len(others) - len(others)), *others))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Draws all choices, and then leaves out what does not go together.

    The number of draws is the same for each program, so that a plain one is not longer than one that `fit` has no part in.
    """
    inputs, method = draw(st.sampled_from(tuple(LAYERS))), draw(rarely(*METHODS))
    data, rows = draw(st.sampled_from(tuple(DATA))), draw(st.sampled_from(ROWS))
    model, interrupted = draw(rarely(*MODELS)), draw(rarely("", *INTERRUPTIONS))
    again, values = draw(rarely(*AGAIN)), draw(rarely(*VALUES))
    model = model if method in (PLAIN, "evaluate") else MODELS[0]
    data = ARRAYS if model == TWO_OUTPUTS else data
    goes_on = method == PLAIN and data in GOES_ON and model == MODELS[0]
    interrupted = interrupted if goes_on else ""
    first, more = LAYERS[inputs]
    layers = draw(some(layers_for(more, interrupted), 1 if inputs != "vectors" else 2))
    fitted = draw(some(fitted_for(data, rows), 1))
    takes_more = method == PLAIN and not interrupted and model != TWO_OUTPUTS
    return Program(
        inputs=inputs,
        layers=(*first, *layers),
        loss=draw(st.sampled_from(losses_for(inputs, method, interrupted))),
        optimizer=draw(st.sampled_from(OPTIMIZERS)),
        options=draw(some(OPTIONS, 1)),
        compiled=draw(some(compiled_for(model, inputs), 1)),
        model=model,
        data=data,
        rows=rows,
        replicas=draw(st.sampled_from((2, 4))),
        fitted=fitted if takes_more else (),
        method=method,
        policy=draw(rarely(*NUDGES)),
        values=values if inputs != "ids" else VALUES[0],
        strategy=draw(rarely(*STRATEGIES)),
        interrupted=interrupted,
        again=again if goes_on else "",
    )


def losses_for(inputs: str, method: str, interrupted: str) -> tuple[Loss, ...]:
    """Returns the losses whose targets fit; a loop has one of its own, and a file only what is a class of Keras."""
    if method == LOOP:
        return LOSSES[:1]
    fit = [each for each in LOSSES if inputs != LONG or each.targets == "numbers"]
    return tuple(
        each for each in fit if interrupted not in SAVES or each.source.startswith("keras.")
    )


def layers_for(layers: tuple[str, ...], interrupted: str) -> tuple[str, ...]:
    return tuple(each for each in layers if interrupted not in SAVES or each.startswith("keras."))


def compiled_for(model: str, inputs: str) -> tuple[str, ...]:
    """Returns the arguments of `compile`; metrics need one output for each row."""
    one = model != TWO_OUTPUTS and inputs != LONG
    return tuple(each for each in COMPILED if one or "metrics" not in each)


def fitted_for(data: str, rows: int) -> tuple[str, ...]:
    found = FITTED if data == ARRAYS else tuple(each for each in FITTED if not of_arrays(each))
    several = rows > BATCH and data in GOES_ON
    return tuple(each for each in found if several or not each.startswith("steps_per_epoch"))


def of_arrays(choice: str) -> bool:
    return choice.startswith(OF_ARRAYS)
