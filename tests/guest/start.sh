#!/bin/sh
# The second program of the guest, in the root file system of the machine: attaches the drives, runs what
# /run/out/job says, and switches off. /run/out/environment names the cache: BUSYBOX, MODULES, TOOLS.
. /run/out/environment
export PATH="$TOOLS_OLDER:/usr/sbin:/usr/bin:/sbin:/bin"
export HOME=/root LANG=C.UTF-8 TMPDIR=/run/temporary
export DM_DISABLE_UDEV=1 LVM_SUPPRESS_FD_WARNINGS=1 # there is no udev: tools make their nodes themselves
mkdir -p "$TMPDIR" /dev/shm /dev/pts
"$BUSYBOX" mount -t tmpfs memory /dev/shm
"$BUSYBOX" mount -t devpts terminals /dev/pts
"$BUSYBOX" mount -t configfs configuration /sys/kernel/config
"$BUSYBOX" mount -t debugfs debug /sys/kernel/debug
"$BUSYBOX" ip link set lo up

# modprobe finds the guest's kernel, and so does the kernel when it needs a module.
mkdir -p /lib/modules
"$BUSYBOX" ln -sfn "$MODULES" "/lib/modules/$("$BUSYBOX" uname -r)"
echo "$TOOLS_OLDER/modprobe" >/proc/sys/kernel/modprobe

# Channels to the outside, by name: qmp, and the job's output.
mkdir -p /dev/virtio-ports
for port in /sys/class/virtio-ports/*/; do
    read -r name <"$port/name" && ln -sf "/dev/$("$BUSYBOX" basename "$port")" "/dev/virtio-ports/$name"
done 2>/dev/null

cd "$FOLDER" || cd /
if [ -n "$TERMINAL" ]; then
    # The size is lost when nobody has the terminal open.
    "$BUSYBOX" setsid -c /bin/sh -c "'$BUSYBOX' stty rows $ROWS cols $COLUMNS; exec /bin/sh /run/out/job" \
        <"$TERMINAL" >"$TERMINAL" 2>&1
else
    /bin/sh /run/out/job </dev/null >/dev/virtio-ports/output 2>&1
fi
echo $? >/run/out/status
"$BUSYBOX" sync
"$BUSYBOX" poweroff -f
