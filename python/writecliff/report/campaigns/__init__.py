"""Reports of the published campaigns; `results.py` contains their base class."""
