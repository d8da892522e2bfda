//! Prints graphs.

use crate::graph::text::{
    Detail, bracketed, collective_text, constant_text, conv_text, extern_text, guard_line, guard_text,
    origin_text, print_scalar, quoted, quoted_name, symbol_line,
};
use crate::graph::{Coord, Graph, InputRole, Node, Op, OriginId, OutputRole, TensorType, ValueId};
use crate::symbolic::Expr;
use cranelift_entity::EntityRef;
use std::fmt::{self, Write};

/// The whole graph; [`super::parse`] gives it back.
pub fn print(graph: &Graph) -> String {
    let mut printer = Printer { text: String::new(), depth: 0, detail: Detail::Full };
    printer.graph(graph);
    printer.text.push('\n');
    printer.text
}

/// For people: the data of larger constants is left out, so it cannot be parsed again.
pub fn print_short(graph: &Graph) -> String {
    let mut printer = Printer { text: String::new(), depth: 0, detail: Detail::Short };
    printer.graph(graph);
    printer.text.push('\n');
    printer.text
}

/// Some nodes of a graph, without names, places in the user's program and elements of constants, behind a line for each value
/// that others make and before one with some of their values.
pub(crate) fn print_part(graph: &Graph, nodes: &[&Node], values: &[ValueId]) -> String {
    let producers = graph.producers();
    let mut is_known = vec![false; graph.values.len()];
    nodes.iter().flat_map(|node| &node.outputs).for_each(|id| is_known[id.index()] = true);
    let mut printer = Printer { text: String::new(), depth: 0, detail: Detail::Short };
    for id in nodes.iter().flat_map(|node| &node.inputs) {
        if std::mem::replace(&mut is_known[id.index()], true) {
            continue;
        }
        let maker = producers[id.index()].map(|position| &graph.nodes[position].op);
        let kind = if matches!(maker, Some(Op::Constant(_))) { "constant" } else { "value" };
        printer.line(&format!("{kind} {}: {}", value(*id), graph.ty(*id)));
    }
    for node in nodes {
        let results = node.outputs.iter().map(|id| format!("{}: {}", value(*id), graph.ty(*id)));
        printer.text.push_str(&format!("{} = ", results.collect::<Vec<_>>().join(", ")));
        printer.op(node);
        printer.text.push('\n');
    }
    printer.line(&values.iter().map(|id| value(*id)).collect::<Vec<_>>().join(", "));
    printer.text
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, bracketed(&self.shape))
    }
}

fn value(id: ValueId) -> String {
    format!("%{}", id.index())
}

struct Printer {
    text: String,
    depth: usize,
    detail: Detail,
}

