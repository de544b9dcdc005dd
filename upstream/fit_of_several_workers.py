import json
import os
import subprocess
import sys

import keras
import tensorflow as tf


def report():
    with tf.distribute.MultiWorkerMirroredStrategy().scope():
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    try:
        print(len(model.fit(tf.ones((8, 1)), tf.ones((8, 1)), verbose=0).epoch), flush=True)
    finally:
        os._exit(0)


if "TF_CONFIG" in os.environ:
    report()
cluster = {"worker": ["localhost:25471", "localhost:25472"]}
tasks = [{"cluster": cluster, "task": {"type": "worker", "index": index}} for index in (0, 1)]
run = [sys.executable, __file__]
workers = [
    subprocess.Popen(run, env=os.environ | {"TF_CONFIG": json.dumps(task)}, stdout=-1)
    for task in tasks
]
got = [worker.communicate()[0].decode().split() for worker in workers]
print(f"epochs of two workers: got {got}, expected [['1'], ['1']]")
