"""From a pasted error to its failure mode. Another way in which an error is worded goes into `wordings/`."""
