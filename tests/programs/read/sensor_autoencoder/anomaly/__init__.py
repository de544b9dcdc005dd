"""Detection of anomalies in the vibration of pumps by reconstruction."""
