//! What a compiled model looks like from outside: names, element types and sizes of its inputs, outputs and
//! constants. The C tables, the C header and the Rust module are all printed from this one description.

use crate::dtype::DType;
use crate::graph::{ConstantGraph, Weight};
use crate::json::{FromJson, Malformed, ToJson, Value};
use crate::json_fields;
use crate::loops::{BufferId, Program};
use crate::runplan::RunPlan;
use crate::runplan::weights::Placed;
use crate::symbolic::{Expr, RangeTable};
use std::collections::BTreeSet;

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

json_fields!(DimInterface { expression, min, max });

/// What the elements of a tensor are to the caller. Inside the compiler, complex numbers are pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ElementType {
    /// Numbers of one type.
    Number(DType),
    /// Complex numbers whose parts are of this type.
    Complex(DType),
}

impl ElementType {
    /// Its name: `f32`, or `c64` of a complex number of 64 bits.
    pub fn name(self) -> String {
        match self {
            ElementType::Number(dtype) => dtype.name().to_owned(),
            ElementType::Complex(part) => format!("c{}", 16 * part.size()),
        }
    }

    /// Its number in the C interface, where complex numbers stand behind all others.
    pub fn code(self) -> usize {
        match self {
            ElementType::Number(dtype) => dtype.code(),
            ElementType::Complex(part) => DType::ALL.len() + part.size().ilog2() as usize - 1,
        }
    }

    /// The type of a number, or of the parts of a complex one.
    pub fn part(self) -> DType {
        match self {
            ElementType::Number(dtype) | ElementType::Complex(dtype) => dtype,
        }
    }
}

impl FromJson for ElementType {
    fn from_json(value: Value) -> Result<ElementType, Malformed> {
        let complex = [DType::F16, DType::F32, DType::F64].map(ElementType::Complex);
        let mut all = DType::ALL.map(ElementType::Number).into_iter().chain(complex);
        let found = value.as_str().and_then(|name| all.find(|element| element.name() == name));
        found.ok_or_else(|| Malformed::unexpected(&value, "the name of an element type"))
    }
}

impl ToJson for ElementType {
    fn to_json(&self) -> Value {
        Value::from(self.name())
    }
}

/// One input, output or state tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueInterface {
    /// The program's own name for it (not yet made into an identifier of any language).
    pub name: String,
    /// What its elements are.
    pub element: ElementType,
    /// Dimensions, outermost first; the parts of complex numbers are none.
    pub dims: Vec<DimInterface>,
}

json_fields!(ValueInterface { name, element, dims });

/// One tensor of the program's state, as the program has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConstantInterface {
    /// Fully qualified name, such as `layers.0.weight`.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub sizes: Vec<i64>,
    /// The constant of which this is another name, by position.
    pub tied: Option<usize>,
    /// Whether some result depends on it.
    pub is_read: bool,
}

json_fields!(ConstantInterface { name, dtype, sizes, tied, is_read });

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
    /// Constants: in the order of their names' bytes where the library takes weights by name, else of the blob.
    pub constants: Vec<ConstantInterface>,
    /// Bytes of the weights blob; a multiple of 64.
    pub weights_bytes: u64,
    /// Bytes of what a model makes of its weights when it is created, on processors; a multiple of 64.
    pub expanded_bytes: u64,
    /// Bytes of the caller's state; a multiple of 64; zero where nothing is mutated.
    pub state_bytes: u64,
}

json_fields!(Interface {
    name,
    inputs,
    outputs,
    states,
    constants,
    weights_bytes,
    expanded_bytes,
    state_bytes
});

impl Interface {
    /// The outside of a planned program whose constants were placed so, and which takes these weights by name if any; how
    /// long all weights are is known when they are laid out.
    pub(super) fn of<'p>(
        program: &Program,
        run: &RunPlan,
        placed: impl IntoIterator<Item = &'p Placed>,
        ranges: &RangeTable,
        named: Option<&ConstantGraph>,
    ) -> Interface {
        let value = |id: &BufferId| {
            let buffer = &program.buffers[*id];
            let kind = if buffer.is_complex { ElementType::Complex } else { ElementType::Number };
            let dims = buffer.sizes_outside().iter().map(|size| DimInterface::of(program, ranges, size));
            ValueInterface { name: buffer.name.clone(), element: kind(buffer.dtype), dims: dims.collect() }
        };
        let constants = match named {
            Some(constants) => constants.weights.iter().map(ConstantInterface::of_weight).collect(),
            None => placed_constants(program, placed),
        };
        Interface {
            name: program.name.clone(),
            inputs: program.inputs.iter().map(value).collect(),
            outputs: program.outputs.iter().map(value).collect(),
            states: program.states.iter().map(|(buffer, _)| value(buffer)).collect(),
            constants,
            weights_bytes: 0,
            expanded_bytes: run.expanded_bytes(),
            state_bytes: run.state_bytes(),
        }
    }
}

impl ConstantInterface {
    fn of_weight(weight: &Weight) -> ConstantInterface {
        ConstantInterface {
            name: weight.name.clone(),
            dtype: weight.dtype,
            sizes: weight.sizes.clone(),
            tied: weight.tied,
            is_read: weight.input.is_some(),
        }
    }
}

/// The constants of the blob that have a name. One that several kernels read in different forms is there more than once.
fn placed_constants<'p>(
    program: &Program,
    placed: impl IntoIterator<Item = &'p Placed>,
) -> Vec<ConstantInterface> {
    let mut seen = BTreeSet::new();
    let constants = placed.into_iter().map(|placed| &program.constants[placed.constant]);
    constants
        .filter(|constant| !constant.name.is_empty() && seen.insert(&constant.name))
        .map(|constant| ConstantInterface {
            name: constant.name.clone(),
            dtype: constant.dtype,
            sizes: constant.sizes.clone(),
            tied: None,
            is_read: true,
        })
        .collect()
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
