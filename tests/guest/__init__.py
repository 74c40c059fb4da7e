"""The bench: emulated drives in a small virtual machine, and ways to run commands in it.

`python -m tests.guest` is its command line; `docs/guides/drive-bench.md` describes its use.

`fetch` brings emulator, kernel and tools into a cache (with `debian` and `programs`), `first_root` makes the
guest's first root file system, `drives` says which drives it has, `machine` starts QEMU, `job` runs a command
in it and `testing` all drive tests. `init.sh` and `start.sh` run in the guest, before and after its root is the
machine's own; `qmp` is for tests in there; `counting` and `figures` make the table at the end.
"""
