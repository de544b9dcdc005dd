import keras
import numpy as np

x, y = np.ones((4, 1), "float32"), np.zeros((4, 1), "float32")
for jit_compile in (False, True):
    for built in ("by fit", "before fit"):
        dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
        model = keras.Sequential([keras.Input((1,)), dense])
        model.compile(keras.optimizers.ScheduleFreeAdamW(1e-3), "mse", jit_compile=jit_compile)
        if built == "before fit":
            model.optimizer.build(model.trainable_variables)
        model.fit(x, y, epochs=1, verbose=0)
        weight = round(float(model.get_weights()[0][0, 0]), 3)
        print(
            f"built {built}, jit_compile={jit_compile}, the weight 1.0 after a step: got {weight}, expected 0.999"
        )
