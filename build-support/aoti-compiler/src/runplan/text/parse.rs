//! Parses run plans. Kernels and failures exist when they are mentioned.

use crate::diagnostic::Diagnostics;
use crate::kernels::Scratch;
use crate::loops::KernelId;
use crate::runplan::weights::Expansion;
use crate::runplan::{
    Action, Allocate, Assert, Call, Check, Condition, Exchange, Expanded, FailureId, InitialState,
    KernelFacts, Launch, LaunchPart, Map, Place, Pointer, Product, Read, RunPlan, Written,
};
use crate::schedule::FunctionId;
use crate::schedule::memory::LateId;
use crate::schedule::text::parse_window;
use crate::symbolic::{Expr, Symbol};
use crate::text::{Cursor, SyntaxError};

/// Parses the text form. A fault is reported with line and column.
pub fn parse(text: &str) -> Result<RunPlan, Diagnostics> {
    Cursor::whole(text, |cursor| {
        let mut parser = Parser { cursor, plan: RunPlan::default() };
        parser.plan()?;
        Ok(parser.plan)
    })
}

struct Parser<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    /// What has been declared so far.
    plan: RunPlan,
}

impl Parser<'_, '_> {
    fn plan(&mut self) -> Result<(), SyntaxError> {
        self.cursor.expect_word("run")?;
        self.cursor.expect('{')?;
        loop {
            match self.cursor.peek_word() {
                "arena" => {
                    self.cursor.word()?;
                    self.plan.arena_bytes = self.cursor.expression()?;
                }
                "failure" => {
                    self.cursor.word()?;
                    self.cursor.next_reference('e', self.plan.failures.len())?;
                    let message = self.cursor.string()?;
                    self.plan.failures.push(message);
                }
                "check" => {
                    self.cursor.word()?;
                    let failure = self.failure()?;
                    self.cursor.expect_word("guard")?;
                    let holds = self.cursor.guard()?;
                    self.plan.checks.push(Check { holds, failure });
                }
                "state" => {
                    self.cursor.word()?;
                    let state = self.state()?;
                    self.plan.states.push(state);
                }
                "expand" => {
                    self.cursor.word()?;
                    let expanded = self.expanded()?;
                    self.plan.expansions.push(expanded);
                }
                "kernel" => self.kernel()?,
                _ => break,
            }
        }
        self.plan.actions = self.actions()?;
        Ok(())
    }

    fn bytes(&mut self) -> Result<u64, SyntaxError> {
        Ok(self.cursor.position()? as u64)
    }

    fn state(&mut self) -> Result<InitialState, SyntaxError> {
        let offset = self.bytes()?;
        self.cursor.expect_word("weights")?;
        let value = self.bytes()?;
        self.cursor.expect_word("bytes")?;
        Ok(InitialState { offset, value, bytes: self.bytes()? })
    }

    fn expanded(&mut self) -> Result<Expanded, SyntaxError> {
        let to = self.bytes()?;
        self.cursor.expect_word("weights")?;
        let from = self.bytes()?;
        let word = self.cursor.word()?;
        let sizes: Result<Vec<usize>, _> = self.cursor.bracketed()?.into_iter().map(str::parse).collect();
        let form = sizes.ok().and_then(|sizes| Expansion::from_words(word, &sizes));
        let form = form.ok_or_else(|| self.cursor.error("expected a form and its sizes"))?;
        Ok(Expanded { from, to, form })
    }

    fn kernel(&mut self) -> Result<(), SyntaxError> {
        self.cursor.word()?;
        self.cursor.next_reference('k', self.plan.kernels.len())?;
        let mut kernel = KernelFacts { name: self.cursor.string()?, origins: vec![], outputs: vec![] };
        self.cursor.expect('{')?;
        while !self.cursor.eat('}') {
            match self.cursor.word()? {
                "note" => kernel.origins.push(self.cursor.note()?),
                "writes" => kernel.outputs.push(self.written()?),
                _ => return Err(self.cursor.error("expected `note` or `writes`")),
            }
        }
        self.plan.kernels.push(kernel);
        Ok(())
    }

    fn written(&mut self) -> Result<Written, SyntaxError> {
        let ty = self.cursor.tensor_type()?;
        let name = self.cursor.optional_string()?.unwrap_or_default();
        self.cursor.expect_word("in")?;
        let tensor = Pointer { dtype: ty.dtype, place: self.place()?, start: Expr::int(0) };
        Ok(Written { name, shape: ty.shape, tensor })
    }

