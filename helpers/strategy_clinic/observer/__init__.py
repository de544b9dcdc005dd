"""What goes along into the reader's process and writes down facts. It stands alone: it imports nothing of the rooms beside it."""
