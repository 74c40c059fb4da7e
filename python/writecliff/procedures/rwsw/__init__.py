"""The tests of SNIA's Real World Storage Workload PTS (RWSW, 1.0.7) for an I/O capture.

    capture_options.py  options of all of them; the capture and its applied workload
    mix.py              I/O streams as the load of a job
    replay_native.py    the time steps of the capture, each with its own streams and queue depth
    multi_wsat.py       the applied workload, all streams at once
    is_wsat.py          each stream alone
    tcqd.py             the applied workload by thread count and queue depth

The document was not at hand: numbers that are said to be its (9 streams, 80 %, time steps of 1 s to
10 min) are recalled, and those of the tests' loops are the ones of WSAT and DIRTH in PTS-E 1.1.
"""
