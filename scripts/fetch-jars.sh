#!/bin/sh
# fetch-jars.sh POM FOLDER: the jars that a Maven project depends on, copied to a folder, which is kept if it is newer than
# the project. Installs Maven where that is allowed, and otherwise prints the one command to type and fails.
set -eu
. "${0%/*}/packages.sh"

pom=$1
folder=$2
stamp=$folder/.complete
if [ -e "$stamp" ] && [ -z "$(find "$pom" -newer "$stamp")" ]; then
    exit 0
fi
have mvn || install_first "Maven" apt-get:maven dnf:maven yum:maven zypper:maven apk:maven pacman:maven brew:maven ||
    give_up "The jars are fetched by Maven. Install it." "export PATH=/path/to/maven/bin:\"\$PATH\""
rm -rf "$folder"
mkdir -p "$folder"
mvn --quiet --batch-mode -f "$pom" dependency:copy-dependencies -DoutputDirectory="$(cd "$folder" && pwd)"
touch "$stamp"
