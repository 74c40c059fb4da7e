"""fio's I/O engines, both synchronous engines and engines that do not use a drive."""

from __future__ import annotations

SYNCHRONOUS = frozenset(
    (
        "sync", "psync", "vsync", "pvsync", "pvsync2", "splice", "libcufile", "libhipfile",
        "cpp_null", "libzbc",
    )
)  # fmt: skip
ASYNCHRONOUS = frozenset(
    (
        "libaio", "io_uring", "io_uring_cmd", "posixaio", "solarisaio", "windowsaio", "sg", "null",
        "nbd", "rbd", "xnvme", "libblkio", "libiscsi", "spdk", "spdk_bdev", "guasi",
    )
)  # fmt: skip

_OTHERS: dict[str, str] = {
    "uses the processor, not a drive": "cpuio",
    "runs programs and does no I/O of its own": "exec",
    "faults memory in; no drive is involved": "page_fault",
    "sends and receives over a network; no drive is involved": "net netsplice rdma",
    "creates, looks up or removes files and directories; a drive has none": (
        "filecreate filestat filedelete dircreate dirstat dirdelete"
    ),
    "changes the layout of files, which a file system does; a drive has none": (
        "falloc ftruncate e4defrag"
    ),
    "reads and writes files or objects of a server, not a drive": (
        "nfs gfapi gfapi_async libhdfs dfs ime_psync ime_psyncv ime_aio rados http"
    ),
    "reads and writes bare flash without a controller": "mtd",
    "reads and writes persistent memory, not a drive": "libpmem dev-dax pmemblk",
    "touches mapped memory; the kernel decides what reaches the drive": "mmap",
}
NOT_A_DRIVE = {name: reason for reason, names in _OTHERS.items() for name in names.split()}

# Options that only these and other engines support. Each engine states which options it supports.
ENGINE_OPTIONS = (
    "cpuload cpumode cpuchunks exit_on_io_done pool cont chunk_size/chunck_size object_class svcl "
    "donorname inplace program arguments grace_time std_redirect stat_type volume brick "
    "single-instance/single_instance https http_host http_user http_pass http_s3_key "
    "http_s3_keyid http_s3_security_token http_swift_auth_token http_s3_region "
    "http_s3_sse_customer_key http_s3_sse_customer_algorithm http_s3_storage_class http_mode "
    "http_verbose http_object_mode libblkio_driver libblkio_path libblkio_pre_connect_props "
    "libblkio_num_entries libblkio_queue_size libblkio_pre_start_props libblkio_vectored "
    "libblkio_write_zeroes_on_trim libblkio_wait_mode libblkio_force_enable_completion_eventfd "
    "gpu_dev_ids cuda_io rocm_io namenode hostname port hdfsdirectory hdfs_use_direct initiator "
    "skip_bad uri protocol/proto nodelay listen pingpong interface ttl window_size mss nfs_url "
    "clustername clientname conf busy_poll touch_objects rbdname rbd_encryption_format "
    "rbd_encryption_passphrase bindname verb no_completion_thread xnvme_be xnvme_mem xnvme_async "
    "xnvme_sync xnvme_admin xnvme_dev_nsid xnvme_dev_subnqn xnvme_iovec thp"
)
