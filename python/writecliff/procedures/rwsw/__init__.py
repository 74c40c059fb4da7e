"""Tests of SNIA's Real World Storage Workload PTS (RWSW, 1.0.7), which use an I/O capture.

    capture_options.py  their options; the capture and its applied workload
    mix.py              I/O streams as the load of a job
    replay_native.py    the time steps of the capture, each with its streams and queue depth
    multi_wsat.py       the applied workload, all streams at once
    is_wsat.py          each stream alone
    tcqd.py             the applied workload by thread count and queue depth

The RWSW document was not available for this implementation. Its parameters (9 streams, 80 %, time
steps of 1 s to 10 min) are quoted from memory; the loop parameters are from WSAT and DIRTH in PTS-E
1.1.
"""
