# SPDX-License-Identifier: Apache-2.0
"""Completions of options, their values, commands, models and files, for bash and for zsh."""

import shlex

import commands

FOLDERS = ("DIR", "FOLDER")
FILES = ("FILE", "FILES", "PATH")
# Options of these commands may stand among those of weft launch; what follows -- train is a
# command line of weft train.
LAUNCHED = ("pserver", "train")


def kind_of(option):
    """What a value is: words to choose from, "files", "folders" or "any"."""
    if option["choices"]:
        return option["choices"]
    if option["value"] in FOLDERS:
        return "folders"
    return "files" if option["value"] in FILES else "any"


def described(command):
    """[(name as written, text, value)] of each option, where value None is a switch."""
    found = []
    for option in command.options():
        text = option["text"].split(". ")[0].split("\n")[0].rstrip(".")
        if "flag" in option:
            flag = option["flag"].split(", ")[-1]
            if flag.endswith("=FILE"):
                found.append((flag[: -len("=FILE")], text, "files"))
            else:
                found.append((flag, text, None))
        elif option["is_switch"]:
            found += [("--" + option["name"], text, None), ("--no-" + option["name"], text, None)]
        else:
            found.append(("--" + option["name"], text, kind_of(option)))
    return found


def with_launched(root):
    """Each command with its options; weft launch with those of its children."""
    by_name = {command.words[-1]: command for command in commands.walk(root)}
    for command in commands.walk(root):
        rows = described(command)
        if command.name == "weft-launch":
            known = {row[0] for row in rows}
            for name in LAUNCHED:
                more = described(by_name[name]) if name in by_name else []
                rows += [row for row in more if row[0] not in known]
                known |= {row[0] for row in rows}
        yield command, rows


def key(command):
    return " ".join(command.words[1:])


# COMP_WORDS has "=" as a word of its own, because it is in COMP_WORDBREAKS.
BASH = r"""# SPDX-License-Identifier: Apache-2.0
# Completion of %(name)s for bash. Made from the tables that make --help.

# What the options of a command are, its verbs or models, and what values an option has.
_%(function)s_options() {
	case $1 in
%(options)s
	esac
}

_%(function)s_words() {
	case $1 in
%(words)s
	esac
}

# Of COMMAND:--option: "=f" files, "=d" folders, "=" any text, or words; nothing: a switch.
_%(function)s_value() {
	case $1 in
%(values)s
	esac
}

_%(function)s_files() {
	compopt -o filenames 2>/dev/null
	local IFS=$'\n'
	COMPREPLY=($(compgen "$1" -- "$2"))
}

# The command that the words before the current one name; with --, that of its trainers.
_%(function)s_command() {
	local idx word found="" next
	for ((idx = 1; idx < COMP_CWORD; idx++)); do
		word=${COMP_WORDS[idx]}
		case $word in
		--) [[ $found == launch ]] && found="" ;;
		-* | =) ;;
		*)
			next=${found:+$found }$word
			case " $(_%(function)s_words "$found") " in
			*" $word "*) [[ -n $(_%(function)s_options "$next") ]] && found=$next ;;
			esac
			;;
		esac
	done
	command_found=$found
}

_%(function)s() {
	local current=${COMP_WORDS[COMP_CWORD]} option="" value command_found
	COMPREPLY=()
	_%(function)s_command
	if [[ $current == = ]]; then
		option=${COMP_WORDS[COMP_CWORD - 1]} current=""
	elif [[ $COMP_CWORD -gt 2 && ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == --* && $current != -* ]]; then
		option=${COMP_WORDS[COMP_CWORD - 1]}
	fi
	option=--${option#--}
	value=$(_%(function)s_value "$command_found:${option//-/_}")
	case $value in
	=f) _%(function)s_files -f "$current" ;;
	=d) _%(function)s_files -d "$current" ;;
	=) ;;
	?*) COMPREPLY=($(compgen -W "$value" -- "$current")) ;;
	*)
		if [[ $current == -* ]]; then
			COMPREPLY=($(compgen -W "$(_%(function)s_options "$command_found")" -- "$current"))
			[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
		else
			value=$(_%(function)s_words "$command_found")
			COMPREPLY=($(compgen -W "$value" -- "$current"))
			[[ ${#COMPREPLY[@]} -eq 0 && -n $command_found ]] && _%(function)s_files -f "$current"
		fi
		;;
	esac
	return 0
}

complete -F _%(function)s %(name)s
"""


