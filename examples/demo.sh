#!/bin/sh
# Stores a real file in a log on the local disk, reads it back, and follows the log. `make demo` runs this.
set -eu

folder=$(mktemp -d)
follower=""
finish() {
    [ -z "$follower" ] || kill "$follower" 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# The input is a log file of this machine or, if there is none, a file of this repository.
file=/var/log/dpkg.log
[ -s "$file" ] && [ -r "$file" ] || file=$(dirname "$0")/../README.md
export ZLOG_STORE="file://$folder/store"

say() { printf '\n%s\n' "$*"; }
show() { printf '$ %s\n' "$*"; }
run() { show "$@"; "$@"; }

say "1. Make a log. It lives in a folder; no server is needed."
run export "ZLOG_STORE=$ZLOG_STORE"
run zlog create messages

say "2. Append a real file, one entry per line. When it returns, all of them are on the disk."
run zlog append messages --keep-newline "$file"
run zlog info messages

say "3. Read everything back, and compare."
show "zlog read messages --raw > copy"
zlog read messages --raw > "$folder/copy"
run cmp "$file" "$folder/copy"
printf 'equal: %s bytes, %s lines\n' "$(wc -c < "$folder/copy")" "$(wc -l < "$folder/copy")"

say "4. Each entry has a position and a time. Here are the last three."
show "zlog read messages -3: --format '%p  %t  %s'"
zlog read messages -3: --format '%p  %t  %s'

say "5. Follow the log in one process, append in another."
show "zlog tail messages --follow -n 0 &"
# Write lines, not blocks, because the script reads the follower's output while it runs.
zlog tail messages --follow -n 0 > "$folder/followed" &
follower=$!
tries=0
until grep -qs . "$folder/followed"; do
    # The follower starts at the tail, which may move while it starts. So append until it shows an entry.
    show "date | zlog append messages"
    date | zlog append messages
    tries=$((tries + 1))
    [ "$tries" -le 10 ] || { echo "the follower saw nothing" >&2; exit 1; }
    sleep 1
done
kill "$follower"
wait "$follower" 2>/dev/null || true
follower=""
printf 'the other process printed: '
cat "$folder/followed"

say "All of it worked. The log was in a temporary folder, which is gone now. To go on:"
printf '    . %s/bin/activate\n    zlog create app && date | zlog append app\n    zlog console\n' "${VIRTUAL_ENV:-.venv}"
