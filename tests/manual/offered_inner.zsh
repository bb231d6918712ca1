# SPDX-License-Identifier: Apache-2.0
# In the shell that completes: prints each word that a completion adds.
zmodload zsh/zutil
print_begin() { print -r -- '<begin>' }
print_end() { print -r -- '<end>' }
# The hooks are gone after each completion.
offer() {
	compprefuncs=(print_begin)
	comppostfuncs=(print_end)
	zle complete-word
}
zle -N offer
bindkey '^I' offer
zstyle ':completion:*' insert-tab false

compadd() {
	# What only looks for matches, or fills an array, adds nothing.
	if [[ " ${@[1,(i)(-|--)]} " == *\ -(O|A|D)\ * ]]; then
		builtin compadd "$@"
		return
	fi
	local -a found suffix=()
	builtin compadd -A found "$@"
	zparseopts -E -a suffix S:
	local word
	for word in $found; do
		print -r -- "$word${suffix[2]}"
	done
	builtin compadd "$@"
}
