"""The tests, and the framework that runs them on any engine."""
