"""Tests of the standard, and the framework that runs them on any engine."""