    /// Up to the closing brace.
    fn actions(&mut self) -> Result<Vec<Action>, SyntaxError> {
        self.cursor.enter()?;
        let mut actions = Vec::new();
        while !self.cursor.eat('}') {
            actions.push(self.action()?);
        }
        self.cursor.leave();
        Ok(actions)
    }

    fn block(&mut self) -> Result<Vec<Action>, SyntaxError> {
        self.cursor.expect('{')?;
        self.actions()
    }

    fn action(&mut self) -> Result<Action, SyntaxError> {
        Ok(match self.cursor.word()? {
            "call" => Action::Call(self.call()?),
            "launch" => Action::Launch(self.launch()?),
            "exchange" => Action::Exchange(self.exchange()?),
            "read" => {
                let symbol = Symbol::size(self.cursor.reference('s')?);
                self.cursor.expect_word("in")?;
                let range = self.cursor.range()?;
                let failure = self.failure()?;
                Action::Read(Read { from: self.pointer()?, symbol, range, failure })
            }
            "assert" => Action::Assert(self.assertion()?),
            "allocate" => Action::Allocate(self.allocate()?),
            "free" => Action::Free(self.late()?),
            "if" => {
                let predicate = self.pointer()?;
                let then = self.block()?;
                self.cursor.expect_word("else")?;
                Action::If { predicate, then, otherwise: self.block()? }
            }
            "loop" => {
                let condition = self.block()?;
                self.cursor.expect_word("while")?;
                let predicate = self.pointer()?;
                Action::Loop { condition, predicate, body: self.block()? }
            }
            _ => return Err(self.cursor.error("expected what the run does")),
        })
    }

    fn kernel_id(&mut self) -> Result<KernelId, SyntaxError> {
        let kernel = KernelId::from_u32(self.cursor.reference('k')?);
        if self.plan.kernels.is_valid(kernel) {
            Ok(kernel)
        } else {
            Err(self.cursor.error("there is no such kernel"))
        }
    }

    fn exchange(&mut self) -> Result<Exchange, SyntaxError> {
        let kernel = self.kernel_id()?;
        let name = self.cursor.word()?;
        let collective = self.cursor.collective(name)?;
        self.cursor.expect_word("from")?;
        let (input, given) = (self.pointer()?, self.cursor.expression()?);
        self.cursor.expect_word("to")?;
        let (output, made) = (self.pointer()?, self.cursor.expression()?);
        Ok(Exchange { kernel, collective, input, given, output, made, failure: self.failure()? })
    }

    fn call(&mut self) -> Result<Call, SyntaxError> {
        let kernel = self.kernel_id()?;
        let function = FunctionId::from_u32(self.cursor.reference('f')?);
        self.cursor.expect('(')?;
        let mut tensors = Vec::new();
        while !self.cursor.eat(')') {
            if !tensors.is_empty() {
                self.cursor.expect(',')?;
            }
            tensors.push(self.pointer()?);
        }
        self.cursor.expect('[')?;
        let mut sizes = Vec::new();
        while !self.cursor.eat(']') {
            if !sizes.is_empty() {
                self.cursor.expect(',')?;
            }
            sizes.push(Symbol::size(self.cursor.reference('s')?));
        }
        let scratch = if self.cursor.eat_word("scratch") { Some(self.late()?) } else { None };
        Ok(Call { kernel, function, tensors, sizes, scratch })
    }

    fn launch(&mut self) -> Result<Launch, SyntaxError> {
        let call = self.call()?;
        self.cursor.expect_word("grid")?;
        let grid: Result<[Expr; 3], _> = self.cursor.expressions()?.try_into();
        let grid = grid.map_err(|_| self.cursor.error("a grid has three dimensions"))?;
        self.cursor.expect_word("block")?;
        let block: Option<Vec<u32>> =
            self.cursor.integers()?.into_iter().map(|size| u32::try_from(size).ok()).collect();
        let block = block.and_then(|block| <[u32; 3]>::try_from(block).ok());
        let block = block.ok_or_else(|| self.cursor.error("a block has three dimensions"))?;
        self.cursor.expect_word("shared")?;
        let shared = self.cursor.expression()?;
        let persistent = self.cursor.eat_word("persistent");
        let parts =
            [("first", LaunchPart::First), ("middle", LaunchPart::Middle), ("last", LaunchPart::Last)];
        let part = parts.into_iter().find(|(word, _)| self.cursor.eat_word(word));
        let part = part.map_or(LaunchPart::Whole, |(_, part)| part);
        let mut maps = Vec::new();
        while self.cursor.eat_word("map") {
            maps.push(self.map()?);
        }
        let product = if self.cursor.eat_word("library") { Some(Box::new(self.product()?)) } else { None };
        Ok(Launch { call, grid, block, shared, persistent, part, maps, product })
    }

