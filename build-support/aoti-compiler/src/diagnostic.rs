//! Diagnostics about a model, addressed to its author: code, place, reason, help.
//!
//! Stages collect diagnostics and fail once with all of them. Rendering is the caller's.

use crate::origin::Origin;
use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $number:literal $title:literal $explanation:literal,)*) => {
        /// The kind of a diagnostic; its number never changes meaning.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Code { $($(#[$doc])* $code = $number,)* }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$code,)*];

            /// One line: what the code is for.
            pub fn title(self) -> &'static str {
                match self { $(Code::$code => $title,)* }
            }

            /// The long text of `cargo aoti explain`.
            pub fn explanation(self) -> &'static str {
                match self { $(Code::$code => $explanation,)* }
            }
        }
    };
}

codes! {
    /// The file is not a readable archive.
    Archive = 1 "the model file is not a readable archive"
        "A .pt2 file is a zip archive of uncompressed entries, an .onnx file one protocol buffer. The file is truncated or not an archive, or one of its\nentries is out of bounds, is compressed, or has a path that leaves the archive. Export the model again.",
    /// The archive is of a layout or version that is not read.
    Version = 2 "the archive's layout or schema version is not supported"
        "torch.export writes `archive_format` pt2 and a `model.json` of schema 8. The message names the layout that was\nfound; export again with torch 2.8 or newer. Of ONNX, versions 3 to 14 of the format are read; a build script needs the\nfeature `onnx` of `aoti-build` for it.",
    /// `model.json` does not have the expected form.
    Schema = 3 "the model description is malformed"
        "`model.json` does not follow the export schema: a field is missing, has the wrong type, or refers to a name that\nis not defined. The message says where. Of an ONNX model, an input has no type or no shape, or one that cannot be compiled.",
    /// A weight's data does not fit its description.
    Weights = 4 "a tensor's data does not fit its description"
        "A parameter, buffer, constant or initialiser has fewer bytes than its sizes and strides require, its sizes are\nnegative or overflow, or the file beside the model that it is in is missing, too short, or outside of the model's folder.",
    /// An element type is not supported.
    DType = 5 "an element type is not supported"
        "Supported are f64, f32, f16, bf16, signed and unsigned integers of 8 to 64 bits, bool, the one-byte floating-point\ntypes, and complex numbers of f16, f32 or f64. Quantised tensor types are not.",
    /// An operator is not supported.
    Operator = 7 "an operator is not supported"
        "The program calls an operator that has no rule. All such operators are listed at once, each with its number of\ncalls and the line of your program. `cargo aoti inspect --ops` lists the supported ones.",
    /// An operator is supported, but not with these operands or options.
    Operands = 8 "an operator is not supported with these operands"
        "The operator is supported in general, but not with these types, shapes or options; the message says which.",
    /// The graph text is malformed.
    Text = 9 "the graph text is malformed"
        "The `.aoti` text form does not parse; the message gives line and column.",
    /// A program refers to what does not exist or in the wrong order.
    Graph = 10 "the program's graph is not well formed"
        "A value is used before it is defined, defined twice, or missing.",
    /// A size is too large or negative.
    Size = 11 "a size is out of range"
        "The size of a tensor in bytes overflows 63 bits, a size is negative, or a function decides a size that has\nno bound, so that no memory can be given to it. Add a bound with `torch._check(size <= bound)` before the export.",
    /// Names are asked for that the program has no place for.
    Names = 19 "a name is given to an output or a dimension that does not exist"
        "In a model's table, `outputs` names all its outputs, in order, and `dims` renames its dimensions, keyed by the names that\nthe program has for them; `cargo aoti inspect MODEL` shows both. Names must be unique.",
    /// A condition that the program states cannot be checked.
    Guard = 20 "a condition of the program cannot be checked"
        "The program asserts something, or the export recorded a condition on sizes, that cannot be evaluated when the\nmodel runs. No condition is ever ignored, so the model is rejected; the message contains the condition.",
    /// A GPU architecture has no line in the table of targets.
    Architecture = 21 "unknown GPU architecture"
        "Code can be generated for the architectures that the compiler knows, such as `sm_90a` or `gfx942`; the message names the\none that it does not know.",
    /// An operator of the project's own is declared wrongly, or not as the program calls it.
    Signature = 22 "the declaration of an operator does not fit"
        "`[package.metadata.aoti.operators.\"library::name\"]` gives the schema of an operator, as in torch.library, and its\nimplementation. The schema is malformed or has arguments that compiled code cannot pass, the graph has other inputs or\noutputs, or the program calls the operator differently; the message says which.",
    /// The programs of a model are not such as one library can have.
    Programs = 23 "the programs of a model do not fit together"
        "Programs of one model share its weights and what they mutate. They must have names that are free in the model's module,\nmutate buffers of one name with the same element type, sizes and first values, and take no weights by name.",
    /// A file cannot be read.
    Io = 12 "a file cannot be read"
        "The operating system refused to open or read the file.",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AOTI{:04}", *self as u16)
    }
}

/// One finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Its kind.
    pub code: Code,
    /// Lower case, no full stop; names in backticks.
    pub message: String,
    /// Where: the user's line, module and node, as far as known.
    pub origin: Option<Origin>,
    /// Why.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A finding without a place.
    pub fn new(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic { code, message: message.into(), origin: None, notes: Vec::new(), help: None }
    }

    /// Says where.
    #[must_use]
    pub fn at(mut self, origin: &Origin) -> Diagnostic {
        self.origin = Some(origin.clone());
        self
    }

    /// The user's file and line, where they are known.
    pub fn place(&self) -> Option<(&str, u32)> {
        let source = &self.origin.as_ref()?.source;
        let place = source.split_once(" in ").map_or(source.as_str(), |(place, _)| place);
        let (file, line) = place.rsplit_once(':')?;
        Some((file, line.parse().ok()?))
    }

    /// Says why.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.code, self.message)?;
        if let Some(origin) = &self.origin {
            if !origin.source.is_empty() {
                write!(f, "\n  --> {}", origin.source)?;
            }
            if !origin.module.is_empty() {
                write!(f, "\n  = module: {}", origin.module)?;
            }
            if !origin.node.is_empty() {
                write!(f, "\n  = node: {}", origin.node)?;
            }
        }
        for note in &self.notes {
            write!(f, "\n  = note: {note}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  = help: {help}")?;
        }
        Ok(())
    }
}

/// One or more findings; a stage's way to fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Diagnostics {
        Diagnostics(vec![diagnostic])
    }
}
