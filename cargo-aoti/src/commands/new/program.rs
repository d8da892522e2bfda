//! The text of a new project's `src/main.rs`: runs the model once, on zeros of the smallest sizes.

use aoti_compiler::codegen::bindings;
use aoti_compiler::codegen::interface::{ElementType, Interface, ValueInterface};
use aoti_compiler::dtype::DType;

/// The program of a project without a model.
pub(super) const EMPTY: &str = "\
fn main() {
    println!(\"put a model into `models/`, then say `aoti_runtime::include_model!(\\\"NAME\\\")` here\");
}
";

/// A program that runs the model of this interface.
/// `functions` are those of operators, which it has to define.
pub(super) fn text(interface: &Interface, identifier: &str, functions: &[String]) -> String {
    let inputs = bindings::field_names(&interface.inputs);
    let outputs = bindings::field_names(&interface.outputs);
    let mut text = String::new();
    let has_views = !inputs.is_empty() || functions.iter().any(|function| function.contains("TensorView<"));
    match (has_views, functions.is_empty()) {
        (true, true) => text.push_str("use aoti_runtime::TensorView;\n\n"),
        (true, false) => text.push_str("use aoti_runtime::{TensorView, TensorViewMut};\n\n"),
        (false, true) => {}
        (false, false) => text.push_str("use aoti_runtime::TensorViewMut;\n\n"),
    }
    text.push_str(&format!("aoti_runtime::include_model!(\"{identifier}\");\n\n"));
    for function in functions {
        // `f32` stands for any element type, and nothing of what it is given is used yet.
        text.push_str(&format!(
            "aoti_runtime::operator! {{\n    #[expect(unused_variables)]\n    {function} {{\n        \
             Err(\"this operator is not written yet\".to_owned())\n    }}\n}}\n\n"
        ));
    }
    text.push_str(&format!(
        "fn main() -> Result<(), aoti_runtime::Error> {{\n    \
         let model = {identifier}::Model::load()?;\n"
    ));
    // Nobody's first run is of nothing; sizes that follow from others are left to be the least that they can be.
    let dims = interface.inputs.iter().flat_map(|input| &input.dims);
    let is_name = |text: &String| text.chars().all(|c| c.is_alphanumeric() || c == '_');
    let least = i64::from(dims.filter_map(|dim| dim.expression.as_ref()).all(is_name));
    let mut fields = Vec::new();
    for (index, (field, value)) in inputs.iter().zip(&interface.inputs).enumerate() {
        let sizes: Vec<i64> = value.dims.iter().map(|dim| dim.min.max(least.min(dim.max))).collect();
        let elements = sizes.iter().fold(1i64, |product, size| product.saturating_mul(*size));
        text.push_str(&format!("    // {}\n", describe(field, value)));
        text.push_str(&format!("    let data_{index} = vec![{}; {elements}];\n", zero(value.element)));
        text.push_str(&format!("    let {field} = TensorView::new(&data_{index}, &{sizes:?})?;\n"));
        fields.push(field.as_str());
    }
    let fields = if fields.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", fields.join(", ")) };
    let state = if interface.state_bytes > 0 {
        text.push_str("    let mut state = model.state()?;\n");
        ", &mut state"
    } else {
        ""
    };
    let bound = if outputs.is_empty() { "" } else { "let outputs = " };
    text.push_str(&format!("    {bound}model.run(&{identifier}::Inputs {fields}{state})?;\n"));
    for field in &outputs {
        text.push_str(&format!(
            "    let first: Vec<_> = outputs.{field}.as_slice().iter().take(8).collect();\n    \
             println!(\"{field}: {{:?}} {{first:?}}\", outputs.{field}.sizes());\n"
        ));
    }
    text.push_str("    Ok(())\n}\n");
    text
}

/// Whether the program needs the types of the `half` crate.
pub(super) fn needs_half(interface: &Interface) -> bool {
    let values = interface.inputs.iter().chain(&interface.outputs);
    values.into_iter().any(|value| matches!(value.element.part(), DType::F16 | DType::Bf16))
}

/// One line that is safe in a comment: fields are identifiers, and sizes have no line ends.
fn describe(field: &str, value: &ValueInterface) -> String {
    let size = |dim: &aoti_compiler::codegen::interface::DimInterface| {
        let text = dim.expression.clone().unwrap_or_else(|| dim.min.to_string());
        text.chars().filter(|c| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}')).collect::<String>()
    };
    let sizes: Vec<String> = value.dims.iter().map(size).collect();
    format!("{field}: {} of sizes [{}]", value.element.name(), sizes.join(", "))
}

fn zero(element: ElementType) -> String {
    let dtype = match element {
        ElementType::Number(dtype) => dtype,
        ElementType::Complex(part) => {
            let part = zero(ElementType::Number(part));
            return format!("aoti_runtime::Complex::new({part}, {part})");
        }
    };
    match dtype {
        DType::Bool => "false".to_owned(),
        DType::F16 | DType::Bf16 => format!("aoti_runtime::{}::ZERO", dtype.name()),
        DType::F32 | DType::F64 => format!("0.0_{}", dtype.name()),
        DType::F8(_) => format!("aoti_runtime::{}::default()", dtype.name()),
        DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64 => format!("0_{}", dtype.name()),
    }
}
