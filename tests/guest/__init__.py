"""The bench: emulated drives in a small virtual machine, and how to run something in it.

`python -m tests.guest` is its command line; `docs/guides/drive-bench.md` says how to use it.

`fetch` brings emulator, kernels and tools into a cache (`debian` and `programs` below it), `first_root`
makes the guest's first root file system, `drives` names the drives, `machine` starts QEMU, `job` runs a
command in it. `init.sh` and `start.sh` run in the guest, before and after its root is the machine's own.
"""
