//! Replaces the operator by which a decomposed program calls a custom operator that changes its arguments: the call itself, on copies
//! of the tensors that it changes.
//!
//! `auto_functionalized_v2(f, y, _x_base_index = 0, _all_bases = [b])` calls `f` with a part of a copy of `b` as `x`, and gives the
//! results of `f` and the copy.

use crate::frontend::torch::aten::{Arg, Call, Output, Program, TensorMeta};
use crate::graph::Origin;
use crate::symbolic::Expr;
use std::borrow::Cow;

const TARGET: &str = "higher_order.auto_functionalized_v2";

/// The program with such calls as they were before, at any depth. A call whose form is not known stays, and is refused by its name.
pub(crate) fn undone(program: &Program) -> Cow<'_, Program> {
    if !has_any(program) {
        return Cow::Borrowed(program);
    }
    let mut result = Program { calls: Vec::new(), ..program.clone() };
    for call in &program.calls {
        if let Some(undone) = (call.target == TARGET).then(|| Undone::of(call, program)).flatten() {
            result.tensors.extend(undone.described);
            result.calls.extend(undone.calls);
            continue;
        }
        let mut call = call.clone();
        for (_, arg) in &mut call.args {
            if let Arg::Graph(body) = arg {
                **body = self::undone(body).into_owned();
            }
        }
        result.calls.push(call);
    }
    Cow::Owned(result)
}

fn has_any(program: &Program) -> bool {
    program.calls.iter().any(|call| {
        let mut bodies = call.args.iter().filter_map(|(_, arg)| arg.graph());
        call.target == TARGET || bodies.any(has_any)
    })
}

/// What a call becomes.
struct Undone {
    calls: Vec<Call>,
    /// Tensors that the program does not have.
    described: Vec<(String, TensorMeta)>,
}

impl Undone {
    fn of(call: &Call, program: &Program) -> Option<Undone> {
        let (Arg::Other(target), Arg::Tensors(bases)) =
            (&call.args.first()?.1, argument(call, "_all_bases")?)
        else {
            return None;
        };
        let results = call.outputs.len().checked_sub(bases.len())?;
        let (results, copies) = call.outputs.split_at(results);
        let mut undone = Undone { calls: vec![], described: vec![] };
        let mut names = Vec::new();
        for (number, (base, copy)) in bases.iter().zip(copies).enumerate() {
            let base = base.as_ref()?;
            let name = match copy {
                Output::Tensor(name) => name.clone(),
                Output::None => format!("{base}.changed{number}.{}", call.origin.node),
                Output::Tensors(_) | Output::SymInt(_) | Output::SymBool(_) | Output::SymFloat(_) => {
                    return None;
                }
            };
            let meta = program.tensors.get(base)?;
            if !program.tensors.contains_key(&name) {
                undone.described.push((name.clone(), meta.clone()));
            }
            let arguments = vec![("self".to_owned(), Arg::Tensor(base.clone()))];
            undone.call("aten.clone.default", arguments, vec![Output::Tensor(name.clone())], &call.origin);
            names.push((name, meta));
        }
        let mut arguments = Vec::new();
        for (own, arg) in &call.args[1..] {
            if let Some(changed) = own.strip_prefix('_').and_then(|own| own.strip_suffix("_base_index")) {
                let Arg::Int(number) = arg else { return None };
                let number = usize::try_from(number.as_int()?).ok()?;
                let given = undone.part(call, changed, names.get(number)?)?;
                arguments.push((changed.to_owned(), Arg::Tensor(given)));
            } else if !own.starts_with('_') {
                arguments.push((own.clone(), arg.clone()));
            }
        }
        let results = results.iter().filter(|output| **output != Output::None).cloned().collect();
        undone.call(target, arguments, results, &call.origin);
        Some(undone)
    }

    fn call(&mut self, target: &str, args: Vec<(String, Arg)>, outputs: Vec<Output>, origin: &Origin) {
        let (target, origin) = (target.to_owned(), origin.clone());
        self.calls.push(Call { target, args, outputs, origin });
    }

    /// The tensor that is given for an argument: all of a copy, or a part.
    fn part(&mut self, call: &Call, own: &str, (copy, meta): &(String, &TensorMeta)) -> Option<String> {
        let given = |what: &str| argument(call, &format!("_{own}_{what}"));
        let whole = || ("self".to_owned(), Arg::Tensor(copy.clone()));
        let named = |name: &str, arg: &Arg| (name.to_owned(), arg.clone());
        let (target, arguments, sizes) = match (given("slice_dim"), given("size")) {
            (Some(dim), _) => {
                let (start, end) = (given("slice_start")?, given("slice_end")?);
                let (Arg::Int(axis), Arg::Int(from), Arg::Int(to)) = (dim, start, end) else { return None };
                let mut sizes = meta.sizes.clone();
                *sizes.get_mut(usize::try_from(axis.as_int()?).ok()?)? = to - from;
                let arguments = vec![whole(), named("dim", dim), named("start", start), named("end", end)];
                ("aten.slice.Tensor", arguments, sizes)
            }
            (None, Some(size)) => {
                let (stride, offset) = (given("stride")?, given("storage_offset")?);
                let sizes = integers(size)?;
                let arguments = vec![
                    whole(),
                    named("size", size),
                    named("stride", stride),
                    named("storage_offset", offset),
                ];
                ("aten.as_strided.default", arguments, sizes)
            }
            (None, None) => return Some(copy.clone()),
        };
        let name = format!("{copy}.{own}.{}", call.origin.node);
        self.described.push((name.clone(), TensorMeta { sizes, strides: vec![], ..(*meta).clone() }));
        self.call(target, arguments, vec![Output::Tensor(name.clone())], &call.origin);
        Some(name)
    }
}

fn integers(arg: &Arg) -> Option<Vec<Expr>> {
    let Arg::Ints(list) = arg else { return None };
    Some(list.clone())
}

fn argument<'c>(call: &'c Call, name: &str) -> Option<&'c Arg> {
    call.args.iter().find(|(own, _)| own == name).map(|(_, arg)| arg)
}
