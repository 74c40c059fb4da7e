"""Comparisons of simulated drives with published figures, and the fits behind the presets."""
