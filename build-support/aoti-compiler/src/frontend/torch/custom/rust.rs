//! Functions of operators as Rust declares them.

use super::schema::{Argument, Schema, Type};
use crate::names;

/// Name, parameters and result of the function of this symbol, as `aoti_runtime::operator!` takes them.
pub(super) fn declaration(symbol: &str, schema: &Schema) -> String {
    let arguments =
        schema.arguments.iter().map(|own| format!("{}: {}", names::identifier(&own.name), parameter(own)));
    let several = schema.results.len() > 1;
    let number = |index: usize| if several { index.to_string() } else { String::new() };
    let results = schema.results.iter().enumerate().flat_map(|(index, result)| {
        let ty = if result.is_list { "Vec<TensorViewMut<f32>>" } else { "TensorViewMut<f32>" };
        let sizes = format!("sizes{}: TensorViewMut<i64>", number(index));
        [Some(format!("y{}: {ty}", number(index))), schema.decides_sizes.then_some(sizes)]
    });
    let all: Vec<String> = arguments.chain(results.flatten()).collect();
    format!("fn {symbol}({}) -> Result<(), String>", all.join(", "))
}

fn parameter(argument: &Argument) -> String {
    let one = match (argument.ty, argument.is_list) {
        // It is written as results are.
        (Type::Tensor, _) if argument.is_changed => return "TensorViewMut<f32>".to_owned(),
        // What is absent of a list is an empty one.
        (Type::Tensor, true) => return "Vec<TensorView<f32>>".to_owned(),
        (Type::Tensor, false) => "TensorView<f32>",
        (Type::Int, true) => "&[i64]",
        (Type::Int, false) => "i64",
        (Type::Float, true) => "&[f64]",
        (Type::Float, false) => "f64",
        (Type::Bool, true) => "Vec<bool>",
        (Type::Bool, false) => "bool",
        (Type::Text, _) => "&str",
    };
    if argument.is_optional { format!("Option<{one}>") } else { one.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_parameters_of_the_schema() {
        let of = |text: &str| declaration("f", &Schema::parse(text).expect("a schema"));
        assert_eq!(
            of("(Tensor x, float? t, int[] type, Tensor[] all) -> Tensor"),
            "fn f(x: TensorView<f32>, t: Option<f64>, type_: &[i64], all: Vec<TensorView<f32>>, y: TensorViewMut<f32>) \
             -> Result<(), String>"
        );
        assert_eq!(
            of("(Tensor(a!) x, bool[] m, str s) -> (Tensor, Tensor)"),
            "fn f(x: TensorViewMut<f32>, m: Vec<bool>, s: &str, y0: TensorViewMut<f32>, y1: TensorViewMut<f32>) \
             -> Result<(), String>"
        );
    }
}
