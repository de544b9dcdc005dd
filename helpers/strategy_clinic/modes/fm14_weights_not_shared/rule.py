"""Says why the examiner cannot see fm14."""

from ...examiner.rule import Undetectable

NO_RULE = Undetectable("fm14", "two layers of one shape may be meant to be two")
