#!/bin/sh
# install.sh FOLDER LOCK: makes a virtual environment of what LOCK names, and Frazil from this
# folder in it.
# install.sh FOLDER LOCK BASE: makes one of what LOCK names that sees everything else in BASE.
# Both do nothing when FOLDER is so already.
set -eu
cd "$(dirname "$0")/.."

folder=$1
lock=$2
base=${3:-}
stamp=$folder/.installed

release_of() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo none
}

# What FOLDER is made of; the last line is its Python's release.
fingerprint() {
    cat "$lock" tools/install.sh pyproject.toml ${base:+"$base/.installed"} | cksum
    release_of "$folder/bin/python"
}

# An environment that works stays, unless another Python is asked for.
if [ -n "$base" ]; then
    python=$base/bin/python
elif [ -n "${PYTHON:-}" ] || [ "$(release_of "$folder/bin/python")" = none ]; then
    python=$(sh tools/find-python.sh)
else
    python=$folder/bin/python
fi
if [ "$(release_of "$folder/bin/python")" != "$(release_of "$python")" ]; then
    echo "making $folder with $("$python" --version)"
    "$python" -m venv --clear ${base:+--without-pip} "$folder"
fi
if [ -f "$stamp" ] && [ "$(fingerprint)" = "$(cat "$stamp")" ]; then
    exit 0
fi
rm -f "$stamp"

pip() {
    "${base:-$folder}/bin/python" -m pip --disable-pip-version-check --no-input "$@"
}
# uv asks the index that pip asks, and trusts whom pip trusts.
pip_setting() {
    pip config list | sed -n "s/^\(global\|install\|:env:\)\.$1='\(.*\)'$/\2/p" | tail -n 1
}
uv() {
    index=${UV_DEFAULT_INDEX:-$(pip_setting index-url)}
    authorities=${SSL_CERT_FILE:-$(pip_setting cert)}
    env ${index:+UV_DEFAULT_INDEX="$index"} ${authorities:+SSL_CERT_FILE="$authorities"} \
        "${base:-$folder}/bin/uv" "$@"
}
echo "installing what $lock names into $folder"
if [ -z "$base" ]; then
    sed -n '/^uv==/,/[^\\]$/p' "$lock" > "$folder/requirements-uv.txt"
    pip install --quiet --require-hashes -r "$folder/requirements-uv.txt"
fi
# Where an index wants what only pip has (a keyring, a client's certificate), pip does it all.
uv pip install --quiet --python "$folder/bin/python" --require-hashes -r "$lock" ||
    pip --python "$folder/bin/python" install --quiet --require-hashes -r "$lock"
if [ -n "$base" ]; then
    packages='import sysconfig; print(sysconfig.get_path("purelib"))'
    echo "import site; site.addsitedir('$("$base/bin/python" -c "$packages")')" \
        > "$("$folder/bin/python" -c "$packages")/base.pth"
else
    pip install --quiet --no-deps --no-build-isolation -e .
fi
fingerprint > "$stamp"
