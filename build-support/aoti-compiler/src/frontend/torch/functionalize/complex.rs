//! Calls with complex numbers among their tensors: how each is computed from parts.
//!
//! Most operators mean the same for both parts: their rules for real tensors are applied to the real parts and to the
//! imaginary ones. Knows the ways in which that can be done; `rules/complex/table.rs` says which operator goes which way.

use super::super::rules::complex::matrices::doubled;
use super::super::rules::complex::parts::{Complex, Parts};
use super::super::rules::complex::{How, Seen};
use super::super::rules::{Args, Context, Kind, Outputs, Rule, RuleError};
use super::run::{Walk, tensor_names};
use super::windows::{ReadAs, Window};
use crate::dtype::DType;
use crate::frontend::torch::aten::{Arg, Call, Output};
use crate::graph::{BinaryOp, FloatBinary, IntBinary, ValueId};
use crate::symbolic::Expr;
use indexmap::IndexMap;

/// Operators whose result PyTorch keeps as its operand's memory and a mark, and whether it is transposed.
const LAZY_CONJUGATES: [(&str, bool); 5] = [
    ("aten.conj.default", false),
    ("aten._conj.default", false),
    ("aten.mH.default", true),
    ("aten.matrix_H.default", true),
    ("aten.adjoint.default", true),
];