    fn map(&mut self) -> Result<Map, SyntaxError> {
        let (tensor, sizes) = (self.pointer()?, self.cursor.expressions()?);
        self.cursor.expect_word("by")?;
        let strides = self.cursor.expressions()?;
        if strides.len() + 1 != sizes.len() {
            return Err(self.cursor.error("expected a stride for each axis but the first"));
        }
        self.cursor.expect_word("boxes")?;
        let extents = self.cursor.integers()?;
        let window = parse_window(self.cursor)?;
        Ok(Map { tensor, sizes, strides, extents, window })
    }

    fn product(&mut self) -> Result<Product, SyntaxError> {
        let number = self.cursor.position()?;
        let sizes = self.three()?;
        self.cursor.expect('(')?;
        let left = self.pointer()?;
        self.cursor.expect(',')?;
        let right = self.pointer()?;
        self.cursor.expect(',')?;
        let matrices = [left, right, self.pointer()?];
        self.cursor.expect(')')?;
        self.cursor.expect_word("leading")?;
        let leading = self.three()?;
        let words = ["left-turned", "right-turned", "tf32", "relu"];
        let [left, right, rounded, relu] = words.map(|word| self.cursor.eat_word(word));
        let bias = if self.cursor.eat_word("bias") { Some(self.bytes()?) } else { None };
        self.cursor.expect_word("with")?;
        let workspace = self.pointer()?;
        Ok(Product {
            number,
            sizes,
            matrices,
            leading,
            turned: [left, right],
            rounded,
            relu,
            bias,
            workspace,
        })
    }

    fn three(&mut self) -> Result<[i64; 3], SyntaxError> {
        let numbers = self.cursor.integers()?;
        numbers.try_into().map_err(|_| self.cursor.error("expected three numbers"))
    }

    fn failure(&mut self) -> Result<FailureId, SyntaxError> {
        let id = FailureId::from_u32(self.cursor.reference('e')?);
        if self.plan.failures.is_valid(id) {
            Ok(id)
        } else {
            Err(self.cursor.error("there is no such failure"))
        }
    }

    fn assertion(&mut self) -> Result<Assert, SyntaxError> {
        let failure = self.failure()?;
        let condition = if self.cursor.eat_word("guard") {
            Condition::Sizes(self.cursor.guard()?)
        } else if self.cursor.eat_word("succeeded") {
            Condition::Succeeded(self.pointer()?)
        } else {
            Condition::Holds(self.pointer()?)
        };
        Ok(Assert { condition, failure })
    }

    fn late(&mut self) -> Result<LateId, SyntaxError> {
        Ok(LateId::from_u32(self.cursor.reference('m')?))
    }

    fn allocate(&mut self) -> Result<Allocate, SyntaxError> {
        let (late, shared) = (self.late()?, self.cursor.expression()?);
        let worker = if self.cursor.eat_word("threads") { self.cursor.expression()? } else { Expr::int(0) };
        let units = if self.cursor.eat_word("units") { Some(self.cursor.expression()?) } else { None };
        let output = if self.cursor.eat_word("output") { Some(self.cursor.position()?) } else { None };
        Ok(Allocate { late, bytes: Scratch { shared, worker, units }, output, failure: self.failure()? })
    }

    fn pointer(&mut self) -> Result<Pointer, SyntaxError> {
        let (dtype, place) = (self.cursor.dtype()?, self.place()?);
        let start = if self.cursor.eat_word("from") { self.cursor.expression()? } else { Expr::int(0) };
        Ok(Pointer { dtype, place, start })
    }

    fn place(&mut self) -> Result<Place, SyntaxError> {
        Ok(match self.cursor.word()? {
            "input" => Place::Input(self.cursor.position()?),
            "output" => Place::Output(self.cursor.position()?),
            "generator" => Place::Generator,
            "state" => Place::State(self.bytes()?),
            "weights" => Place::Weights(self.bytes()?),
            "expanded" => Place::Expanded(self.bytes()?),
            "arena" => Place::Arena(self.cursor.expression()?),
            "late" => Place::Late(self.late()?),
            _ => return Err(self.cursor.error("expected an address")),
        })
    }
}
