//! Storages and the windows that tensors are onto them: how mutation and aliasing are made explicit.
//!
//! Knows no operator; a view's window is found by applying its rule to a stand-in.

use super::super::rules::complex::parts::Parts;
use super::super::rules::{Args, Outputs, Rule, RuleError};
use super::run::{Walk, tensor_names};
use crate::dtype::DType;
use crate::frontend::torch::aten::{Call, Output};
use crate::graph::{Combine, Coord, InputRole, Node, Op, TensorType, UnaryOp, ValueId, composed};
use crate::symbolic::Expr;
use indexmap::IndexMap;
use std::collections::BTreeSet;

/// A tensor value of the program: a window onto a storage.
#[derive(Clone)]
pub(crate) struct Window {
    storage: usize,
    /// Coordinates into the storage over the window's axes; `None` for the whole storage as it is.
    coords: Option<Vec<Expr>>,
    shape: Vec<Expr>,
    /// The value and the storage's version that it was read at.
    value: ValueId,
    version: usize,
}

/// What the windows look onto. `value` has the shape of the storage's first tensor.
pub(crate) struct Storage {
    value: ValueId,
    version: usize,
    /// What its elements are made of, where they are not a memory of their own.
    reading: Option<Reading>,
}

/// Memory that the program also sees as other numbers. These are a storage of their own here, made anew from that memory when
/// something was written to it; what is written to them goes there through the inverse.
#[derive(Clone)]
struct Reading {
    of: Window,
    by: ReadAs,
    /// The version of the memory's storage that the storage's value was made from.
    version: usize,
}

/// How memory is seen as other numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReadAs {
    /// Its bits as elements of the reading's type.
    Bits,
    Conjugate,
    Negative,
}

impl Window {
    /// The same window, whose value is this one.
    pub(crate) fn holding(&self, value: ValueId) -> Window {
        Window { value, ..self.clone() }
    }
}

