//! Parses programs: declarations, steps and kernels. Buffers and constants exist when they are mentioned; all else is
//! the verifier's business.

use crate::diagnostic::Diagnostics;
use crate::graph::{ConstantId, ReduceOp, Routine, ScanOp};
use crate::loops::{
    Accumulator, Attention, Axis, AxisKernel, AxisOp, Buffer, BufferId, Channels, Convolution, Elsewhere,
    ExternKernel, Kernel, KernelKind, MatMul, MatrixOperand, Nest, OfNothing, Program, Site, Sorting, Stage,
    Step, Storage,
};
use crate::symbolic::{Expr, Node, Symbol, SymbolKind};
use crate::text::{Cursor, SyntaxError};
use cranelift_entity::PrimaryMap;

/// Parses the text form. A fault is reported with line and column; the result is not verified.
pub fn parse(text: &str) -> Result<Program, Diagnostics> {
    Cursor::whole(text, |cursor| parse_with(cursor, &mut |_, _| Ok(())))
}

/// Reads what stands in a kernel after its notes: the buffers so far, and where to read.
pub(crate) type Decisions<'d> =
    &'d mut dyn FnMut(&mut Cursor<'_>, &PrimaryMap<BufferId, Buffer>) -> Result<(), SyntaxError>;

/// Parses a program in whose kernels there are decisions, which `decisions` reads in the order of the kernels.
pub(crate) fn parse_with(cursor: &mut Cursor<'_>, decisions: Decisions<'_>) -> Result<Program, SyntaxError> {
    let mut parser = Parser { cursor, decisions, program: Program::default() };
    parser.program()?;
    Ok(parser.program)
}

pub(super) struct Parser<'c, 'a> {
    pub(super) cursor: &'c mut Cursor<'a>,
    decisions: Decisions<'c>,
    /// What has been declared so far.
    pub(super) program: Program,
}

impl Parser<'_, '_> {
    fn program(&mut self) -> Result<(), SyntaxError> {
        self.cursor.expect_word("loops")?;
        self.program.name = self.cursor.optional_string()?.unwrap_or_default();
        self.cursor.expect('{')?;
        loop {
            match self.cursor.peek_word() {
                "symbol" => {
                    self.cursor.word()?;
                    self.cursor.symbol(&mut self.program.symbols)?;
                }
                "guard" => {
                    self.cursor.word()?;
                    self.program.guards.push(self.cursor.guard()?);
                }
                "const" => self.constant()?,
                "buffer" => self.declaration()?,
                "inputs" => self.program.inputs = self.interface()?,
                "graph_inputs" => self.program.graph_inputs = self.interface()?,
                "outputs" => self.program.outputs = self.interface()?,
                "state" => {
                    self.cursor.word()?;
                    let state = (self.buffer()?, self.constant_id()?);
                    self.program.states.push(state);
                }
                "site" => {
                    self.cursor.word()?;
                    self.program.sites.push(Site::Index(self.cursor.string()?));
                }
                "assertion" => {
                    self.cursor.word()?;
                    self.program.sites.push(Site::Assertion(self.cursor.string()?));
                }
                _ => break,
            }
        }
        self.program.steps = self.steps()?;
        Ok(())
    }

    fn constant(&mut self) -> Result<(), SyntaxError> {
        self.cursor.word()?;
        self.cursor.next_reference('c', self.program.constants.len())?;
        let name = self.cursor.optional_string()?.unwrap_or_default();
        self.cursor.expect(':')?;
        self.program.constants.push(self.cursor.constant(name)?);
        Ok(())
    }

    fn constant_id(&mut self) -> Result<ConstantId, SyntaxError> {
        let id = ConstantId::from_u32(self.cursor.reference('c')?);
        if self.program.constants.is_valid(id) {
            Ok(id)
        } else {
            Err(self.cursor.error("there is no such constant"))
        }
    }

    fn declaration(&mut self) -> Result<(), SyntaxError> {
        self.cursor.word()?;
        self.cursor.next_reference('b', self.program.buffers.len())?;
        let name = self.cursor.optional_string()?.unwrap_or_default();
        self.cursor.expect(':')?;
        let ty = self.cursor.tensor_type()?;
        let storage = match self.cursor.word()? {
            "input" => Storage::Input(self.cursor.position()?),
            "output" => Storage::Output(self.cursor.position()?),
            "state" => Storage::State(self.cursor.position()?),
            "constant" => Storage::Constant(self.constant_id()?),
            "generator" => Storage::Generator,
            "temporary" => Storage::Temporary,
            "row" => Storage::Local { outer: self.cursor.position()? },
            _ => return Err(self.cursor.error("expected where the buffer lives")),
        };
        let is_complex = self.cursor.eat_word("complex");
        self.program.buffers.push(Buffer { dtype: ty.dtype, shape: ty.shape, storage, name, is_complex });
        Ok(())
    }

