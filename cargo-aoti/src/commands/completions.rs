//! `completions`: a script that completes the command line.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::print;
use crate::arguments::Cli;
use crate::failure::Failure;

/// Prints a completion script for `cargo aoti` and `cargo-aoti`
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "cargo-aoti", &mut script);
    print(&String::from_utf8_lossy(&script));
    print(through_cargo(arguments.shell));
    Ok(())
}

/// What completes `cargo aoti` by the completion of `cargo-aoti`, and leaves the rest of cargo's to what there was.
fn through_cargo(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => BASH,
        Shell::Fish => FISH,
        // Zsh's completion of cargo calls the function of this name for its subcommand; others have no such way.
        Shell::Elvish | Shell::PowerShell | Shell::Zsh | _ => "",
    }
}

const BASH: &str = r#"
__cargo_with_aoti() {
    if [[ ${COMP_WORDS[1]} == aoti && $COMP_CWORD -gt 1 ]]; then
        COMP_WORDS=(cargo-aoti "${COMP_WORDS[@]:2}")
        COMP_CWORD=$((COMP_CWORD - 1))
        _cargo__aoti cargo-aoti "$2" "$3"
    elif declare -F _cargo >/dev/null; then
        _cargo "$@"
    fi
}
complete -F __cargo_with_aoti -o nosort -o bashdefault -o default cargo
"#;

const FISH: &str = "
complete -c cargo -n '__fish_seen_subcommand_from aoti' -a \"(complete -C (string replace -r '^cargo\\s+aoti' 'cargo-aoti' -- (commandline -cp)))\"
";
