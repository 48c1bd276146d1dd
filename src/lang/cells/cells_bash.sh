# SPDX-License-Identifier: MIT
# Runs cells of bash: a context of a sandbox. The start-up file of an interactive bash, because only an interactive
# one gives up a command at SIGINT and keeps its state. It never reads a command of its own: the prompt command waits
# for cells and evaluates them.
#
# The frames are those of cells_python.py, but what comes in is no JSON: `id LF count-of-variables LF`, then
# `NAME=$'value' LF` for each of them, then the code. What a cell writes goes to descriptors 1 and 2, which the daemon reads.
PS1='' PS2='' PS4='+ ' HISTFILE='' PROMPT_COMMAND=__cell_serve
set +o history +o monitor
shopt -u checkwinsize

__cell_frame() { # kind  text in ASCII
    printf '%s%08x%s' "$1" "${#2}" "$2" >&3
}

__cell_end() {
    local status=$1
    if [ "$status" = 130 ] && [ -n "$__cell_interrupted" ]; then
        __cell_frame I "{\"id\":\"$__cell_id\",\"type\":\"error\",\"name\":\"KeyboardInterrupt\",\"value\":\"the cell was interrupted\",\"traceback\":\"KeyboardInterrupt\"}"
    elif [ "$status" != 0 ]; then
        __cell_frame I "{\"id\":\"$__cell_id\",\"type\":\"error\",\"name\":\"ExitStatus\",\"value\":\"exit status $status\",\"traceback\":\"exit status $status\"}"
    fi
    if [ "$status" = 0 ]; then status=ok; else status=error; fi
    eval "$__cell_before" 2>/dev/null
    __cell_before=
    __cell_frame R "{\"id\":\"$__cell_id\",\"status\":\"$status\"}"
    __cell_id=
}

# Variables of one cell; what they were before is kept as commands.
__cell_set() {
    local __name=${1%%=*}
    __cell_before+="unset -v $__name;"
    [ ! -v "$__name" ] || __cell_before+="$(declare -p "$__name" | sed '1s/^declare /declare -g /');"
    eval "export $1"
}

__cell_serve() {
    local __head __size __body __code
    # Back at the prompt in the midst of a cell: SIGINT ended it.
    if [ -n "$__cell_id" ]; then
        __cell_interrupted=1
        __cell_end 130
    fi
    __cell_interrupted=
    while :; do
        trap '' INT
        IFS= LC_ALL=C read -r -d '' -N 9 -u 3 __head || exit 0
        __size=$((16#${__head:1}))
        [ "$__size" != 0 ] || continue
        IFS= LC_ALL=C read -r -d '' -N "$__size" -u 3 __body || exit 0
        __cell_id=${__body%%$'\n'*}
        __body=${__body#*$'\n'}
        __size=${__body%%$'\n'*}
        __code=${__body#*$'\n'}
        for ((; __size > 0; __size--)); do
            __cell_set "${__code%%$'\n'*}"
            __code=${__code#*$'\n'}
        done
        __cell_count=$((__cell_count + 1))
        trap - INT
        __cell_frame B "{\"id\":\"$__cell_id\",\"count\":$__cell_count}"
        eval "$__code" 3>&-
        __cell_end $?
    done
}
__cell_frame Y "{\"language\":\"bash\",\"version\":\"${BASH_VERSION%%(*}\"}"
