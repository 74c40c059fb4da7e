"""Validation of the simulator against theory, recorded runs and published figures."""
