"""Classes of Keras 3 on several replicas of TensorFlow, compared with one device: `pytest --pyargs replica_cells`."""
