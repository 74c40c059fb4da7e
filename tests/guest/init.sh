#!/bin/sh
# The first program of the guest, in its first root file system. Makes the root of the machine that runs the
# bench its own, read-only through 9p with a tmpfs over it, and goes on with start.sh in there. The kernel
# hands over START, a path in that root, as a variable of the environment.
export PATH=/bin

fail() {
    echo "guest: $1" >/dev/console
    poweroff -f
}

mount -t devtmpfs devices /dev
mount -t proc processes /proc
mount -t sysfs system /sys

while read -r module options; do
    # shellcheck disable=SC2086  # several options
    insmod "/modules/$module" $options || echo "guest: $module cannot be loaded" >/dev/console
done </modules/order

echo "guest: mounting" >/dev/console
share="trans=virtio,version=9p2000.L,msize=512000"
mount -t 9p -o "$share,ro,cache=loose" root /machine || fail "no root file system"
mount -t tmpfs writes /writes
mkdir /writes/upper /writes/work
mount -t overlay -o lowerdir=/machine,upperdir=/writes/upper,workdir=/writes/work root /new ||
    fail "no overlay"
for folder in dev proc sys; do
    mount --move "/$folder" "/new/$folder"
done
mount -t tmpfs run /new/run
mkdir /new/run/out
mount -t 9p -o "$share" out /new/run/out || fail "no folder for results"
echo "guest: switching" >/dev/console
exec switch_root /new /bin/sh "$START"
