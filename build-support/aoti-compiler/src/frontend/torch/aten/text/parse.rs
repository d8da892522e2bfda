//! Parses programs. Whether names are defined and types fit is the verifier's business.

use super::contiguous;
use crate::diagnostic::Diagnostics;
use crate::dtype::DType;
use crate::frontend::torch::aten::{
    Arg, Call, InputKind, Output, OutputKind, Program, ProgramInput, ProgramOutput, TensorMeta,
};
use crate::graph::text::parse_scalar;
use crate::graph::{Origin, Scalar};
use crate::symbolic::Expr;
use crate::text::{Cursor, SyntaxError};

/// Parses the text form. A fault is reported with line and column; the result is not verified.
pub fn parse(text: &str) -> Result<Program, Diagnostics> {
    Cursor::whole(text, |cursor| Parser { cursor }.program())
}

struct Parser<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
}

impl Parser<'_, '_> {
    fn program(&mut self) -> Result<Program, SyntaxError> {
        self.cursor.enter()?;
        self.cursor.expect_word("program")?;
        let name = self.cursor.optional_string()?.unwrap_or_default();
        let mut program = Program { name, ..Program::default() };
        self.cursor.expect('{')?;
        while !self.cursor.eat('}') {
            self.statement(&mut program)?;
        }
        self.cursor.leave();
        Ok(program)
    }

    fn statement(&mut self, program: &mut Program) -> Result<(), SyntaxError> {
        let keyword = self.cursor.peek_word();
        if !matches!(keyword, "symbol" | "guard" | "const" | "let" | "tensor" | "input" | "output") {
            return self.call(program);
        }
        self.cursor.word()?;
        match keyword {
            "symbol" => self.cursor.symbol(&mut program.symbols)?,
            "guard" => program.guards.push(self.cursor.guard()?),
            "const" => self.constant(program)?,
            "let" => {
                let name = self.name()?;
                self.cursor.expect('=')?;
                self.value(program, name)?;
            }
            "tensor" => drop(self.definition(program)?),
            "input" => self.input(program)?,
            _ => self.output(program)?,
        }
        Ok(())
    }

    fn constant(&mut self, program: &mut Program) -> Result<(), SyntaxError> {
        let key = self.cursor.string()?;
        let name = if self.cursor.eat_word("named") { self.cursor.string()? } else { key.clone() };
        self.cursor.expect(':')?;
        let constant = self.cursor.constant(name)?;
        match program.constants.insert(key, constant) {
            None => Ok(()),
            Some(_) => Err(self.cursor.error("the constant is defined twice")),
        }
    }

    fn input(&mut self, program: &mut Program) -> Result<(), SyntaxError> {
        let name = self.definition(program)?;
        let kind = match self.cursor.peek_word() {
            "int" if self.list_follows("int")? => InputKind::UserInt(self.cursor.expression()?),
            "fixed" => {
                self.cursor.word()?;
                InputKind::UserConstant
            }
            "constant" => {
                self.cursor.word()?;
                InputKind::Constant(self.cursor.string()?)
            }
            _ => InputKind::User,
        };
        program.inputs.push(ProgramInput { name, kind });
        Ok(())
    }

    /// Takes a keyword where a list follows it: it may be the next statement's else.
    fn list_follows(&mut self, keyword: &str) -> Result<bool, SyntaxError> {
        let before = self.cursor.save();
        if self.cursor.eat_word(keyword) && self.cursor.peek() == Some('[') {
            return Ok(true);
        }
        self.cursor.restore(before);
        Ok(false)
    }

    fn output(&mut self, program: &mut Program) -> Result<(), SyntaxError> {
        let value = self.arg()?;
        let kind = if !self.cursor.eat_word("overwrites") {
            OutputKind::User
        } else if self.cursor.eat_word("buffer") {
            OutputKind::BufferMutation(self.cursor.string()?)
        } else {
            self.cursor.expect_word("input")?;
            OutputKind::InputMutation(self.cursor.string()?)
        };
        let name = if self.cursor.eat_word("named") { Some(self.cursor.string()?) } else { None };
        program.outputs.push(ProgramOutput { value, kind, name });
        Ok(())
    }

