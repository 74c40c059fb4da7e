"""Reports of the published campaigns; `results.py` has their base class."""
