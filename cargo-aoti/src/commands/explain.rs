//! `explain`: the long text of a diagnostic's code.

use aoti_compiler::diagnostic;
use clap::Args;

use serde_json::json;

use super::{print, print_json};
use crate::arguments::Output;
use crate::failure::Failure;
use crate::table;

/// Explains a diagnostic's code; without one, lists them
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Such as AOTI0007
    code: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Columns of a paragraph that reads well.
const COLUMNS: usize = 100;

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let all = all();
    let object = |(code, title, text): &(String, &str, String)| {
        print_json(&json!({ "reason": "aoti-code", "code": code, "title": title, "explanation": text }));
    };
    let is_json = arguments.output.is_json();
    let Some(wanted) = &arguments.code else {
        if is_json {
            all.iter().for_each(object);
            return Ok(());
        }
        print(&all.iter().map(|(code, title, _)| format!("{code}: {title}\n")).collect::<String>());
        return Ok(());
    };
    let digits = wanted.trim().to_ascii_uppercase();
    let digits = digits.strip_prefix("AOTI").unwrap_or(&digits);
    let wanted_code = format!("AOTI{digits:0>4}");
    let Some(found) = all.iter().find(|(code, _, _)| *code == wanted_code) else {
        let message = format!("there is no code `{wanted}`; `cargo aoti explain` lists all");
        return Err(Failure::Usage(message));
    };
    if is_json {
        object(found);
    } else {
        let (code, title, text) = found;
        let text = table::wrap(text, arguments.output.width().unwrap_or(COLUMNS).min(COLUMNS));
        print(&format!("{code}: {title}\n\n{text}\n"));
    }
    Ok(())
}

fn all() -> Vec<(String, &'static str, String)> {
    let compiler = diagnostic::Code::ALL.iter();
    let compiler = compiler.map(|code| (code.to_string(), code.title(), code.explanation().to_owned()));
    let manifest = aoti_build::Code::ALL.iter();
    let manifest = manifest.map(|code| (code.to_string(), code.title(), code.explanation()));
    let mut all: Vec<_> = compiler.chain(manifest).collect();
    all.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    all
}
