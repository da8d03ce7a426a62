# shellcheck shell=bash
# Finds or installs the requirements of CSP. Sourced by the scripts next to it; needs bash 3.2 (macOS).

ROOT=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
CSP_CACHE=${XDG_CACHE_HOME:-~/.cache}/csp
UV=""

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
    say "$*"
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# quietly COMMAND...   show the output of a command only if it fails; sudo asks on the terminal itself
quietly() {
    local output
    if ! output=$("$@" 2>&1 </dev/null); then
        printf '%s\n' "$output" >&2
        return 1
    fi
}

as_root() {
    if [[ $EUID -eq 0 ]]; then
        quietly "$@"
        return
    fi
    have sudo || die "root is needed, but there is no sudo; please run as root: $*"
    say "sudo, which may ask for your password, runs: $*"
    quietly sudo ${CI:+-n} "$@"
}

# Two set-ups may run at once: the second one waits for the lock of the first.
apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 "$@"; }

package_manager() {
    local manager
    for manager in apt-get dnf brew; do
        if have "$manager"; then
            echo "$manager"
            return
        fi
    done
    echo none
}

# install_packages PACKAGE...   names in the package manager of this system
install_packages() {
    local manager
    manager=$(package_manager)
    say "installing with $manager: $*"
    case $manager in
        apt-get)
            apt_get update || say "apt-get update failed; going on with the lists that are here"
            apt_get install -y --no-install-recommends "$@"
            ;;
        dnf) as_root dnf install -y -q "$@" ;;
        brew) quietly brew install --quiet "$@" ;;
        *) die "no apt-get, dnf or brew here; please install by hand: $*" ;;
    esac
}

