"""What hosts do: the one definition of a workload, and fio's job files and JSON."""