    /// A keyword and buffers.
    fn interface(&mut self) -> Result<Vec<BufferId>, SyntaxError> {
        self.cursor.word()?;
        self.buffers()
    }

    fn buffers(&mut self) -> Result<Vec<BufferId>, SyntaxError> {
        self.cursor.expect('[')?;
        let mut buffers = Vec::new();
        while !self.cursor.eat(']') {
            if !buffers.is_empty() {
                self.cursor.expect(',')?;
            }
            buffers.push(self.buffer()?);
        }
        Ok(buffers)
    }

    pub(super) fn buffer(&mut self) -> Result<BufferId, SyntaxError> {
        let id = BufferId::from_u32(self.cursor.reference('b')?);
        if self.program.buffers.is_valid(id) {
            Ok(id)
        } else {
            Err(self.cursor.error("there is no such buffer"))
        }
    }

    /// Up to the closing brace.
    fn steps(&mut self) -> Result<Vec<Step>, SyntaxError> {
        self.cursor.enter()?;
        let mut steps = Vec::new();
        while !self.cursor.eat('}') {
            steps.push(self.step()?);
        }
        self.cursor.leave();
        Ok(steps)
    }

    fn block(&mut self) -> Result<Vec<Step>, SyntaxError> {
        self.cursor.expect('{')?;
        self.steps()
    }

    fn step(&mut self) -> Result<Step, SyntaxError> {
        Ok(match self.cursor.word()? {
            "kernel" => {
                let kernel = self.kernel()?;
                Step::Kernel(self.program.kernels.push(kernel))
            }
            "read" => {
                let symbol = Symbol::size(self.cursor.reference('s')?);
                Step::Read { buffer: self.buffer()?, symbol, place: self.cursor.string()? }
            }
            "require" => Step::Require(self.cursor.guard()?),
            "assert" => Step::Assert(self.buffer()?, self.cursor.string()?),
            "if" => {
                let (predicate, then) = (self.buffer()?, self.block()?);
                self.cursor.expect_word("else")?;
                Step::If { predicate, then, otherwise: self.block()? }
            }
            "loop" => {
                let condition = self.block()?;
                self.cursor.expect_word("while")?;
                Step::Loop { condition, predicate: self.buffer()?, body: self.block()? }
            }
            _ => return Err(self.cursor.error("expected a step such as `kernel`")),
        })
    }

    fn kernel(&mut self) -> Result<Kernel, SyntaxError> {
        let name = self.cursor.string()?;
        self.cursor.expect('{')?;
        let mut origins = Vec::new();
        while self.cursor.eat_word("note") {
            origins.push(self.cursor.note()?);
        }
        (self.decisions)(self.cursor, &self.program.buffers)?;
        let kind = match self.cursor.word()? {
            "for" => KernelKind::Nest(self.nest()?),
            "matmul" => KernelKind::MatMul(self.matmul()?),
            "conv" => KernelKind::Convolution(self.convolution()?),
            "attention" => KernelKind::Attention(self.attention()?),
            "rows" => KernelKind::AxisOp(self.rows()?),
            "extern" => KernelKind::Extern(self.external(None)?),
            name @ ("all_reduce" | "all_gather" | "reduce_scatter" | "all_to_all" | "broadcast") => {
                KernelKind::Extern(self.external(Some(name))?)
            }
            _ => {
                return Err(self
                    .cursor
                    .error("expected `for`, `matmul`, `conv`, `attention`, `rows` or `extern`"));
            }
        };
        self.cursor.expect('}')?;
        Ok(Kernel { name, origins, kind })
    }

    fn nest(&mut self) -> Result<Nest, SyntaxError> {
        let (axes, serial) = (self.axes()?, self.cursor.eat_word("serial"));
        let mut nest = Nest { axes, serial, ..Nest::default() };
        self.cursor.expect('{')?;
        while self.cursor.eat_word("accumulator") {
            let accumulator = self.accumulator(nest.accumulators.len())?;
            nest.accumulators.push(accumulator);
        }
        while self.cursor.eat_word("stage") {
            let axes = self.axes()?;
            nest.stages.push(self.stage(axes)?);
        }
        self.cursor.expect('}')?;
        Ok(nest)
    }

