NUMBERS = ("age", "km", "power", "years")
BATCH = 48
