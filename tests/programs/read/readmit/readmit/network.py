"""The network, the loss and the score by which the hospital judges it."""
import keras
from keras import ops


class FocalLoss(keras.losses.Loss):
    """Binary focal loss of logits: easy admissions count for little."""

    def __init__(self, gamma=1.5, alpha=0.6, name="focal", **kwargs):
        super().__init__(name=name, **kwargs)
        self.gamma, self.alpha = gamma, alpha

    def call(self, y_true, y_pred):
        return focal(y_true, y_pred, self.gamma, self.alpha)


def focal(y_true, y_pred, gamma=1.5, alpha=0.6):
    y_true = ops.cast(y_true, y_pred.dtype)
    entropy = ops.binary_crossentropy(y_true, y_pred, from_logits=True)
    right = ops.exp(-entropy)
    weight = y_true * alpha + (1 - y_true) * (1 - alpha)
    return ops.mean(weight * (1 - right) ** gamma * entropy, axis=-1)


class FBeta(keras.metrics.Metric):
    """F-beta over all examples that were seen since the last reset."""

    def __init__(self, beta=2.0, name="f2", **kwargs):
        super().__init__(name=name, **kwargs)
        self.beta = beta
        self.hits = self.add_weight(name="hits", initializer="zeros")
        self.called = self.add_weight(name="called", initializer="zeros")
        self.real = self.add_weight(name="real", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        real = ops.cast(y_true, "float32")
        called = ops.cast(y_pred > 0.0, "float32")
        self.hits.assign_add(ops.sum(real * called))
        self.called.assign_add(ops.sum(called))
        self.real.assign_add(ops.sum(real))

    def result(self):
        square = self.beta ** 2
        return (1 + square) * self.hits / ops.maximum(square * self.real + self.called, 1e-7)


def build(settings, width):
    dense = keras.Input((width,), name="row")
    zip_code = keras.Input((), name="place", dtype="int64")
    place = keras.layers.Embedding(settings.zip_bins, 3)(zip_code)
    x = keras.layers.Concatenate()([dense, place])
    x = keras.layers.Dense(settings.hidden, "relu")(x)
    x = keras.layers.Dense(settings.hidden // 2, "relu")(x)
    model = keras.Model({"row": dense, "place": zip_code}, keras.layers.Dense(1)(x), name="readmit")
    model.compile(
        optimizer=keras.optimizers.Adam(settings.learning_rate),
        loss=FocalLoss(),
        metrics=[FBeta(), keras.metrics.BinaryAccuracy(threshold=0.0, name="acc")],
    )
    return model