impl Walk<'_> {
    fn complex_tensor(&self, name: &str) -> bool {
        self.program.tensors.get(name).is_some_and(|meta| meta.is_complex)
    }

    /// Whether complex numbers are among a call's operands or results.
    pub(crate) fn is_complex(&self, call: &Call) -> bool {
        let mut results = call.outputs.iter().flat_map(Output::tensors);
        tensor_names(call).iter().any(|name| self.complex_tensor(name))
            || results.any(|name| self.complex_tensor(name))
    }

    /// A call of complex numbers.
    pub(crate) fn complex(&mut self, call: &Call) -> Result<(), RuleError> {
        let Some((how, overwrites)) = self.registry.complex(&call.target) else {
            return Err(RuleError::unsupported("it is not supported for complex numbers"));
        };
        let rule = self.registry.find(&call.target);
        let mut tensors = IndexMap::new();
        for name in tensor_names(call) {
            let value = self.read(name)?;
            tensors.insert(name.to_owned(), value);
        }
        let outputs = match how {
            How::Own(run) => run(&mut self.cx, &Args { call, program: self.program, tensors: &tensors })?,
            How::Parts(data) => self.by_parts(call, real_rule(rule)?, data, &tensors)?,
            How::Product => self.product(call, real_rule(rule)?, None, &tensors)?,
            How::Affine(term) => self.product(call, real_rule(rule)?, Some(term), &tensors)?,
            How::Truth => self.of_real(call, real_rule(rule)?, &tensors, |cx, z| {
                let parts = [cx.b.cast(z.re, DType::Bool), cx.b.cast(z.im, DType::Bool)];
                cx.binary(IntBinary::Or, parts[0], parts[1])
            })?,
            How::Magnitude => self.of_real(call, real_rule(rule)?, &tensors, |cx, z| {
                cx.binary(FloatBinary::Hypot, z.re, z.im)
            })?,
            How::Together(op) => {
                let rule = real_rule(rule)?;
                let re = self.of_real(call, rule, &tensors, |_, z| Ok(z.re))?;
                let im = self.of_real(call, rule, &tensors, |_, z| Ok(z.im))?;
                self.together(op, re, im)?
            }
            How::Doubled => {
                let rule = real_rule(rule)?;
                let name = tensor_names(call).first().map(|name| (*name).to_owned());
                let name = name.ok_or_else(|| RuleError::Malformed("no tensor is given".to_owned()))?;
                doubled(&mut self.cx, tensors[&name], |cx, larger| {
                    let own = IndexMap::from([(name, larger)]);
                    (rule.run)(cx, &Args { call, program: self.program, tensors: &own })
                })?
            }
            How::Window(seen) => {
                let (value, window) = self.seen(call, seen)?;
                return self.bind(call, Outputs::One(value), Some(vec![window]));
            }
        };
        if overwrites {
            return self.finish_in_place(call, outputs);
        }
        let windows = match (rule, how) {
            (Some(rule), How::Parts(_)) if rule.kind == Kind::View => {
                let copies = super::copies::copies(call, self.program);
                if copies { None } else { self.window_onto_operand(call, rule)? }
            }
            _ => None,
        };
        self.bind(call, outputs, windows)?;
        if let Some((_, turned)) = LAZY_CONJUGATES.iter().find(|(target, _)| *target == call.target) {
            self.is_reading(call, ReadAs::Conjugate, *turned)?;
        } else if call.target == "aten._neg_view.default" {
            self.is_reading(call, ReadAs::Negative, false)?;
        }
        Ok(())
    }

    /// The first operand's parts, or one of them, as a window onto the same storage.
    fn seen(&mut self, call: &Call, seen: Seen) -> Result<(ValueId, Window), RuleError> {
        let names = tensor_names(call);
        let name = names.first().ok_or_else(|| RuleError::Malformed("no tensor is given".to_owned()))?;
        let value = self.read(name)?;
        let source = self.windows[*name].clone();
        let position = match seen {
            Seen::Both => return Ok((value, source)),
            Seen::Real => 0,
            Seen::Imaginary => 1,
        };
        let parts = self.cx.split(value)?;
        let part = if seen == Seen::Real { parts.re } else { parts.im };
        let shape = self.cx.b.shape(part);
        let coords = (0..shape.len()).map(Expr::axis).chain([Expr::int(position)]).collect();
        let window = self.compose(&source, Some(coords), shape)?;
        Ok((part, window))
    }

    /// Applies a rule to the real and to the imaginary parts. Real data has an imaginary part of zero: that of arguments
    /// named, and `self` always, which `dtype` may make complex.
    fn by_parts(
        &mut self,
        call: &Call,
        rule: Rule,
        data: &[&str],
        tensors: &IndexMap<String, ValueId>,
    ) -> Result<Outputs, RuleError> {
        let is_data = |name: &str| {
            call.args.iter().any(|(own, arg)| {
                (own == "self" || data.contains(&own.as_str())) && arg.tensors().contains(&name)
            })
        };
        let first = tensor_names(call).first().map(|name| (*name).to_owned());
        let (mut re, mut im) = (IndexMap::new(), IndexMap::new());
        for (name, value) in tensors {
            let parts = if self.complex_tensor(name) {
                // What is neither data nor lends its shape alone is multiplied by, say: parts do not stay apart.
                let lends_shape = rule.kind == Kind::View;
                if !(lends_shape || is_data(name) || first.as_ref() == Some(name) || is_listed(call, name)) {
                    return Err(RuleError::unsupported(format!("complex `{name}`")));
                }
                self.cx.split(*value)?
            } else if is_data(name) {
                Parts { re: *value, im: self.cx.b.full_like(0i64, *value) }
            } else {
                Parts { re: *value, im: *value }
            };
            re.insert(name.clone(), parts.re);
            im.insert(name.clone(), parts.im);
        }
        let [re_call, im_call] = [0, 1].map(|part| of_numbers(call, data, part));
        let re = (rule.run)(&mut self.cx, &Args { call: &re_call, program: self.program, tensors: &re })?;
        if !call.outputs.iter().flat_map(Output::tensors).any(|name| self.complex_tensor(name)) {
            return Ok(re);
        }
        let im = (rule.run)(&mut self.cx, &Args { call: &im_call, program: self.program, tensors: &im })?;
        self.joined(re, im)
    }

    /// Applies a rule to what is made of the parts of each complex tensor.
    fn of_real(
        &mut self,
        call: &Call,
        rule: Rule,
        tensors: &IndexMap<String, ValueId>,
        make: impl Fn(&mut Context, Parts) -> Result<ValueId, RuleError>,
    ) -> Result<Outputs, RuleError> {
        let mut own = tensors.clone();
        for (name, value) in &mut own {
            if self.complex_tensor(name) {
                let parts = self.cx.split(*value)?;
                *value = make(&mut self.cx, parts)?;
            }
        }
        (rule.run)(&mut self.cx, &Args { call, program: self.program, tensors: &own })
    }

    fn joined(&mut self, re: Outputs, im: Outputs) -> Result<Outputs, RuleError> {
        let cx = &mut self.cx;
        match (re, im) {
            (Outputs::One(re), Outputs::One(im)) => Ok(Outputs::One(cx.join(Parts { re, im })?)),
            (Outputs::List(re), Outputs::List(im)) => {
                let pairs = re.into_iter().zip(im);
                let values: Result<Vec<_>, _> = pairs.map(|(re, im)| cx.join(Parts { re, im })).collect();
                Ok(Outputs::List(values?))
            }
            _ => Err(RuleError::unsupported("it is not supported for complex numbers")),
        }
    }

    /// A real number from those of both parts, and the means beside it, which stay complex.
    fn together(&mut self, op: BinaryOp, re: Outputs, im: Outputs) -> Result<Outputs, RuleError> {
        match (re, im) {
            (Outputs::One(re), Outputs::One(im)) => Ok(self.cx.binary(op, re, im)?.into()),
            (Outputs::Many(re), Outputs::Many(im)) => {
                let ([Some(re), Some(re_mean)], [Some(im), Some(im_mean)]) = (&re[..], &im[..]) else {
                    return Err(RuleError::unsupported("it is not supported for complex numbers"));
                };
                let both = self.cx.binary(op, *re, *im)?;
                let mean = self.cx.join(Parts { re: *re_mean, im: *im_mean })?;
                Ok(Outputs::Many(vec![Some(both), Some(mean)]))
            }
            _ => Err(RuleError::unsupported("it is not supported for complex numbers")),
        }
    }

    /// The sum over all choices of a part for each complex operand, each with its power of the imaginary unit.
    fn product(
        &mut self,
        call: &Call,
        rule: Rule,
        added: Option<&str>,
        tensors: &IndexMap<String, ValueId>,
    ) -> Result<Outputs, RuleError> {
        const MOST: usize = 4;
        // An operand may occur twice, as in `x * x`; each occurrence has a part of its own.
        let (call, tensors, mut complex) = self.distinct(call, tensors);
        let added = call.args.iter().find(|(name, _)| Some(name.as_str()) == added);
        let added = added.and_then(|(_, arg)| arg.tensors().first().copied());
        let added = complex.iter().position(|name| Some(name.as_str()) == added);
        let added = added.map(|position| complex.remove(position));
        if complex.len() > MOST {
            return Err(RuleError::unsupported(format!("a product of more than {MOST} complex tensors")));
        }
        let mut sums: [Option<ValueId>; 2] = [None, None];
        for choice in 0..1usize << complex.len() {
            let mut chosen = tensors.clone();
            for (bit, name) in complex.iter().enumerate() {
                let parts = self.cx.split(tensors[name])?;
                chosen.insert(name.clone(), if choice >> bit & 1 == 1 { parts.im } else { parts.re });
            }
            if let Some(name) = &added {
                // One of the products that make each part has that part of it.
                let parts = self.cx.split(tensors[name])?;
                let own = [parts.re, parts.im].get(choice).copied();
                chosen.insert(name.clone(), own.unwrap_or_else(|| self.cx.b.full_like(0i64, parts.re)));
            }
            let args = Args { call: &call, program: self.program, tensors: &chosen };
            let Outputs::One(term) = (rule.run)(&mut self.cx, &args)? else {
                return Err(RuleError::unsupported("it is not supported for complex numbers"));
            };
            let power = choice.count_ones() % 4;
            let sum = &mut sums[usize::from(power % 2 == 1)];
            let op = if power < 2 { BinaryOp::Add } else { BinaryOp::Sub };
            *sum = Some(match *sum {
                Some(sum) => self.cx.binary(op, sum, term)?,
                None if power < 2 => term,
                None => self.cx.unary(crate::graph::UnaryOp::Neg, term),
            });
        }
        let [Some(re), Some(im)] = sums else {
            return Err(RuleError::Malformed("no operand is complex".to_owned()));
        };
        Ok(Outputs::One(self.cx.join(Parts { re, im })?))
    }

    /// The call with a name of its own for each complex operand, and these names.
    fn distinct(
        &self,
        call: &Call,
        tensors: &IndexMap<String, ValueId>,
    ) -> (Call, IndexMap<String, ValueId>, Vec<String>) {
        let (mut call, mut tensors, mut names) = (call.clone(), tensors.clone(), Vec::new());
        let mut renamed = |name: &mut String| {
            if self.complex_tensor(name) {
                let own = format!("{name}#{}", names.len());
                tensors.insert(own.clone(), tensors[name.as_str()]);
                names.push(own.clone());
                *name = own;
            }
        };
        for (_, arg) in &mut call.args {
            if let Arg::Tensor(name) = arg {
                renamed(name);
            } else if let Arg::Tensors(list) = arg {
                list.iter_mut().flatten().for_each(&mut renamed);
            }
        }
        (call, tensors, names)
    }
}

