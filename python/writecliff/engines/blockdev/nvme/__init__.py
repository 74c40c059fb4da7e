"""NVMe commands sent through nvme-cli.

Modules: controllers of a namespace (`topology`), commands (`drive`), data structures (`pages`),
    volatile write cache (`cache`), format and sanitize (`erase`), flash write counters (`media`),
    flexible data placement (`fdp`), streams (`streams`), power states (`power`), and drives served
    over NVMe/TCP (`fabrics`). Data structures are read as bytes in the standard's layout, because
    nvme-cli's text and JSON output differs between versions.
"""
