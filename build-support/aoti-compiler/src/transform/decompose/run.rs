//! Walks a program call by call: resolves operands, applies rules, tracks storages.

use super::{Args, Context, Kind, Outputs, Registry, Rule, RuleError};
use crate::aten::{Arg, Call, InputKind, Output, OutputKind, Program, ProgramInput};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::dtype::DType;
use crate::graph::{
    Builder, Combine, Coord, Graph, InputRole, Node, Op, Origin, OutputRole, SymbolInfo, SymbolSource,
    TensorType, ValueId,
};
use crate::symbolic::{Expr, SymbolKind};
use indexmap::{IndexMap, IndexSet};
use std::collections::BTreeSet;

/// Turns a program into a core graph. All unsupported operators are reported together.
pub fn decompose(program: &Program) -> Result<Graph, Diagnostics> {
    let registry = Registry::new();
    let program = super::inline::inlined(program);
    let program = program.as_ref();
    let unsupported = unsupported_operators(program, &registry);
    if !unsupported.is_empty() {
        return Err(Diagnostics(unsupported));
    }
    let mut builder = Builder::new(&program.name);
    for symbol in &program.symbols {
        builder.symbol(symbol.clone());
    }
    for guard in &program.guards {
        builder.guard(guard.clone());
    }
    let mut walk = Walk::new(program, &registry, builder);
    walk.inputs()?;
    walk.calls()?;
    walk.outputs()?;
    let graph = walk.cx.b.finish();
    let unbounded = unbounded_sizes(&graph);
    if unbounded.is_empty() { Ok(graph) } else { Err(Diagnostics(unbounded)) }
}

/// Sizes that are read from data and that nothing limits: no memory can be planned for them.
fn unbounded_sizes(graph: &Graph) -> Vec<Diagnostic> {
    let mut sizes = BTreeSet::new();
    for node in &graph.nodes {
        for size in node.outputs.iter().flat_map(|value| &graph.ty(*value).shape) {
            size.collect_symbols(&mut sizes);
        }
    }
    let unlimited = |info: &&SymbolInfo| info.source == SymbolSource::Data && info.range.max == i64::MAX;
    sizes
        .into_iter()
        .filter_map(|symbol| graph.symbols.get(symbol.index as usize).filter(unlimited))
        .map(|info| {
            let message = format!("the size `{}` is read from data and has no bound", info.name);
            Diagnostic::new(Code::Size, message)
                .help("state one in the program with `torch._check(size <= bound)` and export again")
        })
        .collect()
}

/// One finding for each operator that has no rule, at its first call.
fn unsupported_operators(program: &Program, registry: &Registry) -> Vec<Diagnostic> {
    let mut calls: IndexMap<&str, Vec<&Origin>> = IndexMap::new();
    collect_unsupported(program, registry, &mut calls);
    calls
        .into_iter()
        .map(|(target, origins)| {
            let times =
                if origins.len() == 1 { "once".to_owned() } else { format!("{} times", origins.len()) };
            let mut finding = Diagnostic::new(
                Code::Operator,
                format!("operator `{target}` is not supported (called {times})"),
            )
            .at(origins[0])
            .help("`cargo aoti inspect --ops` lists the supported operators");
            for origin in origins.iter().skip(1).take(4) {
                if !origin.source.is_empty() {
                    finding = finding.note(format!("also at {}", origin.source));
                }
            }
            finding
        })
        .collect()
}

fn collect_unsupported<'a>(
    program: &'a Program,
    registry: &Registry,
    calls: &mut IndexMap<&'a str, Vec<&'a Origin>>,
) {
    for call in &program.calls {
        if !is_structural(&call.target) && registry.find(&call.target).is_none() {
            calls.entry(&call.target).or_default().push(&call.origin);
        }
        for (_, arg) in &call.args {
            if let Arg::Graph(body) = arg {
                collect_unsupported(body, registry, calls);
            }
        }
    }
}

/// Calls that concern sizes and control flow, which the walk handles itself.
fn is_structural(target: &str) -> bool {
    target.starts_with("_operator.")
        || target.starts_with("math.")
        || matches!(
            target,
            "higher_order.cond"
                | "higher_order.while_loop"
                | "aten.sym_size.int"
                | "aten.sym_stride.int"
                | "aten.sym_numel.default"
                | "aten.sym_storage_offset.default"
                | "aten.sym_constrain_range_for_size.default"
                | "aten.sym_constrain_range.default"
                | "aten._assert_scalar.default"
                | "aten._assert_tensor_metadata.default"
                | "torch.sym_max"
                | "torch.sym_min"
                | "torch.sym_not"
                | "torch.sym_float"
        )
}

