# shellcheck shell=sh
# Installs a system package with whatever package manager the machine has. Sourced, never run.
#
# Besides shell builtins this needs only the package manager, env, id and sudo: it has to work on a bare
# machine, and tests run it with nothing else on the PATH.

have() { command -v "$1" >/dev/null 2>&1; }

# give_up REASON COMMAND: says what is wrong and the one command to type.
give_up() {
    printf '%s Type this, then try again:\n\n    %s\n\n' "$1" "$2" >&2
    exit 1
}

# install_first WHAT MANAGER:PACKAGE...
# Takes the first manager that is present and installs the first of its packages that it has. Gives up with
# the one command to type where this user may not install packages; fails where nothing could be installed.
install_first() {
    what=$1
    shift

    manager=
    for entry in "$@"; do
        if have "${entry%%:*}"; then
            manager=${entry%%:*}
            break
        fi
    done
    [ -n "$manager" ] || return 1

    as_root=
    if [ "$manager" != brew ] && [ "$(id -u)" -ne 0 ]; then
        if have sudo && sudo -n true 2>/dev/null; then
            as_root="sudo -n"
        elif have sudo; then
            give_up "$what is missing, and installing it with $manager needs root." "sudo sh $0"
        else
            give_up "$what is missing, and installing it with $manager needs root." "su -c 'sh $0'"
        fi
    fi

    case $manager in
        apt-get) install="env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends" ;;
        dnf | yum) install="$manager install -y" ;;
        zypper) install="zypper --non-interactive install" ;;
        apk) install="apk add --no-cache" ;;
        pacman) install="pacman -Sy --noconfirm --needed" ;;
        brew) install="brew install" ;;
    esac

    echo "Installing $what with $manager ..." >&2
    if [ "$manager" = apt-get ]; then
        # Some source of many may be down; whether the package can be had is for install to say.
        $as_root apt-get update >/dev/null 2>&1 || true
    fi
    for entry in "$@"; do
        if [ "${entry%%:*}" = "$manager" ]; then
            # shellcheck disable=SC2086 # both variables hold a command and its options
            said=$($as_root $install "${entry#*:}" 2>&1) && return 0
        fi
    done
    printf '%s\n' "$said" >&2
    return 1
}
