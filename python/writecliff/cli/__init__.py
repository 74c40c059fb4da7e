"""The command line: commands, tables, progress, exit codes."""
