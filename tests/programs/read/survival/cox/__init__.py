from .cohort import Cohort
from .fit import CoxFit

__all__ = ["Cohort", "CoxFit"]
