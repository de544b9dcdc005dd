"""How each kind of row is measured: a function returns the values that one device and several replicas must share."""