/// Whether a tensor is in the list that a call is about, as for `meshgrid`: the first argument.
fn is_listed(call: &Call, name: &str) -> bool {
    matches!(call.args.first(), Some((_, Arg::Tensors(list))) if list.iter().flatten().any(|own| own == name))
}

/// The call with a part of each number among the operands named.
fn of_numbers(call: &Call, data: &[&str], part: usize) -> Call {
    let mut call = call.clone();
    for (name, arg) in &mut call.args {
        if !data.contains(&name.as_str()) {
            continue;
        }
        if let Arg::Complex { re, im } = *arg {
            *arg = Arg::Float([re, im][part]);
        } else if part == 1 && matches!(arg, Arg::Int(_) | Arg::Float(_) | Arg::Bool(_)) {
            *arg = Arg::Int(Expr::int(0));
        }
    }
    call
}

fn real_rule(rule: Option<Rule>) -> Result<Rule, RuleError> {
    rule.ok_or_else(|| RuleError::unsupported("it is not supported for complex numbers"))
}

impl Args<'_> {
    /// Whether a tensor argument is complex.
    pub(crate) fn is_complex(&self, name: &str) -> bool {
        self.meta(name).is_ok_and(|meta| meta.is_complex)
    }

    /// The type that the parts of the result are in; of a real result, its own.
    pub(crate) fn part_type(&self) -> Result<DType, RuleError> {
        let dtype = self.output_dtype();
        dtype.ok_or_else(|| RuleError::Malformed("the result is not described".to_owned()))
    }

    /// An operand as a complex expression, whether it is a tensor or a number.
    pub(crate) fn complex(&self, cx: &mut Context, name: &str, dtype: DType) -> Result<Complex, RuleError> {
        if let Some(Arg::Complex { re, im }) = self.raw(name) {
            let (re, im) = (cx.b.scalar(*re, dtype), cx.b.scalar(*im, dtype));
            return Ok(Complex::new(re.into(), im.into()));
        }
        if self.is_complex(name) {
            return Complex::of(cx, self.tensor(name)?, dtype);
        }
        if !self.has(name) {
            return Err(RuleError::Malformed(format!("argument `{name}` is missing")));
        }
        let value = self.operand(&[name], 0)?.to_value(cx, dtype);
        Ok(Complex { re: value.into(), im: None })
    }

    /// The complex result of an expression, in the type that the program states.
    pub(crate) fn emitted(&self, cx: &mut Context, value: &Complex) -> Result<Outputs, RuleError> {
        let dtype = self.part_type()?;
        let re = cx.formula(dtype.compute(), &value.re)?;
        let im = cx.formula(dtype.compute(), &value.imaginary())?;
        let parts = Parts { re: cx.b.cast(re, dtype), im: cx.b.cast(im, dtype) };
        Ok(Outputs::One(cx.join(parts)?))
    }
}
