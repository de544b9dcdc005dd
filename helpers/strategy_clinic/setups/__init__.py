"""What a reader can switch: strategies, device counts, save formats, Keras, and what this machine has of them."""
