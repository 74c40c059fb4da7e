"""Validates the simulator against theory, recorded runs and published figures."""