    fn accumulator(&mut self, expected: usize) -> Result<Accumulator, SyntaxError> {
        if self.id("acc")? != expected {
            return Err(self.cursor.error(format!("expected `acc{expected}`")));
        }
        self.cursor.expect(':')?;
        let op = ReduceOp::from_name(self.cursor.word()?);
        let op = op.ok_or_else(|| self.cursor.error("expected a reduction"))?;
        let dtype = self.cursor.dtype()?;
        self.cursor.expect_word("in")?;
        self.cursor.expect_word("stage")?;
        let stage = self.cursor.position()?;
        let position = if self.cursor.eat_word("at") { Some(self.cursor.expression()?) } else { None };
        Ok(Accumulator { op, dtype, stage, position })
    }

    fn matmul(&mut self) -> Result<MatMul, SyntaxError> {
        let dtype = self.cursor.dtype()?;
        let a = self.operand()?;
        self.cursor.expect(',')?;
        let b = self.operand()?;
        self.cursor.expect_word("over")?;
        let axes = self.axes()?;
        self.cursor.expect_word("depth")?;
        let depth = self.cursor.expression()?;
        let epilogue = self.epilogue()?;
        let row_epilogue = if self.cursor.eat_word("then") {
            self.cursor.expect_word("for")?;
            Some(self.nest()?)
        } else {
            None
        };
        Ok(MatMul { axes, depth, a, b, dtype, epilogue, row_epilogue })
    }

    fn operand(&mut self) -> Result<MatrixOperand, SyntaxError> {
        let buffer = self.buffer()?;
        let [offset, row_stride, column_stride] = self.three()?;
        Ok(MatrixOperand { buffer, offset, row_stride, column_stride })
    }

    fn three(&mut self) -> Result<[Expr; 3], SyntaxError> {
        let exprs = self.cursor.expressions()?;
        exprs.try_into().map_err(|_| self.cursor.error("expected three expressions"))
    }

    fn convolution(&mut self) -> Result<Convolution, SyntaxError> {
        let (dtype, input) = (self.cursor.dtype()?, self.buffer()?);
        self.cursor.expect(',')?;
        let weight = self.buffer()?;
        self.cursor.expect_word("over")?;
        let (axes, conv) = (self.axes()?, self.cursor.conv()?);
        if axes.len() < 2 {
            return Err(self.cursor.error("expected an axis of images and one of channels"));
        }
        let input_channels = self.channels("from")?;
        let output_channels = self.channels("to")?;
        let epilogue = self.epilogue()?;
        Ok(Convolution { axes, conv, input, input_channels, output_channels, weight, dtype, epilogue })
    }

    /// Where channels are, if that is said.
    fn channels(&mut self, word: &str) -> Result<Channels, SyntaxError> {
        if !self.cursor.eat_word(word) {
            return Ok(Channels::First);
        }
        self.cursor.expect_word("channels_last")?;
        Ok(Channels::Last)
    }

    fn attention(&mut self) -> Result<Attention, SyntaxError> {
        let (dtype, queries) = (self.cursor.dtype()?, self.operand()?);
        self.cursor.expect(',')?;
        let keys = self.operand()?;
        self.cursor.expect(',')?;
        let values = self.operand()?;
        self.cursor.expect_word("over")?;
        let axes = self.axes()?;
        if axes.len() < 2 {
            return Err(self.cursor.error("expected an axis of queries and one of columns"));
        }
        self.cursor.expect_word("depth")?;
        let depth = self.cursor.expression()?;
        let reach = if self.cursor.eat_word("reach") { Some(self.cursor.expression()?) } else { None };
        let of_nothing = match self.cursor.eat_word("zeros") {
            true if self.cursor.eat_word("nan") => OfNothing::ZerosForNan,
            true => OfNothing::Zeros,
            false => OfNothing::Nothing,
        };
        self.cursor.expect('{')?;
        self.cursor.expect_word("scores")?;
        let key = self.axes()?;
        if key.len() != 1 {
            return Err(self.cursor.error("expected one axis, that of keys"));
        }
        let scores = self.stage(key)?;
        self.cursor.expect_word("result")?;
        let stages = [scores, self.epilogue()?];
        self.cursor.expect('}')?;
        Ok(Attention { axes, depth, queries, keys, values, reach, of_nothing, dtype, stages })
    }

