"""The experiments of all modes as programs on which the examiner is measured, and how it does on them."""
