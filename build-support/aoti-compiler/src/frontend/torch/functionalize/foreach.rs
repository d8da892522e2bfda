//! Replaces calls of operators on lists of tensors (`_foreach_add`) by calls of the operator on each of them.

use crate::frontend::torch::aten::{Arg, Call, Output, Program};
use std::borrow::Cow;

/// What an overload on lists is for one element of each.
struct Element {
    /// On lists, without `_foreach_`, and its overload.
    own: (&'static str, &'static str),
    /// On one tensor.
    of_one: (&'static str, &'static str),
    /// What arguments are called there that have another name here.
    renamed: &'static [(&'static str, &'static str)],
}

const fn element(
    own: (&'static str, &'static str),
    of_one: (&'static str, &'static str),
    renamed: &'static [(&'static str, &'static str)],
) -> Element {
    Element { own, of_one, renamed }
}

/// Those of which name, overload or arguments differ. An overload `default` is that of the same name.
const ELEMENTS: &[Element] = &[
    element(("add", "List"), ("add", "Tensor"), &[]),
    element(("add", "Tensor"), ("add", "Tensor"), &[]),
    element(("add", "Scalar"), ("add", "Scalar"), &[("scalar", "other")]),
    element(("add", "ScalarList"), ("add", "Scalar"), &[("scalars", "other")]),
    element(("sub", "List"), ("sub", "Tensor"), &[]),
    element(("sub", "Scalar"), ("sub", "Scalar"), &[("scalar", "other")]),
    element(("sub", "ScalarList"), ("sub", "Scalar"), &[("scalars", "other")]),
    element(("mul", "List"), ("mul", "Tensor"), &[]),
    element(("mul", "Tensor"), ("mul", "Tensor"), &[]),
    element(("mul", "Scalar"), ("mul", "Scalar"), &[("scalar", "other")]),
    element(("mul", "ScalarList"), ("mul", "Scalar"), &[("scalars", "other")]),
    element(("div", "List"), ("div", "Tensor"), &[]),
    element(("div", "Tensor"), ("div", "Tensor"), &[]),
    element(("div", "Scalar"), ("div", "Scalar"), &[("scalar", "other")]),
    element(("div", "ScalarList"), ("div", "Scalar"), &[("scalars", "other")]),
    element(("clamp_min", "List"), ("clamp_min", "Tensor"), &[("other", "min")]),
    element(("clamp_min", "Scalar"), ("clamp_min", "default"), &[("scalar", "min")]),
    element(("clamp_min", "ScalarList"), ("clamp_min", "default"), &[("scalars", "min")]),
    element(("clamp_max", "List"), ("clamp_max", "Tensor"), &[("other", "max")]),
    element(("clamp_max", "Scalar"), ("clamp_max", "default"), &[("scalar", "max")]),
    element(("clamp_max", "ScalarList"), ("clamp_max", "default"), &[("scalars", "max")]),
    // Of a tensor and a number, there are no others in PyTorch.
    element(("maximum", "List"), ("clamp_min", "Tensor"), &[("other", "min")]),
    element(("maximum", "Scalar"), ("clamp_min", "default"), &[("scalar", "min")]),
    element(("maximum", "ScalarList"), ("clamp_min", "default"), &[("scalars", "min")]),
    element(("minimum", "List"), ("clamp_max", "Tensor"), &[("other", "max")]),
    element(("minimum", "Scalar"), ("clamp_max", "default"), &[("scalar", "max")]),
    element(("minimum", "ScalarList"), ("clamp_max", "default"), &[("scalars", "max")]),
    element(("pow", "List"), ("pow", "Tensor_Tensor"), &[]),
    element(("pow", "Scalar"), ("pow", "Tensor_Scalar"), &[]),
    element(("pow", "ScalarList"), ("pow", "Tensor_Scalar"), &[]),
    element(("pow", "ScalarAndTensor"), ("pow", "Scalar"), &[]),
    element(("lerp", "List"), ("lerp", "Tensor"), &[("tensors1", "end"), ("weights", "weight")]),
    element(("lerp", "Scalar"), ("lerp", "Scalar"), &[("tensors1", "end")]),
    element(("lerp", "ScalarList"), ("lerp", "Scalar"), &[("tensors1", "end")]),
    element(("addcmul", "Scalar"), ("addcmul", "default"), &[]),
    element(("addcmul", "ScalarList"), ("addcmul", "default"), &[("scalars", "value")]),
    element(("addcdiv", "Scalar"), ("addcdiv", "default"), &[]),
    element(("addcdiv", "ScalarList"), ("addcdiv", "default"), &[("scalars", "value")]),
    element(("norm", "Scalar"), ("linalg_vector_norm", "default"), &[]),
];

