"""Records of verdicts: measured by running notebooks under many setups, compared with new runs, and drawn as the atlas."""
