"""The sweep: every class of Keras that trains, measures or saves, on several replicas and compared with one device."""
