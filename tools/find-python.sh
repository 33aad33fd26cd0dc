#!/bin/sh
# Prints the Python that the project is installed with: $PYTHON if set, else the first of `python3`,
# `python3.13`, `python3.12`, `python3.11` that is 3.11 to 3.13, else a newer one.
# Each candidate is run: a name on the search path may be a shim that answers for another version.
set -eu

RELEASE='import sys; print("%d.%d" % sys.version_info[:2])'

release_of() {
    "$1" -c "$RELEASE" 2>/dev/null || true
}

complain() {
    printf '%s\n' "$@" >&2
    exit 1
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        case "$(release_of "$PYTHON")" in
        3.1[1-9]) echo "$PYTHON" ;;
        '') complain "PYTHON=$PYTHON does not run." ;;
        *) complain "PYTHON=$PYTHON is Python $(release_of "$PYTHON"); Frazil needs 3.11 or newer." ;;
        esac
        return
    fi
    for wanted in '3.1[123]' '3.1[4-9]'; do
        for candidate in python3 python3.13 python3.12 python3.11 python3.14; do
            # shellcheck disable=SC2254  # a pattern
            case "$(release_of "$candidate")" in
            $wanted)
                echo "$candidate"
                return
                ;;
            esac
        done
    done
    found=$(release_of python3)
    complain "Frazil needs Python 3.11 or newer; here python3 is ${found:-missing}." \
        "On Debian 12+ or Ubuntu 24.04+:  sudo apt-get install python3 python3-venv" \
        "On Ubuntu 22.04:                 sudo apt-get install python3.11 python3.11-venv" \
        "Or name one:                     make PYTHON=/path/to/python3.12 ..."
}

python=$(find_python)
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    release=$(release_of "$python")
    complain "$python (Python $release) has no venv module." \
        "On Debian or Ubuntu:  sudo apt-get install python$release-venv"
fi
echo "$python"
