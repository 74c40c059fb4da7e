"""Commands to NVMe drives through nvme-cli.

Modules: controllers of a namespace (`topology`), commands (`drive`), data structures (`pages`),
volatile write cache (`cache`), format and sanitize (`erase`), bytes written to flash (`media`),
flexible data placement (`fdp`), streams (`streams`), power states (`power`), and drives that are
served over NVMe/TCP (`fabrics`). Data are read as bytes in the layout of the standard, because the
text and JSON of nvme-cli differ between versions.
"""