# ensure_commands TABLE   each row: a command, then its package for apt, dnf, brew
ensure_commands() {
    local manager command apt dnf brew
    local missing=()
    manager=$(package_manager)
    while read -r command apt dnf brew; do
        if [[ -z $command ]] || have "$command"; then
            continue
        fi
        case $manager in
            apt-get) missing+=("$apt") ;;
            dnf) missing+=("$dnf") ;;
            brew) missing+=("$brew") ;;
            *) missing+=("$command") ;;
        esac
    done <<<"$1"
    if [[ ${#missing[@]} -gt 0 ]]; then
        install_packages "${missing[@]}"
    fi
}

# Dependency groups need uv 0.5. A pyenv shim may exist without an installed uv.
is_usable_uv() {
    local version major minor
    version=$("$1" --version 2>/dev/null) || return 1
    version=${version#uv }
    IFS=. read -r major minor _ <<<"$version"
    [[ $major -gt 0 || $minor -ge 5 ]]
}

find_uv() {
    local candidate
    for candidate in uv "$CSP_CACHE/uv/bin/uv" ~/.local/bin/uv; do
        if have "$candidate" && is_usable_uv "$candidate"; then
            UV=$candidate
            return
        fi
    done
    return 1
}

# Debian moves ensurepip to python3-venv; without it, `python3 -m venv` installs no pip.
# -I here and below, so that modules in the caller's directory cannot shadow those of Python.
can_make_venv() { python3 -I -c 'import ensurepip, venv' >/dev/null 2>&1; }

# The binary is moved into place atomically, so a parallel set-up never sees an incomplete one.
install_uv_from_pypi() {
    local work status=0
    mkdir -p "$CSP_CACHE/uv/bin"
    work=$(mktemp -d "$CSP_CACHE/uv/install.XXXXXX")
    python3 -I -m venv "$work" &&
        "$work/bin/python" -I -m pip install --quiet --disable-pip-version-check 'uv>=0.5' >&2 &&
        mv -f "$work/bin/uv" "$CSP_CACHE/uv/bin/uv" || status=1
    rm -rf "$work"
    return "$status"
}

install_uv_from_its_site() {
    have curl || return 1
    curl -LsSf https://astral.sh/uv/install.sh |
        env UV_INSTALL_DIR="$CSP_CACHE/uv/bin" UV_NO_MODIFY_PATH=1 sh >&2
}

# Set UV to a uv that works.
ensure_uv() {
    if find_uv; then
        return
    fi
    if [[ $(uname -s) == Darwin ]] && have brew; then
        install_packages uv
    else
        if ! can_make_venv && have apt-get; then
            install_packages python3 python3-venv
        fi
        say "installing uv into $CSP_CACHE/uv"
        { can_make_venv && install_uv_from_pypi; } || install_uv_from_its_site || true
    fi
    find_uv || die "uv could not be installed; see https://docs.astral.sh/uv/ and run this again"
}

# Whether the system has the Python that is wanted.
has_system_python() {
    UV_PYTHON_PREFERENCE=only-system "$UV" python find --system "${UV_PYTHON:->=3.11}" >/dev/null 2>&1
}

# sync_venv [UV-SYNC-OPTION...]   sync .venv with uv.lock
# --inexact: a script that needs less (bin/csp) must not remove packages of another (bin/test).
# Offline first: the lock file pins every package, so the network is needed only if one is missing.
sync_venv() (
    cd -- "$ROOT" || exit
    unset VIRTUAL_ENV
    export UV_PROJECT_ENVIRONMENT=$ROOT/.venv
    # uv leaves its lock file there permanently, and two parallel set-ups must find the same one.
    export TMPDIR=$CSP_CACHE/uv
    mkdir -p "$TMPDIR"
    if [[ -z ${UV_PYTHON_PREFERENCE:-} ]] && has_system_python; then
        export UV_PYTHON_PREFERENCE=only-system
    fi
    if ! "$UV" sync --frozen --inexact --quiet --offline "$@" 2>/dev/null; then
        say "downloading Python packages into .venv"
        # If the caller uses ||, the shell continues after a failure, so exit explicitly.
        download_packages "$@" || exit
    fi
    printf '%s\n' "$ROOT" >.venv/.csp-synced
)

# Many companies put a proxy between their machines and the network. Its certificate is known to the system, but
# not to uv.
download_packages() {
    local output status=0
    output=$("$UV" sync --frozen --inexact --quiet "$@" 2>&1) || status=$?
    case $output in
        *UnknownIssuer* | *"invalid peer certificate"* | *"certificate verify failed"*)
            say "uv does not know the certificate of the package index; trying again with those of this system"
            status=0
            output=$(UV_SYSTEM_CERTS=true UV_NATIVE_TLS=true "$UV" sync --frozen --inexact --quiet "$@" 2>&1) ||
                status=$?
            ;;
    esac
    [[ -z $output ]] || printf '%s\n' "$output" >&2
    return "$status"
}

# If a clone is copied with its .venv, that still runs the old code, so the stamp records the path.
is_venv_fresh() {
    local stamp=$ROOT/.venv/.csp-synced place=""
    [[ -x $ROOT/.venv/bin/csp && -r $stamp ]] || return 1
    read -r place <"$stamp" || return 1
    [[ $place == "$ROOT" && ! $ROOT/uv.lock -nt $stamp && ! $ROOT/pyproject.toml -nt $stamp ]]
}

# project_file   the csp.toml that csp reads here: that of this directory or of its repository
project_file() {
    local folder=$PWD
    if [[ -e csp.toml ]]; then
        echo csp.toml
        return
    fi
    while [[ ! -e $folder/.git && -n $folder ]]; do
        folder=${folder%/*}
    done
    echo "$folder/csp.toml"
}

# wanted_extras FILE   the extras that the models in a csp.toml need, one per line
wanted_extras() {
    local provider
    [[ -r $1 ]] || return 0
    sed -n "s/^[[:space:]]*provider[[:space:]]*=[[:space:]]*[\"']\([a-z-]*\)[\"'].*/\1/p" "$1" |
        while read -r provider; do
            sed -n "s/^    \"$provider\": Provider(extra=\"\([a-z0-9_-]*\)\".*/\1/p" "$ROOT/csp/model_providers.py"
        done | sort -u
}

has_extra() { "$ROOT/.venv/bin/python" -I -c "import importlib.util as u, sys; sys.exit(not u.find_spec('$1'))"; }
