"""The desk's records: who borrowed which book."""
import numpy as np

READERS, BOOKS, TASTES = 64, 80, 4


class Records:
    def __init__(self, seed=3):
        rng = np.random.default_rng(seed)
        readers = rng.normal(size=(READERS, TASTES))
        books = rng.normal(size=(BOOKS, TASTES))
        liking = np.exp(1.2 * readers @ books.T)
        liking /= liking.sum(1, keepdims=True)
        loans = [(reader, book) for reader in range(READERS) for book in rng.choice(BOOKS, 14, False, liking[reader])]
        loans = np.array(loans, "int32")
        last = np.arange(len(loans)) % 14 >= 12
        self.known, self.later = loans[~last], loans[last]

    def epoch(self, number, others):
        """Loans in the order of an epoch, each beside books that were drawn from the shelves."""
        rng = np.random.default_rng([40, number])
        order = rng.permutation(len(self.known))
        drawn = rng.integers(0, BOOKS, (len(order), others)).astype("int32")
        reader, book = self.known[order].T
        return reader, book, drawn
