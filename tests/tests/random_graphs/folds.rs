//! Operators that combine elements of an axis, contractions, and control flow.

use crate::accuracy::Accuracy;
use crate::generate::{Generator, Made};
use aoti_compiler::dtype::DType;
use aoti_compiler::graph::{
    BinaryOp, Conv, InputRole, OutputRole, ReduceOp, Relation, ScanOp, UnaryOp, ValueId,
};
use aoti_compiler::symbolic::Expr;

impl Generator {
    pub(crate) fn reduce(&mut self) -> Made {
        let op = self.rng.pick(ReduceOp::ALL);
        let is_logical = matches!(op, ReduceOp::Any | ReduceOp::All);
        let is_exact = matches!(op, ReduceOp::ArgMax | ReduceOp::ArgMin);
        let x = self.any(|ty, accuracy| {
            let dtype = ty.dtype;
            let fits = match op {
                ReduceOp::Any | ReduceOp::All => dtype == DType::Bool,
                ReduceOp::Xor => !dtype.is_float() && dtype != DType::Bool,
                ReduceOp::Prod => !dtype.is_float() && dtype != DType::Bool,
                ReduceOp::Sum => dtype != DType::Bool,
                ReduceOp::Max | ReduceOp::Min | ReduceOp::ArgMax | ReduceOp::ArgMin => true,
            };
            fits && ty.rank() > 0 && (accuracy.is_exact() || !(is_exact || is_logical))
        })?;
        let shape = self.b.shape(x.value);
        let one = self.rng.below(shape.len());
        let axes: Vec<usize> = if op.is_arg() {
            vec![one]
        } else {
            (0..shape.len()).filter(|axis| *axis == one || self.rng.one_in(3)).collect()
        };
        let has_value = op.is_arg() || matches!(op, ReduceOp::Max | ReduceOp::Min);
        if has_value && !axes.iter().all(|axis| self.is_positive(&shape[*axis])) {
            return None;
        }
        let count: Vec<Expr> = axes.iter().map(|axis| shape[*axis].clone()).collect();
        let count = self.elements(&count) as f64;
        let keep = self.rng.one_in(2);
        let value = self.b.reduce(op, x.value, &axes, keep).ok()?;
        let dtype = self.b.dtype(value);
        let accuracy = match op {
            ReduceOp::Sum => x.accuracy.summed(count, dtype),
            ReduceOp::Max | ReduceOp::Min => x.accuracy,
            ReduceOp::Prod
            | ReduceOp::ArgMax
            | ReduceOp::ArgMin
            | ReduceOp::Any
            | ReduceOp::All
            | ReduceOp::Xor => Accuracy::exact(1e19, 0).rounded(dtype),
        };
        let accuracy = if op.is_arg() { Accuracy::exact(1500.0, 0) } else { accuracy };
        self.add(value, accuracy)
    }

    pub(crate) fn scan(&mut self) -> Made {
        let op = self.rng.pick(ScanOp::ALL);
        let x = self.any(|ty, accuracy| {
            let fits = match op {
                ScanOp::Sum => ty.dtype != DType::Bool,
                ScanOp::Prod => !ty.dtype.is_float() && ty.dtype != DType::Bool,
                ScanOp::LogSumExp => matches!(ty.dtype, DType::F32 | DType::F64) && accuracy.size < 50.0,
                ScanOp::Max | ScanOp::Min => accuracy.is_exact(),
            };
            fits && ty.rank() > 0
        })?;
        let shape = self.b.shape(x.value);
        let axis = self.rng.below(shape.len());
        let count = self.elements(&shape[axis..=axis]) as f64;
        let dtype = self.b.dtype(x.value);
        let outputs = self.b.scan(op, x.value, axis).ok()?;
        let accuracy = match op {
            ScanOp::Sum => {
                let sum = x.accuracy.summed(count, dtype);
                Accuracy { error: sum.error * count.max(1.0).sqrt(), ..sum }
            }
            ScanOp::Prod => Accuracy::exact(1e19, 0).rounded(dtype),
            ScanOp::LogSumExp => {
                let base = x.accuracy.through(x.accuracy.size + 8.0, dtype);
                Accuracy { error: base.error * count.max(1.0), ..base }
            }
            ScanOp::Max | ScanOp::Min => x.accuracy,
        };
        self.add(outputs[0], accuracy)?;
        match outputs.get(1) {
            Some(indices) => self.add(*indices, Accuracy::exact(1500.0, 0)),
            None => Some(()),
        }
    }

