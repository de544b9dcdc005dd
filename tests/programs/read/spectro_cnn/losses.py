import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("sounds")
class FocalLoss(keras.losses.Loss):
    """Cross entropy that looks away from what is already right."""

    def __init__(self, gamma=1.5, name="focal", **kwargs):
        super().__init__(name=name, **kwargs)
        self.gamma = gamma

    def call(self, y_true, y_pred):
        y_true = tf.cast(tf.reshape(y_true, [-1]), tf.int32)
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(y_true, y_pred)
        return tf.pow(1.0 - tf.exp(-nll), self.gamma) * nll
