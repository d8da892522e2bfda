//! The `.aoti` front end: graph text from outside, parsed and verified.

use super::import::{Format, Import};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::graph::{self, ConstantSource, Graph};
use bytes::Bytes;

/// The row of the table of formats.
pub(super) const FORMAT: Format = Format {
    recognizes: is_text,
    takes_shapes: false,
    files_beside: |_| Ok(Vec::new()),
    import: |_, name, model, _| {
        let graph = import(name, model.file.clone())?;
        Ok(Import { graph, is_stated: true, asked: Vec::new() })
    },
    exported: |_, _| Err(own_alone("graph text has no program of PyTorch's")),
    operators: |_, _| Err(own_alone("graph text has no operators of PyTorch's")),
};

fn own_alone(message: &str) -> Diagnostics {
    Diagnostic::new(Code::Text, message).help("`--emit graph` shows its own operators").into()
}

/// Whether a file is graph text: its first word, after space and comments, is `graph`.
pub fn is_text(file: &[u8]) -> bool {
    let mut lines = file.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
    lines
        .find(|line| !line.is_empty() && !line.starts_with(b"#"))
        .is_some_and(|line| line.starts_with(b"graph"))
}

/// Reads a graph. `name` becomes its name if the text gives none.
pub fn import(name: &str, file: Bytes) -> Result<Graph, Diagnostics> {
    let text = std::str::from_utf8(&file)
        .map_err(|error| Diagnostic::new(Code::Text, format!("the text is not UTF-8: {error}")))?;
    let mut graph = graph::text::parse(text)?;
    if graph.name.is_empty() {
        name.clone_into(&mut graph.name);
    }
    graph::verify(&graph)?;
    graph.refuse_functions()?;
    // A text has no state dict: what has a name is meant to be given by it.
    for constant in graph.constants.values_mut().filter(|constant| !constant.name.is_empty()) {
        if constant.is_fixed() {
            constant.source = ConstantSource::Weight;
        }
    }
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_by_its_first_word() {
        assert!(is_text(b"# a model\n\n  graph \"m\" {}"));
        assert!(!is_text(b"PK\x03\x04"));
        assert!(!is_text(b""));
    }

    #[test]
    fn ill_typed_text_is_refused() {
        let refused = import("m", Bytes::from_static(b"graph { input %x: f32[2] %y: f64[2] = neg %x }"));
        assert_eq!(refused.expect_err("types differ").0[0].code, Code::Graph);
        let graph = import("m", Bytes::from_static(b"graph { input %x: f32[2] output %x }")).expect("fits");
        assert_eq!(graph.name, "m");
        assert!(import("m", Bytes::from_static(b"graph \xff")).is_err());
    }
}