/// The program without such calls, at any depth. A call whose form is not known stays, and is refused by its name.
pub(crate) fn spread(program: &Program) -> Cow<'_, Program> {
    if !has_lists(program) {
        return Cow::Borrowed(program);
    }
    let mut calls = Vec::new();
    for call in &program.calls {
        if let Some(each) = calls_of_elements(call) {
            calls.extend(each);
            continue;
        }
        let mut call = call.clone();
        for (_, arg) in &mut call.args {
            if let Arg::Graph(body) = arg {
                **body = spread(body).into_owned();
            }
        }
        calls.push(call);
    }
    Cow::Owned(Program { calls, ..program.clone() })
}

fn has_lists(program: &Program) -> bool {
    program.calls.iter().any(|call| {
        let mut bodies = call.args.iter().filter_map(|(_, arg)| arg.graph());
        call.target.starts_with("aten._foreach_") || bodies.any(has_lists)
    })
}

fn calls_of_elements(call: &Call) -> Option<Vec<Call>> {
    let (name, overload) = call.target.strip_prefix("aten._foreach_")?.split_once('.')?;
    let (name, in_place) = name.strip_suffix('_').map_or((name, ""), |name| (name, "_"));
    let known = ELEMENTS.iter().find(|element| element.own == (name, overload));
    let ((name, overload), renamed) = match known {
        Some(element) => (element.of_one, element.renamed),
        None if overload == "default" => ((name, overload), &[][..]),
        None => return None,
    };
    let target = format!("aten.{name}{in_place}.{overload}");
    let count = call.args.iter().find_map(|(_, arg)| {
        let Arg::Tensors(list) = arg else { return None };
        Some(list.len())
    })?;
    let names: Vec<&str> = call.outputs.iter().flat_map(Output::tensors).collect();
    if !names.is_empty() && names.len() != count {
        return None;
    }
    let one = |position: usize| {
        let args = call.args.iter().map(|(own, arg)| {
            let renamed =
                renamed.iter().find(|(here, _)| here == own).map_or(own.as_str(), |(_, there)| there);
            Some((renamed.to_owned(), at(arg, position)?))
        });
        let outputs =
            names.get(position).map(|name| Output::Tensor((*name).to_owned())).into_iter().collect();
        Some(Call {
            target: target.clone(),
            args: args.collect::<Option<_>>()?,
            outputs,
            origin: call.origin.clone(),
        })
    };
    // What nobody reads is not computed, other than what is written into tensors.
    if names.is_empty() && in_place.is_empty() {
        return Some(vec![]);
    }
    (0..count).map(one).collect()
}

/// What a call for one element of a list is given; none where lists have not the same length.
fn at(arg: &Arg, position: usize) -> Option<Arg> {
    Some(match arg {
        Arg::Tensors(list) => Arg::Tensor(list.get(position)?.clone()?),
        Arg::Ints(list) => Arg::Int(list.get(position)?.clone()),
        Arg::Floats(list) => Arg::Float(*list.get(position)?),
        Arg::Bools(list) => Arg::Bool(*list.get(position)?),
        Arg::None
        | Arg::Tensor(_)
        | Arg::Int(_)
        | Arg::Float(_)
        | Arg::Complex { .. }
        | Arg::Bool(_)
        | Arg::Condition(_)
        | Arg::SymBool(_)
        | Arg::SymFloat(_)
        | Arg::Str(_)
        | Arg::DType(_)
        | Arg::Other(_)
        | Arg::Graph(_) => arg.clone(),
    })
}

