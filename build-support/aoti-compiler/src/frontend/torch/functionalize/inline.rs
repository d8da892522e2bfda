//! Puts the bodies of higher-order operators that only state a mode in the place of their calls: regions in which
//! gradients are on or off, regions with hints for other compilers, and regions with or without automatic casts. Regions
//! with the casts of another device than the processor stay: its lists of operators are not known here.

use super::autocast;
use crate::frontend::torch::aten::{Arg, Call, Output, Program};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The program without such regions, at any depth. A region that does not have the expected form stays as it is.
pub(crate) fn inlined(program: &Program) -> Cow<'_, Program> {
    if !has_regions(program) {
        return Cow::Borrowed(program);
    }
    let mut result = Program { calls: Vec::new(), ..program.clone() };
    for (number, call) in program.calls.iter().enumerate() {
        let mut call = call.clone();
        let casts = autocast::region_type(&call);
        for (_, arg) in &mut call.args {
            if let Arg::Graph(body) = arg {
                // Before regions within it, which have casts of their own.
                if let Some(dtype) = casts {
                    autocast::insert_casts(body, dtype);
                }
                **body = inlined(body).into_owned();
            }
        }
        match Region::of(&call) {
            Some(region) => region.splice(&call, number, &mut result),
            None => result.calls.push(call),
        }
    }
    Cow::Owned(result)
}

fn has_regions(program: &Program) -> bool {
    program.calls.iter().any(|call| {
        let mut bodies = call.args.iter().filter_map(|(_, arg)| arg.graph());
        Region::of(call).is_some() || bodies.any(has_regions)
    })
}

/// A call that stands for its body.
struct Region<'a> {
    body: &'a Program,
    operands: Vec<Arg>,
}

impl<'a> Region<'a> {
    fn of(call: &'a Call) -> Option<Region<'a>> {
        let (body, operands) = match (call.target.as_str(), call.args.as_slice()) {
            ("higher_order.wrap_with_set_grad_enabled", [_, (_, Arg::Graph(body)), operands @ ..]) => {
                (body, given(operands))
            }
            // Tensors, other arguments by their names, and the hints.
            (
                "higher_order.hints_wrapper",
                [(_, Arg::Graph(body)), (_, Arg::Tensors(tensors)), (_, Arg::None), _],
            ) => (body, tensors.iter().flatten().cloned().map(Arg::Tensor).collect()),
            (
                "higher_order.wrap_with_autocast",
                // The device, the type, whether casts are made, whether they are kept.
                [_, _, (_, Arg::Bool(casts)), _, (_, Arg::Graph(body)), operands @ ..],
            ) if !casts || autocast::region_type(call).is_some() => (body, given(operands)),
            _ => return None,
        };
        let fits = body.inputs.len() == operands.len() && body.outputs.len() == call.outputs.len();
        fits.then_some(Region { body, operands })
    }

    /// Appends the body's calls, its values renamed: operands by what is given for them, others made unique.
    fn splice(&self, call: &Call, number: usize, into: &mut Program) {
        let mut names = BTreeMap::new();
        for (input, given) in self.body.inputs.iter().zip(&self.operands) {
            // Sizes are expressions over the program's symbols on both sides and need no name.
            if let Arg::Tensor(name) | Arg::SymBool(name) | Arg::SymFloat(name) = given {
                names.insert(input.name.clone(), name.clone());
            }
        }
        let rename = |name: &str| names.get(name).cloned().unwrap_or_else(|| format!("{name}.{number}"));
        for (name, meta) in &self.body.tensors {
            into.tensors.entry(rename(name)).or_insert_with(|| meta.clone());
        }
        for (name, size) in &self.body.sym_ints {
            into.sym_ints.entry(rename(name)).or_insert_with(|| size.clone());
        }
        for (name, condition) in &self.body.conditions {
            into.conditions.entry(rename(name)).or_insert_with(|| condition.clone());
        }
        for inner in &self.body.calls {
            let mut inner = inner.clone();
            inner.args.iter_mut().for_each(|(_, arg)| rename_arg(arg, &rename));
            inner.outputs.iter_mut().for_each(|output| rename_output(output, &rename));
            into.calls.push(inner);
        }
        for (given, output) in self.body.outputs.iter().zip(&call.outputs) {
            let mut value = given.value.clone();
            rename_arg(&mut value, &rename);
            bind(call, value, output, into);
        }
    }
}

fn given(operands: &[(String, Arg)]) -> Vec<Arg> {
    operands.iter().map(|(_, operand)| operand.clone()).collect()
}

/// Gives an output of the region the name that the program knows it by.
fn bind(call: &Call, value: Arg, output: &Output, into: &mut Program) {
    match (value, output) {
        (value @ Arg::Tensor(_), Output::Tensor(_)) => into.calls.push(Call {
            target: "aten.alias.default".to_owned(),
            args: vec![("self".to_owned(), value)],
            outputs: vec![output.clone()],
            origin: call.origin.clone(),
        }),
        (Arg::Condition(condition), Output::SymBool(name)) => {
            into.conditions.entry(name.clone()).or_insert_with(|| condition);
        }
        (Arg::Int(size), Output::SymInt(name)) => {
            into.sym_ints.entry(name.clone()).or_insert_with(|| size);
        }
        // What is left has no name that later calls could use: they hold its value.
        _ => {}
    }
}

fn rename_arg(arg: &mut Arg, rename: &impl Fn(&str) -> String) {
    match arg {
        Arg::Tensor(name) | Arg::SymBool(name) | Arg::SymFloat(name) => *name = rename(name),
        Arg::Tensors(names) => names.iter_mut().flatten().for_each(|name| *name = rename(name)),
        Arg::None
        | Arg::Int(_)
        | Arg::Ints(_)
        | Arg::Float(_)
        | Arg::Floats(_)
        | Arg::Bool(_)
        | Arg::Bools(_)
        | Arg::Condition(_)
        | Arg::Str(_)
        | Arg::Complex { .. }
        | Arg::DType(_)
        | Arg::Other(_)
        // The values inside of a body are its own.
        | Arg::Graph(_) => {}
    }
}

fn rename_output(output: &mut Output, rename: &impl Fn(&str) -> String) {
    match output {
        Output::Tensor(name) | Output::SymInt(name) | Output::SymBool(name) | Output::SymFloat(name) => {
            *name = rename(name);
        }
        Output::Tensors(names) => names.iter_mut().for_each(|name| *name = rename(name)),
        Output::None => {}
    }
}
