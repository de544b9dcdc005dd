"""Shows what each replica holds in the first steps of a program, beside one device with the same examples."""