impl Walk<'_> {
    pub(crate) fn define(&mut self, name: &str, value: ValueId) {
        self.storages.push(Storage { value, version: 0, reading: None });
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
    pub(crate) fn read(&mut self, name: &str) -> Result<ValueId, RuleError> {
        let window = self.window(name)?;
        let (value, version) = self.read_window(&window)?;
        self.windows.insert(name.to_owned(), Window { value, version, ..window });
        Ok(value)
    }

    fn window(&self, name: &str) -> Result<Window, RuleError> {
        let window = self.windows.get(name).cloned();
        window.ok_or_else(|| RuleError::Malformed(format!("tensor `{name}` is not defined")))
    }

    /// The current value of a window, and the version of its storage.
    fn read_window(&mut self, window: &Window) -> Result<(ValueId, usize), RuleError> {
        self.refresh(window.storage)?;
        let storage = &self.storages[window.storage];
        let (base, version) = (storage.value, storage.version);
        if window.version == version {
            return Ok((window.value, version));
        }
        let value = match &window.coords {
            None => base,
            Some(coords) if self.depends_on_data(coords) => {
                let (indices, coords) = self.checked(coords, &window.shape);
                self.cx.b.gather(base, &indices, coords, &window.shape)?
            }
            Some(coords) => self.cx.b.view(base, &window.shape, coords.clone())?,
        };
        Ok((value, version))
    }

    /// Overwrites a tensor, and so every window onto its storage.
    pub(crate) fn write(&mut self, name: &str, value: ValueId) -> Result<(), RuleError> {
        let window = self.window(name)?;
        let (value, version) = self.write_window(&window, value)?;
        self.windows.insert(name.to_owned(), Window { value, version, ..window });
        Ok(())
    }

    /// Overwrites a window; gives its value, and the version of the storage that has it.
    fn write_window(&mut self, window: &Window, value: ValueId) -> Result<(ValueId, usize), RuleError> {
        self.refresh(window.storage)?;
        let base = self.storages[window.storage].value;
        let dtype = self.cx.b.dtype(base);
        let value = self.cx.b.cast(value, dtype);
        let value = self.cx.b.expand(value, &window.shape)?;
        let (new_base, is_stored) = match &window.coords {
            None => (value, true),
            Some(coords) => {
                let (indices, coords) = self.checked(coords, &window.shape);
                let new_base = self.cx.b.scatter(base, value, &indices, coords, Combine::Set)?;
                // Where only a part of the window changes, the window is not made for itself.
                let stores = |node: &Node| node.inputs.get(1) == Some(&value);
                (new_base, self.cx.b.producer(new_base).is_some_and(stores))
            }
        };
        let storage = &mut self.storages[window.storage];
        storage.value = new_base;
        storage.version += 1;
        let version = if is_stored { storage.version } else { window.version };
        if let Some(reading) = storage.reading.clone() {
            let dtype = self.cx.b.dtype(reading.of.value);
            let memory = self.read_as(reading.by, new_base, dtype)?;
            self.write_window(&reading.of, memory)?;
            self.has_read(window.storage, &reading);
        }
        Ok((value, version))
    }

    /// Makes a storage's value anew where the memory that it is a reading of was written to.
    fn refresh(&mut self, storage: usize) -> Result<(), RuleError> {
        let Some(reading) = self.storages[storage].reading.clone() else { return Ok(()) };
        self.refresh(reading.of.storage)?;
        if self.storages[reading.of.storage].version == reading.version {
            return Ok(());
        }
        let (memory, _) = self.read_window(&reading.of)?;
        let dtype = self.cx.b.dtype(self.storages[storage].value);
        let value = self.read_as(reading.by, memory, dtype)?;
        self.storages[storage].value = value;
        self.storages[storage].version += 1;
        self.has_read(storage, &reading);
        Ok(())
    }

    fn has_read(&mut self, storage: usize, reading: &Reading) {
        let version = self.storages[reading.of.storage].version;
        self.storages[storage].reading = Some(Reading { version, ..reading.clone() });
    }

    /// Memory as other numbers, or such numbers as what the memory holds.
    fn read_as(&mut self, by: ReadAs, value: ValueId, dtype: DType) -> Result<ValueId, RuleError> {
        match by {
            ReadAs::Bits => super::super::rules::bitcast::as_type(&mut self.cx, value, dtype),
            ReadAs::Negative => Ok(self.cx.unary(UnaryOp::Neg, value)),
            ReadAs::Conjugate => {
                let parts = self.cx.split(value)?;
                let im = self.cx.unary(UnaryOp::Neg, parts.im);
                self.cx.join(Parts { re: parts.re, im })
            }
        }
    }

    /// A call's result is its operand's memory, seen as other numbers; where `turned`, with the last two axes swapped.
    pub(crate) fn is_reading(&mut self, call: &Call, by: ReadAs, turned: bool) -> Result<(), RuleError> {
        let names = tensor_names(call);
        let (Some(operand), Some(result)) = (names.first(), call.outputs.first().and_then(Output::tensor))
        else {
            return Ok(());
        };
        let mut of = self.window(operand)?;
        let storage = self.window(result)?.storage;
        if storage == of.storage {
            return Ok(());
        }
        if turned {
            let mut order: Vec<usize> = (0..of.shape.len()).collect();
            // The last axis is that of the parts.
            if let [.., row, column, _] = order.as_mut_slice() {
                std::mem::swap(row, column);
            }
            let shape: Vec<Expr> = order.iter().map(|axis| of.shape[*axis].clone()).collect();
            let inner = order.iter().map(|axis| Expr::axis(*axis)).collect();
            let value = self.cx.b.permute(of.value, &order)?;
            of = self.compose(&of, Some(inner), shape)?.holding(value);
        }
        let version = self.storages[of.storage].version;
        self.storages[storage].reading = Some(Reading { of, by, version });
        Ok(())
    }

    /// Whether coordinates depend on numbers read from data, about which nothing is known before the run.
    fn depends_on_data(&self, coords: &[Expr]) -> bool {
        coords.iter().any(|coord| self.is_from_data(coord))
    }

    fn is_from_data(&self, coord: &Expr) -> bool {
        let mut symbols = BTreeSet::new();
        coord.collect_symbols(&mut symbols);
        symbols.into_iter().any(|symbol| self.cx.b.is_data(symbol))
    }

    /// Coordinates for an access whose bounds are checked at run time where they depend on data.
    fn checked(&mut self, coords: &[Expr], shape: &[Expr]) -> (Vec<ValueId>, Vec<Coord>) {
        let mut indices = Vec::new();
        let mut result = Vec::new();
        for coord in coords {
            if self.is_from_data(coord) {
                result.push(Coord::Wrapped(indices.len()));
                indices.push(self.cx.b.index(coord.clone(), shape));
            } else {
                result.push(Coord::Expr(coord.clone()));
            }
        }
        (indices, result)
    }

    /// The windows that a view operator's outputs are, found by applying its rule to a stand-in for the operand.
    pub(crate) fn window_onto_operand(
        &mut self,
        call: &Call,
        rule: Rule,
    ) -> Result<Option<Vec<Window>>, RuleError> {
        let names = tensor_names(call);
        // Other tensors, of `view_as` and the like, only lend their shapes.
        let Some((operand, others)) = names.split_first() else { return Ok(None) };
        let source = self.windows[*operand].clone();
        let dtype = self.cx.b.dtype(source.value);
        let mut scratch = self.cx.b.child("window");
        let mut ty = TensorType { dtype, shape: source.shape.clone() };
        // A view of complex numbers moves both parts alike: it is found for one, and the axis of parts stays the last.
        let parts = self.program.tensors.get(*operand).is_some_and(|meta| meta.is_complex);
        if parts {
            ty.shape.pop();
        }
        let stand_in = scratch.input("operand", ty, InputRole::User);
        let mut tensors = IndexMap::from([((*operand).to_owned(), stand_in)]);
        for other in others {
            let mut ty = self.cx.b.ty(self.windows[*other].value).clone();
            if self.program.tensors.get(*other).is_some_and(|meta| meta.is_complex) {
                ty.shape.pop();
            }
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
            let mut shape = scratch.shape(value);
            let mut inner = inner;
            if parts {
                if let Some(coords) = &mut inner {
                    coords.push(Expr::axis(shape.len()));
                }
                shape.push(Expr::int(2));
            }
            windows.push(self.compose(&source, inner, shape)?);
        }
        Ok(Some(windows))
    }

    pub(crate) fn compose(
        &mut self,
        source: &Window,
        inner: Option<Vec<Expr>>,
        shape: Vec<Expr>,
    ) -> Result<Window, RuleError> {
        let coords = match (&source.coords, inner) {
            (outer, None) => outer.clone(),
            (None, Some(inner)) => Some(inner),
            (Some(outer), Some(inner)) => match composed(outer, &inner, &self.cx.b.axis_ranges(&shape)) {
                Some(coords) => Some(coords),
                None => {
                    let storage = self.own_storage(source)?;
                    let (value, coords) = (source.value, Some(inner));
                    return Ok(Window { storage, coords, shape, value, version: 0 });
                }
            },
        };
        Ok(Window { storage: source.storage, coords, shape, value: source.value, version: source.version })
    }

    /// A storage that holds a window's elements as they are.
    fn own_storage(&mut self, of: &Window) -> Result<usize, RuleError> {
        let (value, _) = self.read_window(of)?;
        let version = self.storages[of.storage].version;
        let reading = Some(Reading { of: of.clone(), by: ReadAs::Bits, version });
        self.storages.push(Storage { value, version: 0, reading });
        Ok(self.storages.len() - 1)
    }
}
