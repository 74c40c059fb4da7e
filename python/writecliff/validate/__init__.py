"""The simulator against what is known to be right."""
