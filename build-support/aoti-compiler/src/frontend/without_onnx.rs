//! ONNX without the feature that reads it: files are recognised and refused.

use super::import::{Format, Import, ModelFile};
use super::{OperatorCounts, is_onnx};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};

/// The row of the table of formats.
pub(super) const FORMAT: Format = Format {
    recognizes: is_onnx,
    takes_shapes: true,
    files_beside: |_| Ok(Vec::new()),
    import: |_, _, _: &ModelFile, _| -> Result<Import, Diagnostics> { Err(refused()) },
    exported: |_, _| Err(refused()),
    operators: |_, _| -> Result<OperatorCounts, Diagnostics> { Err(refused()) },
};

fn refused() -> Diagnostics {
    let finding = Diagnostic::new(Code::Version, "the model is in the ONNX format");
    finding.help("turn on the feature `onnx` of `aoti-build`").into()
}
