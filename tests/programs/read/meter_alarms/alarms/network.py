import keras


class Block(keras.layers.Layer):
    def __init__(self, units, seed, **options):
        super().__init__(**options)
        self.wide = keras.layers.Dense(2 * units, "gelu", kernel_initializer=keras.initializers.HeNormal(seed))
        self.narrow = keras.layers.Dense(units, kernel_initializer=keras.initializers.HeNormal(seed + 1))
        self.norm = keras.layers.LayerNormalization()

    def call(self, x):
        return x + self.narrow(self.wide(self.norm(x)))


class LeakNet(keras.Model):
    def __init__(self, units=24, seed=0):
        super().__init__()
        self.enter = keras.layers.Dense(units, kernel_initializer=keras.initializers.HeNormal(seed))
        self.first, self.second = Block(units, seed + 10), Block(units, seed + 20)
        self.leave = keras.layers.Dense(1, kernel_initializer=keras.initializers.GlorotUniform(seed + 30))

    def call(self, flow):
        return self.leave(self.second(self.first(self.enter(flow))))[:, 0]
