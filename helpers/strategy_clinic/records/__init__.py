"""Notebooks run under many setups: kept, compared, drawn as the atlas."""
