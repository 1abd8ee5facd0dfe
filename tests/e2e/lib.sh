# SPDX-License-Identifier: Apache-2.0
# Shared by the e2e scripts: a folder of their own, cases with expected exit codes and output.
# Environment: AEGIS (the program, perhaps behind an emulator), AEGIS_SOURCE_DIR, AEGIS_BINARY_DIR.
set -u
: "${AEGIS:?}" "${AEGIS_SOURCE_DIR:?}" "${AEGIS_BINARY_DIR:?}"
name=$(basename "$0" .sh)
work=$AEGIS_BINARY_DIR/e2e/$name
demo=$AEGIS_SOURCE_DIR/models/demo
rm -rf "$work"
mkdir -p "$work" || exit 1
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache XDG_STATE_HOME=$work/state LC_ALL=C.UTF-8
unset AEGIS_MEMORY AEGIS_THREADS AEGIS_CTX_SIZE NO_COLOR
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

# expect RC NAME COMMAND...: run with stdin closed off; $out and $err hold what was written.
expect() {
    local want=$1 title=$2 rc
    shift 2
    "$@" > stdout.txt 2> stderr.txt < "${input:-/dev/null}"
    rc=$?
    out=$(cat stdout.txt) err=$(cat stderr.txt)
    if [ "$rc" -ne "$want" ]; then
        fail "$title: exit code $rc, expected $want"
        sed 's/^/  stdout: /' stdout.txt | head -n 5
        sed 's/^/  stderr: /' stderr.txt | head -n 20
    fi
}

# says TEXT: the last command's standard error contains it; answers TEXT: standard output does.
says() {
    case $err in *"$1"*) ;; *) fail "stderr lacks '$1': $err" ;; esac
}
# unsaid TEXT: it does not.
unsaid() {
    case $err in *"$1"*) fail "stderr should not have '$1': $err" ;; esac
}
answers() {
    case $out in *"$1"*) ;; *) fail "stdout lacks '$1': $out" ;; esac
}
silent() {
    [ -z "$out" ] || fail "stdout should be empty: $out"
}
# json EXPRESSION: true for the JSON object `j` on standard output.
json() {
    python3 -c "import json, sys
j = json.load(open('stdout.txt'))
sys.exit(0 if ($1) else 1)" 2> json.txt || fail "not true of the JSON: $1 $(cat json.txt)
$out"
}

# One packed demo for all scripts, made once per build.
store() {
    local shared=$AEGIS_BINARY_DIR/e2e/demo.store
    (
        flock 9
        [ -f "$shared/manifest.json" ] || $AEGIS pack "$demo" "$shared" 2> "$work/pack.txt" ||
            { cat "$work/pack.txt"; exit 1; }
    ) 9> "$AEGIS_BINARY_DIR/e2e/demo.lock" || exit 1
    echo "$shared"
}

# A budget with room for some experts: 40 MiB, more under a sanitizer, whose own memory counts as well.
small_budget() {
    $AEGIS plan "$1" --memory 1GiB --json | python3 -c "
import json, sys
print(json.load(sys.stdin)['minimum_budget'] + 14 * 2**20)"
}

finish() {
    [ $failed -eq 0 ] && echo "$name: all cases passed"
    exit $failed
}