    fn call(&mut self, program: &mut Program) -> Result<(), SyntaxError> {
        let mut outputs = Vec::new();
        if self.result_follows() {
            outputs.push(self.result(program)?);
            while self.cursor.eat(',') {
                outputs.push(self.result(program)?);
            }
            self.cursor.expect('=')?;
        }
        let target = self.name()?;
        let args = self.args()?;
        let origin = if self.cursor.eat('@') { self.cursor.origin()? } else { Origin::default() };
        program.calls.push(Call { target, args, outputs, origin });
        Ok(())
    }

    fn result_follows(&mut self) -> bool {
        let word = self.cursor.peek_word();
        word.starts_with('%')
            || matches!(word, "int" | "truth" | "number" | "none")
            || self.cursor.peek() == Some('[')
    }

    fn result(&mut self, program: &mut Program) -> Result<Output, SyntaxError> {
        if self.cursor.eat('[') {
            let mut names = Vec::new();
            while !self.cursor.eat(']') {
                if !names.is_empty() {
                    self.cursor.expect(',')?;
                }
                names.push(self.definition(program)?);
            }
            return Ok(Output::Tensors(names));
        }
        if self.cursor.peek_word().starts_with('%') {
            return Ok(Output::Tensor(self.definition(program)?));
        }
        match self.cursor.word()? {
            "none" => Ok(Output::None),
            "truth" => {
                let name = self.name()?;
                if self.cursor.eat(':') {
                    let condition = self.cursor.condition()?;
                    if program.conditions.insert(name.clone(), condition).is_some() {
                        return Err(self.cursor.error("the truth value has a condition already"));
                    }
                }
                Ok(Output::SymBool(name))
            }
            "number" => Ok(Output::SymFloat(self.name()?)),
            "int" => {
                let name = self.name()?;
                if self.cursor.eat(':') {
                    self.value(program, name.clone())?;
                }
                Ok(Output::SymInt(name))
            }
            _ => Err(self.cursor.error("expected `%`, `[`, `int`, `truth`, `number` or `none`")),
        }
    }

    /// The value of a symbolic integer.
    fn value(&mut self, program: &mut Program, name: String) -> Result<(), SyntaxError> {
        let value = self.cursor.expression()?;
        match program.sym_ints.insert(name, value) {
            None => Ok(()),
            Some(_) => Err(self.cursor.error("the integer has a value already")),
        }
    }

    /// `%name: type strides [...] offset [...]`; only the name where nothing is said of the tensor, or was before.
    fn definition(&mut self, program: &mut Program) -> Result<String, SyntaxError> {
        let name = self.tensor()?;
        if !self.cursor.eat(':') {
            return Ok(name);
        }
        let is_complex = self.cursor.eat_word("complex");
        let ty = self.cursor.tensor_type()?;
        let strides =
            if self.list_follows("strides")? { self.cursor.expressions()? } else { contiguous(&ty.shape) };
        let storage_offset =
            if self.list_follows("offset")? { self.cursor.expression()? } else { Expr::int(0) };
        let meta = TensorMeta { dtype: ty.dtype, is_complex, sizes: ty.shape, strides, storage_offset };
        match program.tensors.insert(name.clone(), meta) {
            None => Ok(name),
            Some(_) => Err(self.cursor.error("the tensor is described twice")),
        }
    }

    fn tensor(&mut self) -> Result<String, SyntaxError> {
        match self.cursor.word()?.strip_prefix('%') {
            Some("") => self.cursor.string(),
            Some(name) => Ok(name.to_owned()),
            None => Err(self.cursor.error("expected a tensor such as `%x`")),
        }
    }

    /// A name without a sigil.
    fn name(&mut self) -> Result<String, SyntaxError> {
        match self.cursor.optional_string()? {
            Some(name) => Ok(name),
            None => Ok(self.cursor.word()?.to_owned()),
        }
    }