    pub(crate) fn sort(&mut self) -> Made {
        let x = self.any(|ty, accuracy| ty.rank() > 0 && accuracy.is_exact())?;
        let axis = self.rng.below(self.b.rank(x.value));
        let descending = self.rng.one_in(2);
        let last = axis + 1 == self.b.rank(x.value);
        let (values, indices) = self.b.sort(x.value, axis, descending).ok()?;
        if last && !descending && self.rng.one_in(2) {
            let right = self.rng.one_in(2);
            let found = self.b.search_sorted(values, x.value, right).ok()?;
            self.add(found, Accuracy::exact(1500.0, 0))?;
        }
        self.add(values, x.accuracy)?;
        self.add(indices, Accuracy::exact(1500.0, 0))
    }

    pub(crate) fn matmul(&mut self) -> Made {
        let x = self.any(|ty, _| ty.rank() >= 2 && ty.dtype != DType::Bool)?;
        let ty = self.b.ty(x.value).clone();
        let (rank, depth) = (ty.rank(), ty.shape[ty.rank() - 1].clone());
        let y = self.any(|other, _| {
            let n = other.rank();
            other.dtype == ty.dtype && n >= 2 && (other.shape[n - 1] == depth || other.shape[n - 2] == depth)
        })?;
        let shape = self.b.shape(y.value);
        let n = shape.len();
        let right = match (depth.as_int(), self.rng.one_in(2)) {
            // A weight.
            (Some(rows), true) => {
                let columns = Expr::int(self.rng.pick(&[1, 2, 5, 8, 31, 32, 33]));
                let literal = self.literal(ty.dtype, &[columns, Expr::int(rows)]);
                let weight = self.b.constant(literal).ok()?;
                self.b.transpose(weight, 0, 1).ok()?
            }
            _ if shape[n - 2] == depth => y.value,
            _ => self.b.transpose(y.value, n - 2, n - 1).ok()?,
        };
        let count = self.elements(&ty.shape[rank - 1..]) as f64;
        let size = y.accuracy.either(Accuracy::exact(9.0, 2));
        let value = self.b.matmul(x.value, right).ok()?;
        self.add(value, product(x.accuracy, size, count, ty.dtype))
    }

    pub(crate) fn conv(&mut self) -> Made {
        let x = self.any(|ty, _| {
            (3..=4).contains(&ty.rank())
                && matches!(ty.dtype, DType::F32 | DType::F64 | DType::F16 | DType::Bf16)
                && ty.shape[1].as_int().is_some_and(|channels| channels > 0)
        })?;
        let ty = self.b.ty(x.value).clone();
        let (spatial, channels) = (ty.rank() - 2, ty.shape[1].as_int()?);
        let transposed = self.rng.one_in(4);
        let groups = if self.rng.one_in(3) { channels } else { 1 };
        let per_group = self.rng.between(1, 3);
        let mut weight_shape =
            if transposed { vec![channels, per_group] } else { vec![per_group * groups, channels / groups] };
        let (mut stride, mut padding, mut dilation) = (vec![], vec![], vec![]);
        for axis in 0..spatial {
            let window = self.rng.between(1, 3);
            let spread = self.rng.between(1, 2);
            let pad = (self.rng.between(0, 1), self.rng.between(0, 1));
            let room = &ty.shape[axis + 2] + (pad.0 + pad.1 - spread * (window - 1));
            let enough = if transposed { &ty.shape[axis + 2] - 1 } else { room };
            if !self.is_positive(&enough) {
                return None;
            }
            weight_shape.push(window);
            stride.push(self.rng.between(1, 2));
            padding.push(pad);
            dilation.push(spread);
        }
        let sizes: Vec<Expr> = weight_shape.iter().copied().map(Expr::int).collect();
        let literal = self.literal(ty.dtype, &sizes);
        let weight = self.b.constant(literal).ok()?;
        let output_padding = vec![0; spatial];
        let conv = Conv { stride, padding, dilation, groups, transposed, output_padding };
        let value = self.b.conv(x.value, weight, conv).ok()?;
        let count = (weight_shape[1..].iter().product::<i64>() * channels) as f64;
        self.add(value, product(x.accuracy, Accuracy::exact(2.0, 2), count, ty.dtype))
    }

