#!/bin/sh
# Installs Node.js, a VS Code that a browser shows, and pnpm into a folder, unless they are there.
set -eu
NODE=22.23.3 EDITOR=4.139.1 PNPM=10.20.0
folder=$1
stamp="$folder/$NODE-$EDITOR-$PNPM"
test -e "$stamp" && exit 0
echo "Installing node $NODE, code-server $EDITOR and pnpm $PNPM in $folder"
mkdir -p "$folder/node" "$folder/editor"
quiet="--no-audit --no-fund --loglevel=error --no-save"
# The package node fetches its program in a script; of all others none is run.
npm install --prefix "$folder/node" $quiet --ignore-scripts=false "node@$NODE" >/dev/null
PATH="$folder/node/node_modules/node/bin:$PATH"
npm install --prefix "$folder/editor" $quiet --ignore-scripts --omit=dev \
	"code-server@$EDITOR" "pnpm@$PNPM" >/dev/null
npm install --prefix "$folder/editor/node_modules/code-server/lib/vscode" $quiet \
	--ignore-scripts --omit=dev >/dev/null
touch "$stamp"