impl Printer {
    fn line(&mut self, text: &str) {
        self.text.push_str(&"  ".repeat(self.depth));
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Everything from `graph` to the closing brace; the caller ends the line.
    fn graph(&mut self, graph: &Graph) {
        let _ = writeln!(self.text, "graph {} {{", quoted(&graph.name));
        self.depth += 1;
        for (index, symbol) in graph.symbols.iter().enumerate() {
            self.line(&symbol_line(index, symbol));
        }
        for guard in &graph.guards {
            self.line(&guard_line(guard));
        }
        self.origins(graph);
        for (id, constant) in &graph.constants {
            let text = constant_text(constant, self.detail);
            self.line(&format!("const c{}{}: {text}", id.index(), quoted_name(&constant.name)));
        }
        self.inputs(graph);
        for node in &graph.nodes {
            self.node(graph, node);
        }
        for output in &graph.outputs {
            let role = match output.role {
                OutputRole::User => String::new(),
                OutputRole::State(input) => format!(" state {input}"),
                OutputRole::Mutation(input) => format!(" mutation {input}"),
            };
            self.line(&format!("output {} {}{role}", value(output.value), quoted(&output.name)));
        }
        self.depth -= 1;
        self.text.push_str(&"  ".repeat(self.depth));
        self.text.push('}');
    }

    /// One empty origin that nodes use goes without saying.
    fn origins(&mut self, graph: &Graph) {
        let plain = graph.origins.len() == 1
            && !graph.nodes.is_empty()
            && graph.origins.values().all(|origin| *origin == crate::graph::Origin::default());
        if plain {
            return;
        }
        for (id, origin) in &graph.origins {
            self.line(&format!("origin o{} = {}", id.index(), origin_text(origin)));
        }
    }

    fn inputs(&mut self, graph: &Graph) {
        let mut is_defined = vec![false; graph.values.len()];
        for input in &graph.inputs {
            let own = &graph.values[input.value];
            is_defined[input.value.index()] = true;
            let role = match input.role {
                InputRole::User => String::new(),
                InputRole::State(id) => format!(" state c{}", id.index()),
                InputRole::Generator => " generator".to_owned(),
            };
            let numbers = if input.is_complex { " complex" } else { "" };
            let value_name =
                if own.name == input.name { String::new() } else { format!(" value {}", quoted(&own.name)) };
            let name = quoted(&input.name);
            self.line(&format!("input {} {name}: {}{role}{numbers}{value_name}", value(input.value), own.ty));
        }
        for output in graph.nodes.iter().flat_map(|node| &node.outputs) {
            is_defined[output.index()] = true;
        }
        for (id, own) in graph.values.iter().filter(|(id, _)| !is_defined[id.index()]) {
            self.line(&format!("value {}{}: {}", value(id), quoted_name(&own.name), own.ty));
        }
    }

    fn node(&mut self, graph: &Graph, node: &Node) {
        let indent = "  ".repeat(self.depth);
        self.text.push_str(&indent);
        let results: Vec<String> = node
            .outputs
            .iter()
            .map(|id| {
                let own = &graph.values[*id];
                format!("{}{}: {}", value(*id), quoted_name(&own.name), own.ty)
            })
            .collect();
        self.text.push_str(&results.join(", "));
        if !results.is_empty() {
            self.text.push_str(" = ");
        }
        self.op(node);
        if node.origin != OriginId::new(0) {
            let _ = write!(self.text, " @ o{}", node.origin.index());
        }
        self.text.push('\n');
    }

    /// Operator, operands, parameters.
    fn op(&mut self, node: &Node) {
        let operands: Vec<String> = node.inputs.iter().map(|id| value(*id)).collect();
        let operands = operands.join(", ");
        let space = if operands.is_empty() { "" } else { " " };
        let _ = write!(self.text, "{}{space}{operands}", node.op.name());
        let parameters = match &node.op {
            Op::Constant(id) => format!(" c{}", id.index()),
            Op::Full(number) => format!(" {}", print_scalar(*number)),
            Op::Index(expr) => format!(" [{expr}]"),
            Op::View(coords) => format!(" {}", bracketed(coords)),
            Op::Pad { coords, fill } => format!(" {} fill {}", bracketed(coords), print_scalar(*fill)),
            Op::Gather(coords) => format!(" {}", coordinates(coords)),
            Op::Scatter { coords, combine } => format!(" {} {}", combine.name(), coordinates(coords)),
            Op::Cat { axis } | Op::Scan { axis, .. } => format!(" axis {axis}"),
            Op::Reduce { axes, .. } => format!(" axes {}", bracketed(axes)),
            Op::Sort { axis, descending, kept } => {
                let kept = kept.map_or(String::new(), |kept| format!(" first {kept}"));
                format!(" axis {axis}{}{kept}", if *descending { " descending" } else { "" })
            }
            Op::NthElement { axis, ties } => format!(" axis {axis}{}", ties.text()),
            Op::SearchSorted { right } => if *right { " right" } else { "" }.to_owned(),
            Op::Fourier(fourier) => format!(" {}", fourier.text()),
            Op::Recurrent(own) => format!(" {}", own.text()),
            Op::Extern(call) => format!(" {}", extern_text(call)),
            Op::Collective(own) => format!(" {}", collective_text(own)),
            Op::Conv(conv) => conv_text(conv),
            Op::Read(symbol) => format!(" {symbol}"),
            Op::Assert(message) => format!(" {}", quoted(message)),
            Op::Require(guard) => format!(" {}", guard_text(guard)),
            Op::Cond { then, otherwise } => return self.bodies(&[("then", then), ("else", otherwise)]),
            Op::While { condition, body, carried } => {
                let _ = write!(self.text, " carried {carried}");
                return self.bodies(&[("condition", condition), ("body", body)]);
            }
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast | Op::Routine(_) | Op::MatMul => {
                String::new()
            }
        };
        self.text.push_str(&parameters);
    }

    fn bodies(&mut self, bodies: &[(&str, &Graph)]) {
        for (keyword, body) in bodies {
            let _ = write!(self.text, " {keyword} ");
            self.graph(body);
        }
    }
}

fn coordinates(coords: &[Coord]) -> String {
    let items: Vec<String> = coords
        .iter()
        .map(|coord| match coord {
            Coord::Expr(expr) => Expr::to_string(expr),
            Coord::Indirect(k) => format!("${k}"),
            Coord::Wrapped(k) => format!("wrap ${k}"),
        })
        .collect();
    bracketed(&items)
}