    pub(crate) fn control(&mut self) -> Made {
        let x = self.any(|_, accuracy| accuracy.is_exact())?;
        match self.rng.below(3) {
            0 => {
                let condition = self.condition()?;
                let yes = self.b.binary(Relation::Eq, condition, condition).ok()?;
                self.b.assert(yes, "a boolean equals itself").ok()
            }
            1 => {
                let condition = self.condition()?;
                let then = self.body("then", x.value, BinaryOp::Maximum);
                let otherwise = self.body("otherwise", x.value, BinaryOp::Minimum);
                let values = self.b.cond(condition, then, otherwise, &[x.value]).ok()?;
                self.add(values[0], x.accuracy)
            }
            _ => self.repeat(x.value, x.accuracy),
        }
    }

    /// Some boolean of one element.
    fn condition(&mut self) -> Option<ValueId> {
        let flag = self.any(|ty, _| ty.dtype == DType::Bool)?;
        let axes: Vec<usize> = (0..self.b.rank(flag.value)).collect();
        let op = if self.rng.one_in(2) { ReduceOp::Any } else { ReduceOp::All };
        self.b.reduce(op, flag.value, &axes, false).ok()
    }

    /// A body of one input that combines it with one number.
    fn body(&mut self, name: &str, like: ValueId, op: BinaryOp) -> aoti_compiler::graph::Graph {
        let ty = self.b.ty(like).clone();
        let mut body = self.b.child(name);
        let x = body.input("x", ty, InputRole::User);
        let mut value = body.binary_scalar(op, x, 1i64).expect("operands of one type and shape");
        if self.rng.one_in(4) {
            value = x;
        }
        body.output("y", value, OutputRole::User);
        body.finish()
    }

    /// Three rounds of a loop that counts.
    fn repeat(&mut self, x: ValueId, accuracy: Accuracy) -> Made {
        let ty = self.b.ty(x).clone();
        let start = self.b.scalar(0i64, DType::I64);
        let counter = self.b.ty(start).clone();
        let mut condition = self.b.child("condition");
        let count = condition.input("count", counter.clone(), InputRole::User);
        condition.input("x", ty.clone(), InputRole::User);
        let goes_on = condition.binary_scalar(Relation::Lt, count, 3i64).ok()?;
        condition.output("goes_on", goes_on, OutputRole::User);
        let mut body = self.b.child("body");
        let count = body.input("count", counter, InputRole::User);
        let value = body.input("x", ty.clone(), InputRole::User);
        let next = body.binary_scalar(BinaryOp::Add, count, 1i64).ok()?;
        let changed = if ty.dtype == DType::Bool {
            body.unary(UnaryOp::Not, value)
        } else {
            body.binary_scalar(BinaryOp::Add, value, 1i64).ok()?
        };
        body.output("count", next, OutputRole::User);
        body.output("x", changed, OutputRole::User);
        let outputs = self.b.while_loop(condition.finish(), body.finish(), &[start, x], 2).ok()?;
        self.add(outputs[1], accuracy.plus(Accuracy::exact(3.0, 0), ty.dtype))
    }
}

/// A sum of `count` products.
fn product(a: Accuracy, b: Accuracy, count: f64, dtype: DType) -> Accuracy {
    if !dtype.is_float() {
        return Accuracy::exact(1e19, 0).rounded(dtype);
    }
    let wide = dtype.compute();
    let sum = a.times(b, wide).summed(count, wide);
    // Half types are rounded once at the end, whether or not what is summed was exact.
    sum.rounded(dtype)
}
