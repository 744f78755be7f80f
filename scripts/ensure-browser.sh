#!/bin/sh
# ensure-browser.sh FOLDER: makes sure that there is what the page is tested with: Chromium, which is installed where that
# is allowed, and axe-core, which npm fetches into the folder.
set -eu
. "${0%/*}/packages.sh"

folder=$1
axe=4.14.0

if ! have chromium; then
    install_first "Chromium" apt-get:chromium dnf:chromium zypper:chromium apk:chromium pacman:chromium ||
        give_up "The tests of the page need Chromium." "install the package chromium of your system"
fi
if [ ! -f "$folder/package/axe.min.js" ]; then
    have npm || give_up "The tests of the page need axe-core, which npm fetches." "install the package npm of your system"
    mkdir -p "$folder"
    (cd "$folder" && npm pack --silent "axe-core@$axe" >/dev/null && tar -xzf "axe-core-$axe.tgz" && rm "axe-core-$axe.tgz")
fi
