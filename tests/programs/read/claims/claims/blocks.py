import functools

import keras

BLOCKS = {}


def block(function):
    BLOCKS[function.__name__] = function
    return function


seeds = functools.partial(next, iter(range(100, 200)))


@block
def dense(x, units, **options):
    return keras.layers.Dense(units, kernel_initializer=keras.initializers.LecunNormal(seed=seeds()), **options)(x)


@block
def norm(x, **options):
    return keras.layers.BatchNormalization(**options)(x)


@block
def swish(x):
    return keras.ops.silu(x)


RECIPE = [
    ("dense", {"units": 24, "use_bias": False}),
    ("norm", {"momentum": 0.7, "synchronized": True}),
    ("swish", {}),
    ("dense", {"units": 12}),
    ("swish", {}),
    ("dense", {"units": 1, "activation": "sigmoid"}),
]


def network():
    numbers = keras.Input((4,), name="numbers")
    region = keras.Input((), name="region", dtype="int32")
    place = keras.layers.Embedding(6, 3, embeddings_initializer=keras.initializers.RandomNormal(0, 0.5, seed=seeds()))(region)
    x = keras.layers.Concatenate()([numbers, place])
    for name, options in RECIPE:
        x = BLOCKS[name](x, **options)
    return keras.Model({"numbers": numbers, "region": region}, x)
