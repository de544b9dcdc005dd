# Dry beans: which of three kinds is it? 4-fold cross-validation.
# I use tf_keras (Keras 2) because the course material does.
import numpy as np
import tensorflow as tf
import tf_keras as keras

FOLDS = 4
EPOCHS = 3
BATCH = 24
SMOOTH = 0.3

strategy = tf.distribute.MirroredStrategy()
print("devices:", strategy.num_replicas_in_sync)

# ---- data -----------------------------------------------------------------
rng = np.random.default_rng(12)
N = 240
kind = np.sort(rng.integers(0, 3, N))
length = np.array([5.0, 6.5, 7.0])[kind] + rng.normal(0, 0.7, N)
width = np.array([4.0, 4.4, 5.2])[kind] + rng.normal(0, 0.5, N)
area = length * width * rng.normal(0.78, 0.03, N)
roundness = width / length + rng.normal(0, 0.05, N)
X = np.stack([length, width, area, roundness], axis=1).astype("float32")
y = kind.astype("int32")
mix = rng.permutation(N)
X, y = X[mix], y[mix]
fold_of = np.arange(N) % FOLDS


def input_function(features, labels):
    """Every worker makes its part of each batch."""
    def make(context):
        size = context.get_per_replica_batch_size(BATCH)
        data = tf.data.Dataset.from_tensor_slices((features, labels))
        data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
        return data.batch(size, drop_remainder=True)
    return make


def new_model(features):
    normalize = keras.layers.Normalization(mean=features.mean(0), variance=features.var(0))
    return keras.Sequential([
        keras.Input((4,)),
        normalize,
        keras.layers.Dense(12, "relu", kernel_initializer=keras.initializers.HeNormal(seed=1)),
        keras.layers.Dense(3, kernel_initializer=keras.initializers.GlorotUniform(seed=2)),
    ])


def make_train_step(model, optimizer, smooth):
    def step(features, labels):
        with tf.GradientTape() as tape:
            logits = model(features, training=True)
            target = (1 - smooth) * tf.one_hot(labels, 3) + smooth / 3
            losses = keras.losses.categorical_crossentropy(target, logits, from_logits=True)
            loss = tf.reduce_sum(losses) / BATCH
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    @tf.function
    def train_step(features, labels):
        losses = strategy.run(step, args=(features, labels))
        return strategy.reduce("SUM", losses, axis=None)

    return train_step


# ---- cross-validation -----------------------------------------------------
accuracies = []
norms = []
for fold in range(FOLDS):
    train, test = fold_of != fold, fold_of == fold
    with strategy.scope():
        model = new_model(X[train])
        optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
        optimizer.build(model.trainable_variables)
        smooth = tf.Variable(SMOOTH, trainable=False)
    train_step = make_train_step(model, optimizer, smooth)
    batches = strategy.distribute_datasets_from_function(input_function(X[train], y[train]))
    for epoch in range(EPOCHS):
        smooth.assign(SMOOTH * 0.3 ** epoch)  # softer labels in the beginning
        losses = [float(train_step(features, labels)) for features, labels in batches]
    predicted = model(X[test]).numpy().argmax(1)
    accuracies.append(np.mean(predicted == y[test]))
    norms.append(np.abs(model.get_weights()[-2]).sum())
    print(f"fold {fold}: loss {losses[-1]:.4f} accuracy {accuracies[-1]:.4f}")
    np.savez(f"fold_{fold}.npz", *model.get_weights())

# ---- all four models vote ---------------------------------------------------
vote = np.zeros((N, 3))
for fold in range(FOLDS):
    member = new_model(X[fold_of != fold])
    with np.load(f"fold_{fold}.npz") as saved:
        member.set_weights([saved[name] for name in saved.files])
    vote += tf.nn.softmax(member(X)).numpy()
print(f"mean accuracy {np.mean(accuracies):.4f} last kernels {np.mean(norms):.4f} "
      f"vote {np.mean(vote.argmax(1) == y):.4f} certainty {vote.max(1).mean() / FOLDS:.4f}")
