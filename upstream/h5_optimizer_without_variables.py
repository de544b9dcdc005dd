import keras
import numpy as np

x, y = np.ones((8, 1), "float32"), np.ones((8, 1), "float32")
model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
model.compile("sgd", keras.losses.MeanSquaredError())
model.fit(x, y, verbose=0)
model.save("model.h5")
loaded = keras.models.load_model("model.h5")
try:
    loaded.fit(x, y, verbose=0)
    result = "trained"
except ValueError as error:
    result = str(error).partition(":")[0]
print(f"fit of a model that was loaded: got {result}, expected trained")
