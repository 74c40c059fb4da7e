"""Reports of the published campaigns, what they share (`results.py`), and comparisons of two runs
(`improvement.py`).
"""
