#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Chat through a pipe, and on a terminal made by expect(1).
. "$(dirname "$0")/lib.sh"
model=$(store) || exit 1
small=$(small_budget "$model") || exit 1

printf 'What is the capital of France?\n/nope\n/set parameter top_k 3\n/set parameter top_q 3\n/show parameters\n/bye\nnever read\n' > lines.txt
input=lines.txt expect 0 "chat in a pipe" $AEGIS chat "$model" --no-think --temp 0
answers "Paris"
answers "top_k 3"
says "unknown command /nope"
says "unknown parameter 'top_q'"
grep -q '>>>\|'$'\033' stdout.txt && fail "prompts or escapes in a pipe"
printf '"""What is the capital\nof France?"""\n/show template\n//x\\\ny\n/show template\n' > lines.txt
input=lines.txt expect 0 "several lines" $AEGIS chat "$model" --no-think --temp 0 -n 4
answers "What is the capital
of France?<|im_end|>"
answers "/x
y<|im_end|>"
[ -e state/aegis/history ] && fail "a pipe keeps no history"
expect 2 "chat --json" $AEGIS chat "$model" --json

command -v expect > /dev/null || { echo "no expect(1): the terminal part is skipped"; finish; }
unset -f expect
export TERM=xterm
cat > terminal.exp << 'EXP'
set timeout 60
proc want {text} {
    expect {
        -ex $text {}
        timeout { puts "\nTIMEOUT waiting for '$text'"; exit 1 }
        eof { puts "\nEND while waiting for '$text'"; exit 1 }
    }
}
# The key that ends the chat. The line editor shows its prompt just before it takes the keyboard over from the
# terminal, and a key that comes in between is lost or becomes a letter of the line: wait as long as a person takes,
# and if it happened all the same empty the line (Ctrl-U) and press it again.
proc leave {key} {
    set tries 0
    sleep 0.5
    send $key
    expect {
        -timeout 3
        eof {}
        timeout { if {[incr tries] < 10} { send "\025$key"; exp_continue } else { puts "\nstill there after $tries keys"; exit 1 } }
    }
    set rc [lindex [wait] 3]
    if {$rc != 0} { puts "exit code $rc"; exit 1 }
}

eval spawn $env(AEGIS) chat $env(model) --no-think --temp 0 --memory $env(small) -n 2000
want ">>> "
send "What is the capital of France?\r"
want "The capital of France is Paris."
want ">>> "
send "/regen\r"
want "The capital of France is Paris."
want ">>> "
send "\"\"\"What is the capital\r"
want "... "
send "of France?\"\"\"\r"
want ">>> "
send "/show template\r"
want "What is the capital\r\nof France?<|im_end|>"
want ">>> "
send "/clear\r"
want ">>> "
send "\033\[200~What is the harbour\rof Paris?\033\[201~"
send "\r"
want ">>> "
send "/show template\r"
want "What is the harbour\r\nof Paris?<|im_end|>"
want ">>> "
send "/unknown\r"
want "unknown command /unknown"
want ">>> "
send "/set parameter seed 3\r"
want ">>> "
send "\003"
want "Ctrl-C again"
want ">>> "
leave "\003"

# Ctrl-C during an answer keeps it, and the chat goes on.
eval spawn $env(AEGIS) chat $env(model) --no-think --temp 0 --memory $env(small) --ignore-eos --no-history
want ">>> "
send "Tell me a story.\r"
want "story.\r\n"
expect -re {[a-z]+ [a-z]+ [a-z]+}
send "\003"
want "stopped"
want ">>> "
send "/show template\r"
want "<|im_start|>assistant"
want ">>> "
leave "\004"
EXP
model=$model small=$small command expect -f terminal.exp > terminal.txt 2>&1 || { fail "chat on a terminal"; cat -v terminal.txt; }
history=state/aegis/history
[ "$(stat -c %a $history 2> stat.txt)" = 600 ] || fail "history file: $(stat -c %a $history)"
grep -q 'capital' $history || fail "the history lacks the question"
grep -q 'story' $history && fail "--no-history kept history"
finish