    fn epilogue(&mut self) -> Result<Stage, SyntaxError> {
        self.stage(vec![])
    }

    /// A number behind a word, where that is there.
    fn count(&mut self, word: &str) -> Result<Option<i64>, SyntaxError> {
        if self.cursor.eat_word(word) { self.cursor.number().map(Some) } else { Ok(None) }
    }

    fn rows(&mut self) -> Result<AxisKernel, SyntaxError> {
        let op = match self.cursor.word()? {
            "fourier" => AxisOp::Fourier(self.cursor.fourier()?),
            "recurrent" => AxisOp::Recurrent(self.cursor.recurrent()?),
            "sort" => AxisOp::Sort(Sorting {
                descending: self.cursor.eat_word("descending"),
                run: self.count("runs")?,
                merged: self.count("of")?,
                kept: self.count("first")?,
            }),
            "nth_element" => AxisOp::NthElement { ties: self.cursor.ties(), rank: self.count("rank")? },
            "searchsorted" => AxisOp::SearchSorted { right: self.cursor.eat_word("right") },
            name => {
                let routine = Routine::from_name(name).map(AxisOp::Matrices);
                let operation = ScanOp::from_name(name).map(AxisOp::Scan).or(routine);
                operation.ok_or_else(|| self.cursor.error("expected an operation on rows"))?
            }
        };
        let dtype = self.cursor.dtype()?;
        self.cursor.expect_word("from")?;
        let inputs = self.buffers()?;
        self.cursor.expect_word("to")?;
        let outputs = self.buffers()?;
        self.cursor.expect_word("sizes")?;
        let [outer, length, inner] = self.three()?;
        Ok(AxisKernel { op, dtype, inputs, outputs, outer, length, inner })
    }

    /// A call of a function, or the collective of a name.
    fn external(&mut self, collective: Option<&str>) -> Result<ExternKernel, SyntaxError> {
        let by = match collective {
            None => Elsewhere::Function(self.cursor.extern_call()?),
            Some(name) => Elsewhere::Ranks(self.cursor.collective(name)?),
        };
        self.cursor.expect_word("from")?;
        let inputs = self.whole_tensors()?;
        self.cursor.expect_word("to")?;
        Ok(ExternKernel { by, inputs, outputs: self.whole_tensors()? })
    }

    /// Buffers with sizes: `(b0 [2, s0], b1 [])`.
    fn whole_tensors(&mut self) -> Result<Vec<(BufferId, Vec<Expr>)>, SyntaxError> {
        self.cursor.expect('(')?;
        let mut tensors = Vec::new();
        while !self.cursor.eat(')') {
            if !tensors.is_empty() {
                self.cursor.expect(',')?;
            }
            tensors.push((self.buffer()?, self.cursor.expressions()?));
        }
        Ok(tensors)
    }

    /// `[i0 < s0, i1 < 3]`.
    fn axes(&mut self) -> Result<Vec<Axis>, SyntaxError> {
        let pairs = self.pairs()?;
        let axis = |(symbol, extent): (Expr, Expr)| match symbol.node() {
            Node::Sym(symbol) if symbol.kind == SymbolKind::Axis => Some(Axis { symbol: *symbol, extent }),
            Node::Sym(_)
            | Node::Int(_)
            | Node::Sum { .. }
            | Node::Product(_)
            | Node::FloorDiv(..)
            | Node::Mod(..)
            | Node::Min(..)
            | Node::Max(..) => None,
        };
        let axes: Option<Vec<Axis>> = pairs.into_iter().map(axis).collect();
        axes.ok_or_else(|| self.cursor.error("expected an axis such as `i0` before `<`"))
    }

    /// `[a < b, c < d]`.
    pub(super) fn pairs(&mut self) -> Result<Vec<(Expr, Expr)>, SyntaxError> {
        let items = self.cursor.bracketed()?;
        let pair = |item: &str| match item.split_once('<') {
            Some((left, right)) => {
                Ok((self.cursor.parse_expr(left.trim())?, self.cursor.parse_expr(right.trim())?))
            }
            None => Err(self.cursor.error("expected `<`")),
        };
        items.into_iter().map(pair).collect()
    }

    /// A word that is `prefix` and a number.
    pub(super) fn id(&mut self, prefix: &str) -> Result<usize, SyntaxError> {
        let number = self.cursor.word()?.strip_prefix(prefix).and_then(|number| number.parse().ok());
        number.ok_or_else(|| self.cursor.error(format!("expected `{prefix}` and a number")))
    }
}
