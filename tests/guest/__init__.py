"""Drive bench: emulated drives in a small virtual machine, and ways to run commands in it.

`python -m tests.guest` is its command line; `docs/guides/drive-bench.md` describes its use.

`fetch` downloads the emulator, kernel and tools into a cache (with `debian` and `programs`),
`first_root` creates the guest's first root file system, `drives` defines its drives, `machine`
starts QEMU, `job` runs a command in the guest and `testing` runs all drive tests. `init.sh` and
`start.sh` run in the guest, before and after the machine's own root is mounted; tests in the guest
use `qmp`; `counting` and `figures` generate the table at the end.
"""
