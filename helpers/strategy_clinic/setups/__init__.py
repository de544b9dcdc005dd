"""What a reader can choose: strategies, device counts, save formats and Keras, and what this machine has of them."""
