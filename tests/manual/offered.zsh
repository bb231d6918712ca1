# SPDX-License-Identifier: Apache-2.0
# usage: zsh -f offered.zsh FPATH-FOLDER LINE...: prints what Tab offers at the end of each line, one
# a line, with "--" behind the last one. An interactive shell on a pseudo-terminal completes, where
# compadd prints what it adds.
zmodload zsh/zpty || exit 1
zpty inner zsh -f -i

silent() {
	local line
	zpty -w inner "$1"
	while zpty -r inner line; do
		[[ $line == *ready* ]] && return
	done
}

silent "PROMPT=; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D; echo re''ady"
silent "source ${(q)0:a:h}/offered_inner.zsh; echo re''ady"

typeset typed line
typeset -i between
for typed in "${@[2,-1]}"; do
	zpty -w -n inner $'\C-u'"$typed"$'\t'
	between=0
	while zpty -r inner line; do
		line=${line%%$'\r\n'}
		case $line in
		*'<begin>'*) between=1 ;;
		*'<end>'*) break ;;
		*) ((between)) && print -r -- "$line" ;;
		esac
	done
	print -r -- --
done
zpty -d inner
