"""Code as people paste it into a report: for each pattern in the words of a mode, a piece that has what the mode is about."""

PIECES = [
    ("fm01", "def step(x):\n    y = model(x)\n    log.append(model.get_weights()[0])\n\nstrategy.run(step, args=(x,))"),
    ("fm02", "def step(x):\n    loss = model(x)\n    return strategy.reduce('SUM', loss)\n\nstrategy.run(step, args=(x,))"),
    ("fm37", "def step(x):\n    loss = tf.reduce_mean(loss_of(x))\n    return loss\n\nstrategy.run(step, args=(x,))"),
    ("fm39", "loss = strategy.run(step, args=(x,))\ntotal += loss\ntotal = total + 0\nprint(float(loss))"),
    ("fm20", "all_losses = strategy.gather(loss, axis=0)"),
    ("fm31", "with strategy.scope():\n    for x in data:\n        with tf.GradientTape() as tape:\n            y = model(x)"),
    ("fm03", "net = build()\nwith strategy.scope():\n    net.compile('adam', 'mse')"),
    ("fm25", "strategy = tf.distribute.MirroredStrategy()\nm = keras.models.load_model('m')\nm.fit(x, y)"),
    ("fm23", "mean = tf.Variable(0.0)\nwith strategy.scope():\n    pass\ndef step(x):\n    mean.assign_add(x)\n"),
    ("fm36", "a = tf.distribute.MirroredStrategy(two)\nrun(a)\nb = tf.distribute.MirroredStrategy(four)\n"),
    ("fm36", "for n in (1, 2, 4):\n    strategy = tf.distribute.MirroredStrategy(gpus[:n])\n"),
    ("fm53", "strategy = tf.distribute.MirroredStrategy()\nfor x, y in data:\n    model.train_on_batch(x, y)"),
    ("fm47", "strategy = MultiWorkerMirroredStrategy()\nmodel.fit(x)\nmodel.save('/shared/model')"),
    ("fm59", "strategy = MultiWorkerMirroredStrategy()\ndata = data.shard(2, task)\nfor x in data:\n    step(x)"),
    ("fm41", "seed = tf.constant(3)\ndata = read()\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()"),
    ("fm07", "@tf.function\ndef step(x):\n    noise = np.random.normal(size=3)\n    return x + noise"),
    ("fm07", "def rmse(y_true, y_pred):\n    return np.sqrt(np.mean((y_true - y_pred) ** 2))"),
    ("fm12", "class Block(Layer):\n    def call(self, x):\n        return layers.Dense(4)(x)"),
    ("fm12", "def yolo_loss(y, p):\n    seen = tf.Variable(0.)\n    return seen"),
    ("fm33", "@tf.function\ndef f(n):\n    for i in tf.range(n):\n        parts.append(i)"),
    ("fm33", "class Cell(Layer):\n    def call(self, x):\n        self.last = tf.matmul(x, x)\n        return x"),
    ("fm40", "strategy = MirroredStrategy()\nclass M(Model):\n    @tf.function\n    def train_step(self, data):\n        pass"),
    ("fm40", "strategy = MirroredStrategy()\nopt = Adam(gradient_accumulation_steps=4)"),
    ("fm43", "@tf.function\ndef train(x, y, step):\n    return x"),
    ("fm58", "with MirroredStrategy().scope():\n    model.compile('sgd', steps_per_execution=8)"),
    ("fm54", "fit(callbacks=[BackupAndRestore('b'), ModelCheckpoint('best.keras', save_best_only=True)])"),
    ("fm61", "strategy = MirroredStrategy()\nfor batch in data:\n    loss = strategy.run(step, args=(batch,))\n"),
    ("fm61", "model.compile('sgd', 'mse', run_eagerly=True)"),
    ("fm63", "strategy = MirroredStrategy()\ndata = tf.data.Dataset.from_generator(make, tf.float32)"),
    ("fm77", "data = data.shuffle(1000, seed=1)\ncheckpoint.restore(tf.train.latest_checkpoint('saved'))"),
    ("fm64", "def batches():\n    yield x, y\nstrategy = MirroredStrategy()\nmodel.fit(batches(), epochs=2)"),
    ("fm65", "self.blocks.append(layers.Dense(8))\ntf.train.Checkpoint(model=net).save('c')"),
    ("fm66", "class Scale(layers.Layer):\n    def __init__(self):\n        self.factor = tf.Variable(1.0)"),
    ("fm67", "    def call(self, x):\n        if tf.reduce_max(x) > 1:\n            return x / 2\n        return x"),
    ("fm68", "    def train_step(self, data):\n        return {'loss': loss}"),
    ("fm68", "with strategy.scope():\n    pass\n    def train_step(self, data):\n        self.tracker.update_state(loss)"),
    ("fm69", "m.fit(x, y, callbacks=[BackupAndRestore('b')])\nm.fit(x, y, epochs=3)"),
    ("fm70", "@tf.function\ndef step(x):\n    return model(x)\nfor fold in range(5):\n    model = make()"),
    ("fm72", "class Net(keras.Model):\n    def __init__(self, units=8, **kwargs):\n        pass\nload_model('n.keras')"),
    ("fm73", "body = tf_keras.layers.Dense(8)\nmodel = tf.keras.Sequential([body])"),
    ("fm74", "tf.saved_model.save(net, 'out')\nf = tf.saved_model.load('out').signatures['serving_default']"),
    ("fm76", "options = tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)\nmanager.save(options=options)"),
    ("fm78", "strategy = tf.distribute.MultiWorkerMirroredStrategy()\nwith strategy.scope():\n    m = make()\nm.fit(data)"),
    ("fm57", "keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices))"),
    ("fm43", "for x in data:\n    f = tf.function(lambda y: y + 1)\n"),
    ("fm15", "@tf.function\ndef f(x):\n    if step % 4 == 0:\n        opt.apply_gradients(zip(sums, variables))"),
    ("fm15", "tf.cond(ready, lambda: self.apply_all(), lambda: None)"),
    ("fm13", "pairs = [(g, v) for g, v in pairs if g is not None]"),
    ("fm13", "sums = [a + b for a, b in zip(grads_sum, grads)]"),
    ("fm11", "class Net(tf.keras.Model):\n    pass\nnet = Net()\nnet.summary()"),
    ("fm11", "sums = [tf.Variable(tf.zeros_like(v)) for v in model.trainable_variables]"),
    ("fm10", "opt.apply_gradients(zip(a, gen.trainable_variables))\nopt.apply_gradients(zip(b, disc.trainable_variables))"),
    ("fm10", "m.fit(x, y)\nbase.trainable = True\nm.fit(x, y)"),
    ("fm34", "with tf.GradientTape() as tape:\n    y = model.predict(x)\n    loss = mse(y)"),
    ("fm34", "def my_loss(a, b):\n    return K.mean(tf.argmax(b))"),
    ("fm14", "second = copy.deepcopy(first)"),
    ("fm14", "second = keras.models.clone_model(first)"),
    ("fm05", "for n in sizes:\n    self.blocks.append(layers.Dense(n))"),
    ("fm05", "class Net(Model):\n    def __init__(self):\n        self.u = self.add_weight('u', [4])\nnet.save_weights('w.h5')"),
    ("fm06", "model.load_weights('w.h5', by_name=True)"),
    ("fm08", "saver.restore(sess, 'run/model.ckpt-10.index')"),
    ("fm35", "class Net(Model):\n    pass\nnet = Net()\ntf.train.Checkpoint(net=net).restore(path)\nprint(net.predict(x))"),
    ("fm26", "par = multi_gpu_model(m, gpus=2)\npar.fit(x, y)\npar.save_weights('w.h5')"),
    ("fm46", "rate = tf.keras.optimizers.schedules.CosineDecay(0.1, 100)\nmodel.load_weights(path)"),
    ("fm21", "data = strategy.distribute_datasets_from_function(make)"),
    ("fm18", "x = strategy.experimental_split_to_logical_devices(x, [1, 2])"),
    ("fm28", "np.save('w.npy', np.array(model.get_weights()))"),
]  # fmt: skip
# As the guide on distributed training has it, and what every program of one device has.
CORRECT = [
    """
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = create_model()
    optimizer = tf.keras.optimizers.Adam()
    def compute_loss(labels, predictions):
        return tf.nn.compute_average_loss(loss_object(labels, predictions), global_batch_size=GLOBAL)
    def train_step(inputs):
        images, labels = inputs
        with tf.GradientTape() as tape:
            loss = compute_loss(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

@tf.function
def distributed_train_step(inputs):
    per_replica_losses = strategy.run(train_step, args=(inputs,))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)
""",
    """
class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(10)
    def call(self, x):
        return self.dense(x)

net = Net()
net.compile('adam', 'mse')
net.fit(x, y, epochs=3)
net.save_weights('w.weights.h5')
print(np.mean(net.predict(x)))
""",
    """
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1), tf.keras.layers.BatchNormalization()])
    model.compile('adam', 'mse', metrics=[rmse], jit_compile=True)
model.fit(data.repeat(), epochs=2, steps_per_epoch=10)
model.save('m.keras')
""",
]
