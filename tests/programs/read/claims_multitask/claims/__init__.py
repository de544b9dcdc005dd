"""Fraud and amount of insurance claims, learnt together."""