/// A tensor value of the program: a window onto a storage.
#[derive(Clone)]
struct Window {
    storage: usize,
    /// Coordinates into the storage over the window's axes; `None` for the whole storage as it is.
    coords: Option<Vec<Expr>>,
    shape: Vec<Expr>,
    /// The value and the storage's version that it was read at.
    value: ValueId,
    version: usize,
}

/// What the windows look onto. `value` has the shape of the storage's first tensor.
struct Storage {
    value: ValueId,
    version: usize,
}

struct Walk<'a> {
    program: &'a Program,
    registry: &'a Registry,
    cx: Context,
    windows: IndexMap<String, Window>,
    storages: Vec<Storage>,
    /// Aliasing is tracked only where something is mutated.
    mutates: bool,
}

impl<'a> Walk<'a> {
    fn new(program: &'a Program, registry: &'a Registry, builder: Builder) -> Walk<'a> {
        let mutates = program
            .calls
            .iter()
            .any(|call| registry.find(&call.target).is_some_and(|rule| rule.kind == Kind::InPlace));
        Walk {
            program,
            registry,
            cx: Context::new(builder),
            windows: IndexMap::new(),
            storages: vec![],
            mutates,
        }
    }

    fn define(&mut self, name: &str, value: ValueId) {
        self.storages.push(Storage { value, version: 0 });
        let window = Window {
            storage: self.storages.len() - 1,
            coords: None,
            shape: self.cx.b.shape(value),
            value,
            version: 0,
        };
        self.windows.insert(name.to_owned(), window);
    }

    /// The current value of a tensor.
    fn read(&mut self, name: &str) -> Result<ValueId, RuleError> {
        let Some(window) = self.windows.get(name).cloned() else {
            return Err(RuleError::Malformed(format!("tensor `{name}` is not defined")));
        };
        let storage = &self.storages[window.storage];
        if window.version == storage.version {
            return Ok(window.value);
        }
        let (base, version) = (storage.value, storage.version);
        let value = match &window.coords {
            None => base,
            Some(coords) if self.depends_on_data(coords) => {
                let (indices, coords) = self.checked(coords, &window.shape);
                self.cx.b.gather(base, &indices, coords, &window.shape)?
            }
            Some(coords) => self.cx.b.view(base, &window.shape, coords.clone())?,
        };
        self.windows.insert(name.to_owned(), Window { value, version, ..window });
        Ok(value)
    }

    /// Overwrites a tensor, and so every window onto its storage.
    fn write(&mut self, name: &str, value: ValueId) -> Result<(), RuleError> {
        let Some(window) = self.windows.get(name).cloned() else {
            return Err(RuleError::Malformed(format!("tensor `{name}` is not defined")));
        };
        let base = self.storages[window.storage].value;
        let dtype = self.cx.b.dtype(base);
        let value = self.cx.b.cast(value, dtype);
        let value = self.cx.b.expand(value, &window.shape)?;
        let new_base = match &window.coords {
            None => value,
            Some(coords) => {
                let (indices, coords) = self.checked(coords, &window.shape);
                self.cx.b.scatter(base, value, &indices, coords, Combine::Set)?
            }
        };
        let storage = &mut self.storages[window.storage];
        storage.value = new_base;
        storage.version += 1;
        let version = storage.version;
        self.windows.insert(name.to_owned(), Window { value, version, ..window });
        Ok(())
    }

    /// Whether coordinates depend on numbers read from data, about which nothing is known before the run.
    fn depends_on_data(&self, coords: &[Expr]) -> bool {
        coords.iter().any(|coord| self.is_from_data(coord))
    }

    fn is_from_data(&self, coord: &Expr) -> bool {
        let mut symbols = BTreeSet::new();
        coord.collect_symbols(&mut symbols);
        let info = |symbol: &crate::symbolic::Symbol| self.cx.b.graph().symbols.get(symbol.index as usize);
        symbols
            .iter()
            .filter(|symbol| symbol.kind == SymbolKind::Size)
            .any(|symbol| info(symbol).is_some_and(|info| info.source == crate::graph::SymbolSource::Data))
    }

    /// Coordinates for an access whose bounds are checked at run time where they depend on data.
    fn checked(&mut self, coords: &[Expr], shape: &[Expr]) -> (Vec<ValueId>, Vec<Coord>) {
        let mut indices = Vec::new();
        let mut result = Vec::new();
        for coord in coords {
            if self.is_from_data(coord) {
                result.push(Coord::Indirect(indices.len()));
                indices.push(self.cx.b.index(coord.clone(), shape));
            } else {
                result.push(Coord::Expr(coord.clone()));
            }
        }
        (indices, result)
    }

    // --- inputs and outputs --------------------------------------------------------------------------------------

    fn inputs(&mut self) -> Result<(), Diagnostics> {
        let program = self.program;
        let mutated: BTreeSet<&str> = program
            .outputs
            .iter()
            .filter_map(|output| match &output.kind {
                OutputKind::BufferMutation(name) => Some(name.as_str()),
                OutputKind::User | OutputKind::InputMutation(_) => None,
            })
            .collect();
        for input in &program.inputs {
            self.input(input, &mutated)?;
        }
        Ok(())
    }

    fn input(&mut self, input: &ProgramInput, mutated: &BTreeSet<&str>) -> Result<(), Diagnostics> {
        let described = self.program.tensors.get(&input.name);
        match &input.kind {
            InputKind::User => {
                let Some(meta) = described else {
                    return Err(graph_error(format!("input `{}` has no description", input.name)));
                };
                let ty = TensorType { dtype: meta.dtype, shape: meta.sizes.clone() };
                let value = self.cx.b.input(&input.name, ty, InputRole::User);
                self.define(&input.name, value);
            }
            InputKind::UserInt(_) => {
                let ty = TensorType { dtype: DType::I64, shape: vec![] };
                self.cx.b.input(&input.name, ty, InputRole::User);
            }
            InputKind::UserConstant => {}
            InputKind::Constant(name) => {
                let Some(constant) = self.program.constants.get(name) else {
                    return Err(graph_error(format!("constant `{name}` has no data")));
                };
                let value = if mutated.contains(name.as_str()) {
                    let ty = TensorType {
                        dtype: constant.dtype,
                        shape: constant.sizes.iter().map(|size| Expr::int(*size)).collect(),
                    };
                    let initial = self.cx.b.add_constant(constant.clone());
                    self.cx.b.input(name, ty, InputRole::State(initial))
                } else {
                    self.cx.b.constant(constant.clone()).map_err(|error| graph_error(error.0))?
                };
                self.define(&input.name, value);
            }
        }
        Ok(())
    }

    fn outputs(&mut self) -> Result<(), Diagnostics> {
        let program = self.program;
        let mut user_outputs = 0;
        for output in &program.outputs {
            let (name, value) = match &output.value {
                Arg::Tensor(name) => (name.clone(), self.read(name).map_err(|e| graph_error(e.to_string()))?),
                Arg::Int(expr) => {
                    let value = self.cx.b.index(expr.clone(), &[]);
                    (format!("output_{user_outputs}"), value)
                }
                Arg::Float(number) => {
                    (format!("output_{user_outputs}"), self.cx.b.scalar(*number, DType::F64))
                }
                Arg::Bool(flag) => (format!("output_{user_outputs}"), self.cx.b.scalar(*flag, DType::Bool)),
                // `None` is returned as nothing.
                Arg::None
                | Arg::Tensors(_)
                | Arg::Ints(_)
                | Arg::Floats(_)
                | Arg::Bools(_)
                | Arg::SymBool(_)
                | Arg::Str(_)
                | Arg::DType(_)
                | Arg::Other(_)
                | Arg::Graph(_) => continue,
            };
            let role = match &output.kind {
                OutputKind::User => OutputRole::User,
                OutputKind::BufferMutation(buffer) => self.state_role(buffer)?,
                OutputKind::InputMutation(input) => self.mutation_role(input)?,
            };
            user_outputs += usize::from(role == OutputRole::User);
            self.cx.b.output(&name, value, role);
        }
        Ok(())
    }

    fn state_role(&self, buffer: &str) -> Result<OutputRole, Diagnostics> {
        let inputs = &self.cx.b.graph().inputs;
        let position = inputs.iter().position(|input| input.name == buffer && input.role != InputRole::User);
        position
            .map(OutputRole::State)
            .ok_or_else(|| graph_error(format!("mutated buffer `{buffer}` is no input")))
    }

    fn mutation_role(&self, name: &str) -> Result<OutputRole, Diagnostics> {
        let inputs = &self.cx.b.graph().inputs;
        let position = inputs.iter().position(|input| input.name == name && input.role == InputRole::User);
        position
            .map(OutputRole::Mutation)
            .ok_or_else(|| graph_error(format!("mutated input `{name}` is no input")))
    }

    // --- calls ---------------------------------------------------------------------------------------------------

    fn calls(&mut self) -> Result<(), Diagnostics> {
        let mut findings = Vec::new();
        let mut poisoned: BTreeSet<&str> = BTreeSet::new();
        let program = self.program;
        for call in &program.calls {
            // What depends on a refused call is not a finding of its own.
            let blocked = tensor_names(call).iter().any(|name| poisoned.contains(name));
            let result = if blocked { None } else { Some(self.call(call)) };
            if let Some(Ok(())) = result {
                continue;
            }
            poisoned.extend(output_names(call));
            if let Some(Err(error)) = result {
                let message = format!("operator `{}`: {error}", call.target);
                findings.push(Diagnostic::new(Code::Operands, message).at(&call.origin));
            }
        }
        if findings.is_empty() { Ok(()) } else { Err(Diagnostics(findings)) }
    }

    fn call(&mut self, call: &Call) -> Result<(), RuleError> {
        self.cx.b.set_origin(call.origin.clone());
        if is_structural(&call.target) {
            return self.structural(call);
        }
        let rule = self.registry.find(&call.target).expect("unsupported operators were reported before");
        let mut tensors = IndexMap::new();
        for name in tensor_names(call) {
            let value = self.read(name)?;
            tensors.insert(name.to_owned(), value);
        }
        let args = Args { call, program: self.program, tensors: &tensors };
        self.cx.overwritten.clear();
        let outputs = (rule.run)(&mut self.cx, &args)?;
        for (name, value) in std::mem::take(&mut self.cx.overwritten) {
            if let Some((_, Arg::Tensor(tensor))) = call.args.iter().find(|(own, _)| own == name) {
                self.write(tensor, value)?;
            }
        }
        if rule.kind == Kind::InPlace {
            return self.finish_in_place(call, outputs);
        }
        let is_window = rule.kind == Kind::View && !super::copies::copies(call, self.program);
        let windows = if is_window && self.mutates { self.window_onto_operand(call, rule)? } else { None };
        self.bind(call, outputs, windows)
    }

    fn finish_in_place(&mut self, call: &Call, outputs: Outputs) -> Result<(), RuleError> {
        let target = match call.args.iter().find(|(name, _)| name == "self").or(call.args.first()) {
            Some((_, Arg::Tensor(name))) => name.clone(),
            _ => return Err(RuleError::Malformed("the tensor to overwrite is missing".to_owned())),
        };
        let value = match outputs {
            Outputs::One(value) => value,
            Outputs::Many(_) | Outputs::List(_) | Outputs::Int(_) | Outputs::Nothing => {
                return Err(RuleError::unsupported("in place with other than one result"));
            }
        };
        self.write(&target, value)?;
        if let Some(Output::Tensor(name)) = call.outputs.first() {
            let window = self.windows[&target].clone();
            self.windows.insert(name.clone(), window);
        }
        Ok(())
    }

    /// The windows that a view operator's outputs are, found by applying its rule to a stand-in for the operand.
    fn window_onto_operand(&mut self, call: &Call, rule: Rule) -> Result<Option<Vec<Window>>, RuleError> {
        let names = tensor_names(call);
        // Other tensors, of `view_as` and the like, only lend their shapes.
        let Some((operand, others)) = names.split_first() else { return Ok(None) };
        let source = self.windows[*operand].clone();
        let dtype = self.cx.b.dtype(source.value);
        let mut scratch = self.cx.b.child("window");
        let ty = TensorType { dtype, shape: source.shape.clone() };
        let stand_in = scratch.input("operand", ty, InputRole::User);
        let mut tensors = IndexMap::from([((*operand).to_owned(), stand_in)]);
        for other in others {
            let ty = self.cx.b.ty(self.windows[*other].value).clone();
            tensors.insert((*other).to_owned(), scratch.input(other, ty, InputRole::User));
        }
        std::mem::swap(&mut self.cx.b, &mut scratch);
        let args = Args { call, program: self.program, tensors: &tensors };
        let outputs = (rule.run)(&mut self.cx, &args);
        std::mem::swap(&mut self.cx.b, &mut scratch);
        let values = match outputs? {
            Outputs::One(value) => vec![value],
            Outputs::List(values) => values,
            Outputs::Many(values) => values.into_iter().flatten().collect(),
            Outputs::Int(_) | Outputs::Nothing => return Ok(None),
        };
        let mut windows = Vec::new();
        for value in values {
            let inner = if value == stand_in {
                None
            } else if let Some(Node { op: Op::View(coords), inputs, .. }) = scratch.producer(value)
                && inputs[0] == stand_in
            {
                Some(coords.clone())
            } else {
                // Not a window (such as `to` with another type): a tensor of its own.
                return Ok(None);
            };
            let shape = scratch.shape(value);
            windows.push(self.compose(&source, inner, shape));
        }
        Ok(Some(windows))
    }

    fn compose(&self, source: &Window, inner: Option<Vec<Expr>>, shape: Vec<Expr>) -> Window {
        let coords = match (&source.coords, inner) {
            (outer, None) => outer.clone(),
            (None, Some(inner)) => Some(inner),
            (Some(outer), Some(inner)) => {
                let ranges = self.cx.b.axis_ranges(&shape);
                let replace = |symbol: crate::symbolic::Symbol| match symbol.kind {
                    SymbolKind::Axis => inner.get(symbol.index as usize).cloned(),
                    SymbolKind::Size => None,
                };
                Some(outer.iter().map(|coord| coord.substitute(&replace, &ranges)).collect())
            }
        };
        Window { storage: source.storage, coords, shape, value: source.value, version: source.version }
    }

    /// Gives the outputs of a call their names.
    fn bind(&mut self, call: &Call, outputs: Outputs, windows: Option<Vec<Window>>) -> Result<(), RuleError> {
        let named: Vec<(&str, Option<ValueId>)> = match (outputs, call.outputs.as_slice()) {
            (Outputs::Nothing, _) => vec![],
            (Outputs::One(value), [Output::Tensor(name), ..]) => vec![(name, Some(value))],
            (Outputs::List(values), [Output::Tensors(names)]) => {
                pair(names.iter().map(String::as_str), values)?
            }
            (Outputs::List(values), names) => {
                let names: Vec<&str> = names.iter().filter_map(Output::tensor).collect();
                pair(names.into_iter(), values)?
            }
            (Outputs::Many(values), [Output::Tensors(names)]) => {
                names.iter().map(String::as_str).zip(values).collect()
            }
            (Outputs::Many(values), names) => names
                .iter()
                .map(Output::tensor)
                .zip(values)
                .filter_map(|(name, value)| Some((name?, value)))
                .collect(),
            (Outputs::One(_) | Outputs::Int(_), _) => {
                return Err(RuleError::Malformed("the call's results do not fit its operator".to_owned()));
            }
        };
        for (index, (name, value)) in named.into_iter().enumerate() {
            let Some(value) = value else { continue };
            self.check(name, value)?;
            self.cx.b.name(value, name);
            match windows.as_ref().and_then(|windows| windows.get(index)) {
                Some(window) => {
                    let window = Window { value, ..window.clone() };
                    self.windows.insert(name.to_owned(), window);
                }
                None => self.define(name, value),
            }
        }
        Ok(())
    }

    /// The rule's result must be what the program says it is.
    fn check(&mut self, name: &str, value: ValueId) -> Result<(), RuleError> {
        let Some(meta) = self.program.tensors.get(name) else { return Ok(()) };
        let ty = self.cx.b.ty(value).clone();
        let same_shape = ty.rank() == meta.sizes.len()
            && ty
                .shape
                .iter()
                .zip(&meta.sizes)
                .all(|(a, b)| self.cx.b.same_size(a, b) || has_symbol(a) || has_symbol(b));
        if ty.dtype == meta.dtype && same_shape {
            return Ok(());
        }
        Err(RuleError::unsupported(format!(
            "the result `{name}` would be {}{:?} where the program has {}{:?}",
            ty.dtype, ty.shape, meta.dtype, meta.sizes
        )))
    }

    // --- sizes and control flow ----------------------------------------------------------------------------------

    fn structural(&mut self, call: &Call) -> Result<(), RuleError> {
        match call.target.as_str() {
            "higher_order.cond" => self.cond(call),
            "higher_order.while_loop" => self.while_loop(call),
            // Integers are resolved by the front end; conditions on sizes are stated as ranges and guards.
            _ => Ok(()),
        }
    }

    fn cond(&mut self, call: &Call) -> Result<(), RuleError> {
        let [(_, predicate), (_, Arg::Graph(then)), (_, Arg::Graph(otherwise)), rest @ ..] =
            call.args.as_slice()
        else {
            return Err(RuleError::Malformed("`cond` takes a predicate, two graphs and operands".to_owned()));
        };
        let predicate = if let Arg::Tensor(name) = predicate {
            self.read(name)?
        } else if let Arg::Bool(value) = predicate {
            self.cx.b.scalar(*value, DType::Bool)
        } else {
            return Err(RuleError::unsupported("a predicate that is not a tensor"));
        };
        let operands = self.operand_list(rest)?;
        let types: Vec<TensorType> = operands.iter().map(|value| self.cx.b.ty(*value).clone()).collect();
        let then = self.body(then, &types)?;
        let otherwise = self.body(otherwise, &types)?;
        let results = self.cx.b.cond(predicate, then, otherwise, &operands)?;
        self.bind(call, Outputs::List(results), None)
    }

    fn while_loop(&mut self, call: &Call) -> Result<(), RuleError> {
        let [(_, Arg::Graph(condition)), (_, Arg::Graph(body)), (_, carried), rest @ ..] =
            call.args.as_slice()
        else {
            return Err(RuleError::Malformed("`while_loop` takes two graphs and operands".to_owned()));
        };
        let carried = self.operand_list(&[(String::new(), carried.clone())])?;
        let mut operands = carried.clone();
        operands.extend(self.operand_list(rest)?);
        let types: Vec<TensorType> = operands.iter().map(|value| self.cx.b.ty(*value).clone()).collect();
        let condition = self.body(condition, &types)?;
        let body = self.body(body, &types)?;
        let results = self.cx.b.while_loop(condition, body, &operands, carried.len())?;
        self.bind(call, Outputs::List(results), None)
    }

    fn operand_list(&mut self, args: &[(String, Arg)]) -> Result<Vec<ValueId>, RuleError> {
        let mut values = Vec::new();
        for (_, arg) in args {
            match arg {
                Arg::Tensor(_) | Arg::Tensors(_) => {
                    for name in arg.tensors() {
                        values.push(self.read(name)?);
                    }
                }
                Arg::Ints(list) if list.is_empty() => {}
                Arg::None => {}
                Arg::Int(expr) => values.push(self.cx.b.index(expr.clone(), &[])),
                Arg::Ints(_)
                | Arg::Float(_)
                | Arg::Floats(_)
                | Arg::Bool(_)
                | Arg::Bools(_)
                | Arg::SymBool(_)
                | Arg::Str(_)
                | Arg::DType(_)
                | Arg::Other(_)
                | Arg::Graph(_) => return Err(RuleError::unsupported("an operand that is not a tensor")),
            }
        }
        Ok(values)
    }

    /// The core graph of a body whose inputs have the given types.
    fn body(&mut self, body: &Program, types: &[TensorType]) -> Result<Graph, RuleError> {
        if body.inputs.len() != types.len() {
            return Err(RuleError::Malformed(format!(
                "the body takes {} values, {} are given",
                body.inputs.len(),
                types.len()
            )));
        }
        let mut walk = Walk::new(body, self.registry, self.cx.b.child(&body.name));
        for (input, ty) in body.inputs.iter().zip(types) {
            let value = walk.cx.b.input(&input.name, ty.clone(), InputRole::User);
            walk.define(&input.name, value);
        }
        let inner = |diagnostics: Diagnostics| {
            let messages: Vec<String> = diagnostics.0.into_iter().map(|finding| finding.message).collect();
            RuleError::Unsupported(messages.join("; "))
        };
        walk.calls().map_err(inner)?;
        walk.outputs().map_err(inner)?;
        Ok(walk.cx.b.finish())
    }
}

fn has_symbol(expr: &Expr) -> bool {
    expr.as_int().is_none()
}

fn graph_error(message: String) -> Diagnostics {
    Diagnostic::new(Code::Graph, message).into()
}

fn pair<'n>(
    names: impl ExactSizeIterator<Item = &'n str>,
    values: Vec<ValueId>,
) -> Result<Vec<(&'n str, Option<ValueId>)>, RuleError> {
    if names.len() != values.len() {
        return Err(RuleError::unsupported(format!(
            "{} results where the program has {}",
            values.len(),
            names.len()
        )));
    }
    Ok(names.zip(values.into_iter().map(Some)).collect())
}

fn output_names(call: &Call) -> Vec<&str> {
    call.outputs.iter().flat_map(Output::tensors).collect()
}

/// Names of the tensors among a call's arguments, each once.
fn tensor_names(call: &Call) -> Vec<&str> {
    let names: IndexSet<&str> = call.args.iter().flat_map(|(_, arg)| arg.tensors()).collect();
    names.into_iter().collect()
}
