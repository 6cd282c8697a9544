#!/bin/sh
# Back up the store of AFTEREFFECT_STORE every BACKUP_HOURS hours, verify each backup, and keep the newest BACKUP_KEEP.
#     aftereffect-backup [once]
# A backup has its name only when it is complete and verified. With `once`, ends after one, with its exit status.
set -u
folder=${BACKUP_FOLDER:-/var/backups/aftereffect}
keep=${BACKUP_KEEP:-14}

back_up() {
    rm -f "$folder"/.part*
    aftereffect backup "$folder/.part" && aftereffect verify --store "$folder/.part" || return
    mv "$folder/.part" "$folder/aftereffect-$(date -u +%Y%m%dT%H%M%SZ).db" || return
    # The names sort by date.
    ls "$folder"/aftereffect-*.db | sort -r | tail -n "+$((keep + 1))" | xargs -r rm -f
}

while :; do
    back_up
    status=$?
    [ "$status" -eq 0 ] || echo "aftereffect-backup: the backup failed; the earlier ones are kept" >&2
    [ "${1:-}" = once ] && exit "$status"
    sleep "$((${BACKUP_HOURS:-24} * 3600))"
done
