"""Topic classification of short newswire items."""
