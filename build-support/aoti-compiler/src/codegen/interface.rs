//! What a compiled model looks like from outside: names, element types and sizes of its inputs, outputs and
//! constants. The C tables, the C header and the Rust module are all printed from this one description.

use super::run::Planned;
use crate::dtype::DType;
use crate::loops::{BufferId, Program};
use crate::symbolic::{Expr, RangeTable};

/// One dimension of an input or output.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DimInterface {
    /// `None` for a fixed size; else the size in terms of the model's symbols as text, such as `batch` or `2*seq`.
    pub expression: Option<String>,
    /// Smallest size, inclusive.
    pub min: i64,
    /// Largest size, inclusive; equal to `min` for a fixed size; `i64::MAX` where there is no bound.
    pub max: i64,
}

/// One input, output or state tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueInterface {
    /// The program's own name for it (not yet made into an identifier of any language).
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Dimensions, outermost first.
    pub dims: Vec<DimInterface>,
}

/// One constant that lies in the weights blob under the program's own name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConstantInterface {
    /// Fully qualified name, such as `layers.0.weight`.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub sizes: Vec<i64>,
    /// Byte offset into the blob.
    pub offset: u64,
    /// Bytes in the blob (of the packed form, where it is packed).
    pub bytes: u64,
}

/// The interface of a compiled model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The model's name, as the manifest or the file name gives it.
    pub name: String,
    /// Inputs in order.
    pub inputs: Vec<ValueInterface>,
    /// Outputs in order.
    pub outputs: Vec<ValueInterface>,
    /// Tensors that the program mutates and that live in the caller's state.
    pub states: Vec<ValueInterface>,
    /// Constants in blob order.
    pub constants: Vec<ConstantInterface>,
    /// Bytes of the weights blob; a multiple of 64.
    pub weights_bytes: u64,
    /// Bytes of the caller's state; a multiple of 64; zero where nothing is mutated.
    pub state_bytes: u64,
}

impl Interface {
    /// The outside of a planned program, whose weights have so many bytes.
    pub(super) fn of<F>(
        program: &Program,
        planned: &Planned<F>,
        ranges: &RangeTable,
        weights_bytes: u64,
    ) -> Interface {
        let value = |id: &BufferId| {
            let buffer = &program.buffers[*id];
            ValueInterface {
                name: buffer.name.clone(),
                dtype: buffer.dtype,
                dims: buffer.shape.iter().map(|size| DimInterface::of(program, ranges, size)).collect(),
            }
        };
        let constants = planned
            .placements
            .iter()
            .map(|((id, _), placed)| (&program.constants[*id], placed))
            .filter(|(constant, _)| !constant.name.is_empty())
            .map(|(constant, placed)| ConstantInterface {
                name: constant.name.clone(),
                dtype: constant.dtype,
                sizes: constant.sizes.clone(),
                offset: placed.offset,
                bytes: placed.bytes,
            });
        Interface {
            name: program.name.clone(),
            inputs: program.inputs.iter().map(value).collect(),
            outputs: program.outputs.iter().map(value).collect(),
            states: program.states.iter().map(|(buffer, _)| value(buffer)).collect(),
            constants: constants.collect(),
            weights_bytes,
            state_bytes: planned.run.state_bytes(),
        }
    }
}

impl DimInterface {
    /// A size of the program.
    pub(super) fn of(program: &Program, ranges: &RangeTable, size: &Expr) -> DimInterface {
        if let Some(size) = size.as_int() {
            return DimInterface { expression: None, min: size, max: size };
        }
        let interval = size.interval(ranges);
        DimInterface {
            expression: Some(program.size_text(size)),
            min: interval.min.max(0),
            max: interval.max,
        }
    }
}
