"""Comparison of simulated drives with published figures, and the fits of the presets."""
