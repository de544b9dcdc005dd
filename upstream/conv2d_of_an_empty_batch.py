import tensorflow as tf

images, kernel = tf.zeros((0, 8, 8, 3)), tf.ones((3, 3, 3, 4))
got = tuple(tf.nn.conv2d(images, kernel, strides=1, padding="VALID").shape)
print(f"shape of a convolution of no images: got {got}, expected (0, 6, 6, 4)")
