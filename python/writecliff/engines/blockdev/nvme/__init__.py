"""NVMe drives: the commands that are sent to them through nvme-cli, and what they answer.

Owns: finding the controller of a namespace (`topology`), sending commands (`drive`), the layout of
answers (`pages`), volatile write cache (`cache`), erasing (`erase`, `format`, `sanitize`), counters
of flash (`media`, `vendors`), flexible data placement (`fdp`), and attaching drives that are served
over NVMe/TCP (`fabrics`). Answers are read as bytes, in the layout of the standard, because the
text and JSON of nvme-cli differ between its versions.
"""
