"""Random graphs of two communities; which one a node belongs to has to be found from noisy features."""
import numpy as np
import tensorflow as tf

LARGEST, FEATURES = 12, 6


def random_graph(rng, nodes, noise):
    community = rng.integers(0, 2, nodes)
    same = community[:, None] == community[None]
    linked = rng.uniform(size=(nodes, nodes)) < np.where(same, 0.7, 0.1)
    adjacency = np.maximum(linked, linked.T) | np.eye(nodes, dtype=bool)
    direction = np.where(np.arange(FEATURES) % 2, 1.0, -1.0)
    features = np.outer(2 * community - 1, direction) + noise * rng.normal(size=(nodes, FEATURES))
    return features, adjacency / adjacency.sum(1, keepdims=True), community


def padded(graphs):
    x = np.zeros((len(graphs), LARGEST, FEATURES), "float32")
    a = np.zeros((len(graphs), LARGEST, LARGEST), "float32")
    y = np.zeros((len(graphs), LARGEST), "int32")
    mask = np.zeros((len(graphs), LARGEST), "float32")
    for i, (features, adjacency, community) in enumerate(graphs):
        n = len(community)
        x[i, :n], a[i, :n, :n], y[i, :n], mask[i, :n] = features, adjacency, community, 1
    return {"x": x, "a": a, "y": y, "mask": mask}


def dataset(count, batch, seed, noise=2.5):
    """Graphs as they come: small ones first, as in the files of the benchmark."""
    rng = np.random.default_rng(seed)
    sizes = np.sort(rng.integers(3, LARGEST + 1, count))
    return tf.data.Dataset.from_tensor_slices(padded([random_graph(rng, n, noise) for n in sizes])).batch(batch)