    fn args(&mut self) -> Result<Vec<(String, Arg)>, SyntaxError> {
        self.cursor.expect('(')?;
        let mut args = Vec::new();
        while !self.cursor.eat(')') {
            if !args.is_empty() {
                self.cursor.expect(',')?;
            }
            let name = self.arg_name()?;
            args.push((name, self.arg()?));
        }
        Ok(args)
    }

    /// `name =`, if that is next.
    fn arg_name(&mut self) -> Result<String, SyntaxError> {
        let before = self.cursor.save();
        if self.cursor.peek() == Some('"') || !self.cursor.peek_word().is_empty() {
            let name = self.name()?;
            if self.cursor.eat('=') {
                return Ok(name);
            }
        }
        self.cursor.restore(before);
        Ok(String::new())
    }

    fn arg(&mut self) -> Result<Arg, SyntaxError> {
        match self.cursor.peek() {
            Some('"') => return Ok(Arg::Str(self.cursor.string()?)),
            Some('{') => {
                let text = self.cursor.braced()?;
                return Ok(Arg::Int(self.cursor.parse_expr(text)?));
            }
            Some('[') => return self.list(),
            Some('%') => return Ok(Arg::Tensor(self.tensor()?)),
            _ => {}
        }
        if self.cursor.peek_word() == "program" {
            return Ok(Arg::Graph(Box::new(self.program()?)));
        }
        let word = self.cursor.word()?;
        Ok(match word {
            "none" => Arg::None,
            "holds" => Arg::Condition(self.cursor.condition()?),
            "truth" => Arg::SymBool(self.name()?),
            "number" => Arg::SymFloat(self.name()?),
            "other" => Arg::Other(self.cursor.string()?),
            "tensors" => match self.cursor.bracketed()?.as_slice() {
                [] => Arg::Tensors(vec![]),
                [..] => return Err(self.cursor.error("expected `[]`: a list of tensors needs no word")),
            },
            "floats" => Arg::Floats(self.numbers("numbers", |number| match number {
                Scalar::Float(value) => Some(value),
                Scalar::Int(_) | Scalar::Bool(_) => None,
            })?),
            "complex" => match self.numbers("numbers", |number| Some(number.to_f64()))?.as_slice() {
                [re, im] => Arg::Complex { re: *re, im: *im },
                _ => return Err(self.cursor.error("expected a real and an imaginary part")),
            },
            "bools" => Arg::Bools(self.numbers("truth values", |number| match number {
                Scalar::Bool(value) => Some(value),
                Scalar::Int(_) | Scalar::Float(_) => None,
            })?),
            word => match (DType::from_name(word), parse_scalar(word)) {
                (Some(dtype), _) => Arg::DType(dtype),
                (None, Some(Scalar::Bool(value))) => Arg::Bool(value),
                (None, Some(Scalar::Int(value))) => {
                    let value = i64::try_from(value);
                    Arg::Int(Expr::int(value.map_err(|_| self.cursor.error("beyond 64 bits"))?))
                }
                (None, Some(Scalar::Float(value))) => Arg::Float(value),
                (None, None) => return Err(self.cursor.error("expected an argument")),
            },
        })
    }

    fn numbers<T>(&mut self, kind: &str, of: impl Fn(Scalar) -> Option<T>) -> Result<Vec<T>, SyntaxError> {
        let items = self.cursor.bracketed()?;
        let numbers: Option<Vec<T>> = items.iter().map(|item| parse_scalar(item).and_then(&of)).collect();
        numbers.ok_or_else(|| self.cursor.error(format!("expected a list of {kind}")))
    }

    /// Integers, or tensors.
    fn list(&mut self) -> Result<Arg, SyntaxError> {
        let before = self.cursor.save();
        self.cursor.expect('[')?;
        let first = self.cursor.peek_word();
        if first != "none" && !first.starts_with('%') {
            self.cursor.restore(before);
            return Ok(Arg::Ints(self.cursor.expressions()?));
        }
        let mut names = Vec::new();
        while !self.cursor.eat(']') {
            if !names.is_empty() {
                self.cursor.expect(',')?;
            }
            let absent = self.cursor.eat_word("none");
            names.push(if absent { None } else { Some(self.tensor()?) });
        }
        Ok(Arg::Tensors(names))
    }
}
