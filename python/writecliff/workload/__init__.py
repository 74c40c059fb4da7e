"""Workload model, workload files and fio job files."""