def words_of(command):
    """Verbs, or what the list of the page names."""
    if "commands" in command.page:
        return [name for name, _ in command.page["commands"]]
    return [name for name, _ in command.rows()]


def bash(root):
    options, words, values = [], [], []
    for command, rows in with_launched(root):
        case = "\t%s) echo %s ;;"
        flags = [name + ("=" if value is not None else "") for name, _, value in rows]
        options.append(case % (shlex.quote(key(command)), shlex.quote(" ".join(flags or ["--help"]))))
        if words_of(command):
            words.append(case % (shlex.quote(key(command)), shlex.quote(" ".join(words_of(command)))))
        for name, _, value in rows:
            if value is not None:
                shown = {"files": "=f", "folders": "=d", "any": "="}.get(str(value), None)
                shown = " ".join(value) if shown is None else shown
                pattern = "%s:__%s" % (key(command), name[2:].replace("-", "_"))
                values.append(case % (shlex.quote(pattern), shlex.quote(shown)))
    name = root.words[0]
    return BASH % {
        "name": name,
        "function": name,
        "options": "\n".join(options),
        "words": "\n".join(words),
        "values": "\n".join(values),
    }


def zsh_text(text):
    """Inside the brackets of an _arguments specification, inside single quotes."""
    for mark in "\\[]:":
        text = text.replace(mark, "\\" + mark)
    return text.replace("'", "'\\''")


def zsh_option(name, text, value):
    if value is None:
        return "'%s[%s]'" % (name, zsh_text(text))
    if isinstance(value, list):
        action = "(%s)" % " ".join(zsh_text(word) for word in value)
    else:
        action = {"files": "_files", "folders": "_files -/", "any": " "}[value]
    return "'%s=[%s]:value:%s'" % (name, zsh_text(text), action)


def zsh(root):
    """One function for each command; those with verbs hand over to theirs."""
    name = root.words[0]
    lines = [
        "#compdef " + name,
        "# SPDX-License-Identifier: Apache-2.0",
        "# Completion of %s for zsh. Made from the tables that make --help." % name,
        "",
    ]
    for command, rows in with_launched(root):
        function = "_" + "_".join(command.words).replace("-", "_")
        if "commands" in command.page:
            lines += zsh_verbs(command, function)
        else:
            lines += zsh_leaf(command, function, rows)
    return "\n".join(lines + ['_%s "$@"' % name]) + "\n"


def zsh_verbs(command, function):
    children = {child.words[-1] for child in command.children}
    rows = ["\t\t'%s:%s'" % (name, zsh_text(text)) for name, text in command.page["commands"]]
    cases = ["\t%s) %s_%s ;;" % (name, function, name) for name in sorted(children)]
    return (
        [function + "() {", "\tlocal -a verbs=("]
        + rows
        + ["\t)", "\tif ((CURRENT == 2)); then", "\t\t_describe command verbs", "\t\treturn", "\tfi"]
        + ["\tlocal verb=$words[2]", "\tshift words", "\t((CURRENT--))", "\tcase $verb in"]
        + cases
        + ["\tesac", "}", ""]
    )


def zsh_leaf(command, function, rows):
    names = [name for name, _ in command.rows()]
    lines = [function + "() {"]
    if command.name == "weft-launch":
        lines += [
            "\tlocal mark=${words[(I)--]}",
            "\tif ((mark > 0 && mark < CURRENT)); then",
            "\t\twords=(weft ${words[mark + 1,-1]})",
            "\t\t((CURRENT -= mark - 1))",
            "\t\t_weft",
            "\t\treturn",
            "\tfi",
        ]
    specs = [zsh_option(*row) for row in rows]
    specs += ["'*:name:(%s)'" % " ".join(names)] if names else ["'*:file:_files'"]
    lines += ["\t_arguments \\"] + ["\t\t%s \\" % spec for spec in specs[:-1]] + ["\t\t" + specs[-1]]
    return lines + ["}", ""]
