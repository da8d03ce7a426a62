#!/usr/bin/env bash
# Opens the room of the caller's directory in tmux. Installs missing requirements first.
# The options are those of `csp up`: --demo, --agents A,B, --orchestrator, --dir DIR, --detach, --dry-run ...
set -euo pipefail

script=${BASH_SOURCE[0]}
while [[ -L $script ]]; do
    link=$(readlink -- "$script")
    case $link in
        /*) script=$link ;;
        *) script=$(dirname -- "$script")/$link ;;
    esac
done
# shellcheck source=bin/setup.sh
source "$(dirname -- "$script")/setup.sh"

ensure_commands "tmux tmux tmux tmux"
have tmux || die "tmux could not be installed; please install it by hand, then run this again"
if ! is_venv_fresh; then
    ensure_uv
    say "setting up .venv, which takes a moment the first time"
    sync_venv --no-dev --extra lan --compile-bytecode ||
        die "the Python packages could not be installed for the reason above; run this again when it is solved"
fi
for extra in $(wanted_extras "${CSP_CONFIG_FILE:-$(project_file)}"); do
    if ! has_extra "$extra"; then
        ensure_uv
        say "installing the package $extra, which csp.toml wants"
        sync_venv --no-dev --extra "$extra" ||
            say "$extra could not be installed for the reason above; its models are not started"
    fi
done
# Commands typed in the panes must find csp.
export PATH=$PATH:$ROOT/bin
exec "$ROOT/.venv/bin/csp" up "$@"
