"""Importing this before nbformat saves a second: jsonschema would build a grammar of international addresses, which no
notebook holds."""

import sys

sys.modules.setdefault("rfc3987_syntax", None)
