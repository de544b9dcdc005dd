"""Makes pump.weights.h5 from a healthy pump. It was run once, on one device."""
import keras

import detector

keras.utils.set_random_seed(1)
model = detector.autoencoder()
model.compile("adam", "mse")
healthy, _ = detector.stream(2000, 1, broken=0)
model.fit(healthy, healthy, epochs=30, batch_size=20, verbose=0)
model.save_weights("pump.weights.h5")
