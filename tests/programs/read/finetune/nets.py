import keras


def trunk():
    """What both jobs share: readings of nine sensors to eight features."""
    return keras.Sequential([
        keras.Input((9,)),
        keras.layers.Dense(20, "elu", kernel_initializer=keras.initializers.HeNormal(seed=31)),
        keras.layers.LayerNormalization(),
        keras.layers.Dense(8, "elu", kernel_initializer=keras.initializers.HeNormal(seed=32)),
    ], name="trunk")


def with_head(body, outputs, seed, name):
    head = keras.layers.Dense(outputs, kernel_initializer=keras.initializers.HeNormal(seed=seed), name=name)
    return keras.Model(body.inputs, head(body.outputs[0]), name=f"{name}_model")
