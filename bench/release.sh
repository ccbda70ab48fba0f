#!/bin/sh
# The same release as the template's, by hand: what a maintainer's script runs. Usage: release.sh FOLDER
set -eu
cd "$1"
last=$(git describe --tags --abbrev=0 --match 'v*')
test -z "$(git status --porcelain -uno)"                          # refuse a dirty checkout
git ls-remote -q origin >/dev/null                              # does the remote know our tags and branch
log=$(git log --no-merges --format='- %s (%h)' "$last..HEAD")
next=1.3.0
sed -i "s/^version = \"1.2.0\"/version = \"$next\"/" pyproject.toml
{
    printf '# Changelog\n\n## [Unreleased]\n\n## [%s] - %s\n\n%s\n\n' "$next" "$(date +%F)" "$log"
    sed '1,/^## \[Unreleased\]/d' CHANGELOG.md
} > CHANGELOG.new
mv CHANGELOG.new CHANGELOG.md
git add -u
git commit -q -m "chore(release): $next"
git tag -a "v$next" -m "$log"
git push -q --atomic origin main "v$next"
