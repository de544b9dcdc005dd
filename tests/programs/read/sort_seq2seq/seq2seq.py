"""Learns to sort short sequences of digits: GRU encoder, attention, greedy decoding."""
import keras
import numpy as np
import tensorflow as tf

PAD, START, FIRST = 0, 1, 2
SYMBOLS, LONGEST = 8, 5


def sequences(rows, seed):
    rng = np.random.default_rng(seed)
    source = np.full((rows, LONGEST), PAD, np.int32)
    target = np.full((rows, LONGEST), PAD, np.int32)
    for i in range(rows):
        digits = rng.integers(FIRST, SYMBOLS, rng.integers(2, LONGEST + 1))
        source[i, :len(digits)], target[i, :len(digits)] = digits, np.sort(digits)
    return source, target


class Seq2Seq(keras.Model):
    def __init__(self, units=24):
        super().__init__()
        self.embed = keras.layers.Embedding(SYMBOLS, units)
        self.reader = keras.layers.GRU(units, return_sequences=True, return_state=True)
        self.writer = keras.layers.GRU(units, return_sequences=True, return_state=True)
        self.attend = keras.layers.Attention()
        self.logits = keras.layers.Dense(SYMBOLS)

    def encode(self, source):
        return self.reader(self.embed(source))

    def decode(self, inputs, state, memory, source):
        out, state = self.writer(self.embed(inputs), initial_state=state)
        context = self.attend([out, memory], mask=[None, source != PAD])
        return self.logits(tf.concat([out, context], -1)), state

    def call(self, pair):
        source, inputs = pair
        memory, state = self.encode(source)
        return self.decode(inputs, state, memory, source)[0]

    def greedy(self, source):
        memory, state = self.encode(source)
        symbol = tf.fill([tf.shape(source)[0], 1], START)
        written = []
        for _ in range(LONGEST):
            logits, state = self.decode(symbol, state, memory, source)
            symbol = tf.argmax(logits, -1, tf.int32)
            written.append(symbol)
        return tf.concat(written, 1) * tf.cast(source != PAD, tf.int32)


def shifted(target):
    return tf.concat([tf.fill([tf.shape(target)[0], 1], START), target[:, :-1]], 1)


def train(strategy, folder, rows=320, batch=32, epochs=6):
    with strategy.scope():
        model = Seq2Seq()
        model([tf.zeros((1, LONGEST), tf.int32)] * 2)
        optimizer = keras.optimizers.SGD(0.5, momentum=0.9)
        optimizer.build(model.trainable_variables)

    def learn(source, target):
        mask = tf.cast(target != PAD, tf.float32)
        with tf.GradientTape() as tape:
            logits = model([source, shifted(target)])
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(target, logits)
            per_sequence = tf.reduce_sum(losses * mask, 1) / tf.reduce_sum(mask, 1)
            loss = tf.nn.compute_average_loss(per_sequence, global_batch_size=batch)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def step(source, target):
        return strategy.reduce("SUM", strategy.run(learn, args=(source, target)), axis=None)

    data = tf.data.Dataset.from_tensor_slices(sequences(rows, seed=1)).batch(batch, drop_remainder=True)
    batches = strategy.experimental_distribute_dataset(data)
    for epoch in range(epochs):
        losses = [float(step(source, target)) for source, target in batches]
        print(f"epoch {epoch + 1} loss {np.mean(losses):.4f}")
    return np.mean(losses), tf.train.Checkpoint(model=model).save(f"{folder}/sorter")


def load(strategy, path):
    with strategy.scope():
        model = Seq2Seq()
        model([tf.zeros((1, LONGEST), tf.int32)] * 2)
        tf.train.Checkpoint(model=model).restore(path).assert_existing_objects_matched()
    return model


def evaluate(strategy, model, rows=90, batch=32):
    """Symbols and whole sequences that greedy decoding gets right."""
    data = tf.data.Dataset.from_tensor_slices(sequences(rows, seed=2)).batch(batch)

    @tf.function(reduce_retracing=True)
    def decode(source):
        return strategy.run(model.greedy, args=(source,))

    written, wanted = [], []
    for source, target in strategy.experimental_distribute_dataset(data):
        written.append(strategy.gather(decode(source), axis=0).numpy())
        wanted.append(strategy.gather(target, axis=0).numpy())
    written, wanted = np.concatenate(written), np.concatenate(wanted)
    right = (written == wanted)[wanted != PAD]
    return right.mean(), (written == wanted).all(1).mean()


if __name__ == "__main__":
    keras.utils.set_random_seed(7)
    strategy = tf.distribute.MirroredStrategy()
    loss, path = train(strategy, "sorted")
    symbols, whole = evaluate(strategy, load(strategy, path))
    print(f"loss {loss:.4f} right symbols {symbols:.4f} right sequences {whole:.4f}")
