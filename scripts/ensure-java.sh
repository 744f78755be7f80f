#!/bin/sh
# Makes sure that Spark will find Java 17 or newer: silent when it is there, installs it where that is
# allowed, and otherwise prints the one command to type and fails.
set -eu
. "${0%/*}/packages.sh"

oldest=17

# The major version of the given java, 0 when it does not run ("1.8.0" gives 1, which is too old as well).
major_version() {
    said=$("$1" -version 2>&1) || said=
    said=${said#*version \"}
    said=${said%%[!0-9]*}
    echo "${said:-0}"
}

recent() { [ "$(major_version "$1")" -ge "$oldest" ]; }

# Spark starts JAVA_HOME's java where JAVA_HOME is set, and looks no further.
if [ -n "${JAVA_HOME:-}" ]; then
    recent "$JAVA_HOME/bin/java" && exit 0
    give_up "JAVA_HOME ($JAVA_HOME) holds no Java $oldest or newer." "unset JAVA_HOME"
fi
recent java && exit 0

install_first "Java $oldest or newer" \
    apt-get:openjdk-21-jre-headless apt-get:openjdk-17-jre-headless \
    dnf:java-21-openjdk-headless dnf:java-17-openjdk-headless dnf:java-latest-openjdk-headless \
    yum:java-21-openjdk-headless yum:java-17-openjdk-headless \
    zypper:java-21-openjdk-headless zypper:java-17-openjdk-headless \
    apk:openjdk21-jre-headless apk:openjdk17-jre-headless \
    pacman:jre21-openjdk-headless pacman:jre17-openjdk-headless \
    brew:openjdk@21 ||
    give_up "Spark needs Java $oldest or newer. Unpack a JDK anywhere." "export JAVA_HOME=/path/to/jdk"

recent java && exit 0
if have brew; then
    # Homebrew keeps its JDKs off the PATH.
    give_up "Java is installed." "export JAVA_HOME=\"\$(brew --prefix openjdk@21)\""
fi
give_up "Java is installed, but java on the PATH is still another one." "export JAVA_HOME=/path/to/jdk"
