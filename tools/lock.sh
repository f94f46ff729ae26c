#!/bin/sh
# Resolve requirements.in in an empty environment and write what was chosen to requirements.txt. Run by `make lock`.
set -eu
python=${1:-python3.11}
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
"$python" -m venv "$room"
"$room/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements.in
{
    sed -n '/^#/p; /^#/!q' requirements.txt
    # A local build name such as 2.13.0+cpu exists on one machine only.
    "$room/bin/python" -m pip freeze --all | sed 's/+cpu$//' | grep -v -e '^pip==' -e '^wheel=='
} > "$room/requirements.txt"
cp "$room/requirements.txt" requirements.txt
