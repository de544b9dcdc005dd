"""A small character model for product names."""
