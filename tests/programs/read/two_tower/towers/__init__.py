"""Two-tower retrieval: a user tower over the reading history, an item tower over ids and topics."""