#[cfg(test)]
mod tests {
    use crate::frontend::torch::rules::tests::evaluated;
    use crate::interpret::Tensor;

    #[track_caller]
    fn check(statements: &str, expected: &[&[f64]]) {
        let statements = format!("input %x: f32[2] input %y: f32[1] {statements}");
        let inputs = [Tensor::from_f32(&[2], &[1.0, -2.0]), Tensor::from_f32(&[1], &[4.0])];
        let got = evaluated(&statements, &inputs).unwrap_or_else(|error| panic!("{error}"));
        let got: Vec<Vec<f64>> = got.iter().map(Tensor::to_f64).collect();
        assert_eq!(got, expected, "{statements}");
    }

    #[test]
    fn each_tensor_of_a_list_has_a_call() {
        let call =
            |call: &str| format!("[%a: f32[2], %b: f32[1]] = aten._foreach_{call} output %a output %b");
        check(&call("add.List(self = [%x, %y], other = [%x, %y], alpha = 2)"), &[&[3.0, -6.0], &[12.0]]);
        check(
            &call("mul.ScalarList(self = [%x, %y], scalars = floats [0.5, 3.0])"),
            &[&[0.5, -1.0], &[12.0]],
        );
        check(&call("maximum.Scalar(self = [%x, %y], scalar = 2)"), &[&[2.0, 2.0], &[4.0]]);
        check(&call("pow.ScalarAndTensor(self = 2, exponent = [%x, %y])"), &[&[2.0, 0.25], &[16.0]]);
        check(
            &call("lerp.ScalarList(self = [%x, %y], tensors1 = [%y, %y], weight = floats [1.0, 0.5])"),
            &[&[4.0, 4.0], &[4.0]],
        );
        check(
            &call("addcdiv.ScalarList(self = [%x, %y], tensor1 = [%x, %x], tensor2 = [%y, %x], scalars = floats [4.0, 1.0])")
                .replace("%b: f32[1]", "%b: f32[2]"),
            &[&[2.0, -4.0], &[5.0, 5.0]],
        );
        check(&call("neg.default(self = [%x, %y])"), &[&[-1.0, 2.0], &[-4.0]]);
        check(
            "[%a: f32[], %b: f32[]] = aten._foreach_norm.Scalar(self = [%x, %y], ord = 1) output %a output %b",
            &[&[3.0], &[4.0]],
        );
    }

    #[test]
    fn lists_are_written_one_after_the_other() {
        // The second tensor of the list is a part of the first.
        let statements = "%c: f32[2] = aten.clone.default(self = %x)
            %p: f32[1] = aten.slice.Tensor(self = %c, dim = 0, start = 0, end = 1)
            aten._foreach_add_.List(self = [%c, %p], other = [%c, %p]) output %c";
        check(statements, &[&[4.0, -4.0]]);
    }

    #[test]
    fn what_is_not_known_of_lists_is_refused_by_its_name() {
        use crate::frontend::torch::functionalize::functionalize;
        for call in ["_foreach_powsum.Scalar(self = [%x])", "_foreach_nothing.default(self = [%x])"] {
            let text = format!("program {{ input %x: f32[2] [%a: f32[2]] = aten.{call} output %a }}");
            let program = crate::frontend::torch::aten::text::parse(&text).expect("it parses");
            let refusal = functionalize(&program).expect_err("it is refused").to_string();
            let name = if call.contains("powsum") { "_foreach_powsum" } else { "nothing" };
            assert!(refusal.contains(name), "{refusal}");
        }
    }
}
