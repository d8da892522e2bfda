//! Running reductions of few long rows are done in three steps for GPUs: those of parts of a row, those of what the parts
//! gave, and both together. Blocks have parts then, where each row would keep one of them busy.
//!
//! How many parts there are is a matter of sizes: results are the same in every run.

use super::rewrite::{everywhere, rewrite};
use crate::dtype::DType;
use crate::graph::{
    BinaryOp, Builder, Coord, FloatTest, FloatUnary, Graph, Node, Op, Relation, ScanOp, ValueId,
};
use crate::symbolic::Expr;
use crate::target::Target;

/// Elements from which on three steps take less than one.
const ELEMENTS: i64 = 1 << 15;
/// How many times slower logarithms of sums are than sums.
const SLOWER: i64 = 4;
/// Inner positions from which on threads side by side have rows of their own.
const SIDE_BY_SIDE: i64 = 32;
/// Rows that keep a GPU busy, where each has a block, and where each has a thread; and elements of a part at least.
const BLOCKS: (i64, i64) = (512, 4096);
const THREADS: (i64, i64) = (1 << 15, 64);
/// Times as many parts as rows with fewer of which there is nothing to be had.
const FEWEST: i64 = 4;

/// Splits long scans for a target.
pub fn split_scans(graph: Graph, target: &Target) -> Graph {
    if matches!(target, Target::Cpu(_)) {
        return graph;
    }
    everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| {
            let Op::Scan { op, axis } = node.op else { return None };
            let shape = &rewriter.builder.ty(node.inputs[0]).shape;
            let sizes: Vec<i64> = shape.iter().map(Expr::as_int).collect::<Option<_>>()?;
            let length = part(&sizes, axis, op)?;
            Scan { op, axis, length, size: sizes[axis] }.split(&mut rewriter.builder, node)
        });
    })
}

/// The length of parts where rows are cut.
fn part(sizes: &[i64], axis: usize, op: ScanOp) -> Option<i64> {
    let product = |sizes: &[i64]| sizes.iter().try_fold(1, |all: i64, size| all.checked_mul(*size));
    let inner = product(&sizes[axis + 1..])?;
    let rows = product(&sizes[..axis])?.checked_mul(inner)?;
    let (busy, least) = if inner >= SIDE_BY_SIDE { THREADS } else { BLOCKS };
    let least = if op == ScanOp::LogSumExp { least.min(ELEMENTS / SLOWER / FEWEST) } else { least };
    let parts = busy.checked_div(rows)?.min(sizes[axis] / least);
    let is_slow = op == ScanOp::LogSumExp;
    let is_long = rows.checked_mul(sizes[axis])? >= if is_slow { ELEMENTS / SLOWER } else { ELEMENTS };
    (is_long && parts >= FEWEST).then(|| sizes[axis] / parts)
}

struct Scan {
    op: ScanOp,
    axis: usize,
    /// The length of a part, and of a row.
    length: i64,
    size: i64,
}

/// Values of a scan, and positions where it has them.
struct Running {
    values: ValueId,
    places: Option<ValueId>,
}

impl Scan {
    fn split(&self, builder: &mut Builder, node: &Node) -> Option<Vec<ValueId>> {
        let x = node.inputs[0];
        let dtype = builder.dtype(x);
        // Narrow numbers are rounded once, at the end.
        let wide = builder.cast(x, dtype.compute());
        let parts = self.size / self.length;
        let behind = self.size - parts * self.length;
        let pieces = [(0, parts, self.length), (parts * self.length, 1, behind)];
        let mut local = vec![];
        for (start, parts, length) in pieces.into_iter().filter(|(.., length)| *length > 0) {
            local.push(self.of_parts(builder, wide, (start, parts, length))?);
        }
        let before = self.before(builder, &local)?;
        let (mut values, mut places) = (vec![], vec![]);
        for (number, own) in local.iter().enumerate() {
            let first = if number == 0 { 0 } else { parts };
            let Running { values: own, places: at } = self.together(builder, own, &before, first)?;
            values.push(self.rows(builder, own)?);
            places.extend(at.map(|at| self.rows(builder, at)).into_iter().collect::<Option<Vec<_>>>()?);
        }
        let values = self.joined(builder, &values)?;
        let mut results = vec![builder.cast(values, dtype)];
        if self.op.has_indices() {
            results.push(self.joined(builder, &places)?);
        }
        Some(results)
    }

    /// The scan of each of some parts, with the positions in the row.
    fn of_parts(
        &self,
        builder: &mut Builder,
        x: ValueId,
        (start, parts, length): (i64, i64, i64),
    ) -> Option<Running> {
        let piece = builder.slice(x, self.axis, &Expr::int(start), &Expr::int(parts * length), 1).ok()?;
        let mut shape = builder.shape(piece);
        shape.splice(self.axis..=self.axis, [Expr::int(parts), Expr::int(length)]);
        let apart = builder.reshape(piece, &shape).ok()?;
        let results = builder.scan(self.op, apart, self.axis + 1).ok()?;
        let places = match results.get(1) {
            None => None,
            Some(at) => {
                let part = &(&Expr::axis(self.axis) * self.length) + start;
                let before = builder.index(part, &shape);
                Some(builder.binary(BinaryOp::Add, *at, before).ok()?)
            }
        };
        Some(Running { values: results[0], places })
    }

    /// The scan of what all parts gave.
    fn before(&self, builder: &mut Builder, local: &[Running]) -> Option<Running> {
        let (mut values, mut places) = (vec![], vec![]);
        for own in local {
            let last = &builder.shape(own.values)[self.axis + 1] - 1;
            values.push(builder.pick(own.values, self.axis + 1, &last).ok()?);
            places.extend(own.places.map(|at| builder.pick(at, self.axis + 1, &last)).transpose().ok()?);
        }
        let values = self.joined(builder, &values)?;
        let results = builder.scan(self.op, values, self.axis).ok()?;
        let places = match results.get(1) {
            None => None,
            Some(part) => {
                let (places, shape) = (self.joined(builder, &places)?, builder.shape(*part));
                let coords = (0..shape.len()).map(|axis| {
                    if axis == self.axis { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(axis)) }
                });
                Some(builder.gather(places, &[*part], coords.collect(), &shape).ok()?)
            }
        };
        Some(Running { values: results[0], places })
    }

    /// The scans of parts from number `first` on, each with what all parts before it gave.
    fn together(
        &self,
        builder: &mut Builder,
        own: &Running,
        before: &Running,
        first: i64,
    ) -> Option<Running> {
        let shape = builder.shape(own.values);
        let earlier = |builder: &mut Builder, value: ValueId| {
            let mut amounts = vec![(Expr::int(0), Expr::int(0)); shape.len() - 1];
            let parts = &builder.shape(value)[self.axis] - first;
            amounts[self.axis] = (Expr::int(1 - first), &shape[self.axis] - &(&parts + 1));
            let shifted = builder.pad(value, &amounts, 0.0).ok()?;
            let shifted = builder.unsqueeze(shifted, self.axis + 1).ok()?;
            builder.expand(shifted, &shape).ok()
        };
        let values = earlier(builder, before.values)?;
        let (merged, replaces) = self.merged(builder, values, own.values)?;
        let number = builder.index(&Expr::axis(self.axis) + first, &shape);
        let zero = builder.full(0i64, DType::I64, &shape);
        let is_first = builder.binary(Relation::Eq, number, zero).ok()?;
        let values = builder.select(is_first, own.values, merged).ok()?;
        let places = match (own.places, before.places, replaces) {
            (Some(at), Some(before), Some(replaces)) => {
                let before = earlier(builder, before)?;
                let stays = builder.binary(BinaryOp::Add, is_first, replaces).ok()?;
                Some(builder.select(stays, at, before).ok()?)
            }
            (..) => None,
        };
        Some(Running { values, places })
    }

    /// What is before a position and what is up to it as one; for extremes also whether the second replaces the first.
    fn merged(&self, builder: &mut Builder, a: ValueId, b: ValueId) -> Option<(ValueId, Option<ValueId>)> {
        let by = match self.op {
            ScanOp::Sum => return Some((builder.binary(BinaryOp::Add, a, b).ok()?, None)),
            ScanOp::Prod => return Some((builder.binary(BinaryOp::Mul, a, b).ok()?, None)),
            ScanOp::LogSumExp => return Some((log_sum(builder, a, b)?, None)),
            ScanOp::Max => Relation::Ge,
            ScanOp::Min => Relation::Le,
        };
        let mut replaces = builder.binary(by, b, a).ok()?;
        if builder.dtype(b).is_float() {
            let nan = builder.unary(FloatTest::IsNan, b);
            replaces = builder.binary(BinaryOp::Add, replaces, nan).ok()?;
        }
        Some((builder.select(replaces, b, a).ok()?, Some(replaces)))
    }

    /// Parts as one axis.
    fn rows(&self, builder: &mut Builder, x: ValueId) -> Option<ValueId> {
        let mut shape = builder.shape(x);
        let length = &shape[self.axis] * &shape[self.axis + 1];
        shape.splice(self.axis..=self.axis + 1, [length]);
        builder.reshape(x, &shape).ok()
    }

    fn joined(&self, builder: &mut Builder, pieces: &[ValueId]) -> Option<ValueId> {
        match pieces {
            [one] => Some(*one),
            several => builder.cat(several, self.axis).ok(),
        }
    }
}

/// log(exp(a) + exp(b)). Of equal infinities there is no difference.
fn log_sum(builder: &mut Builder, a: ValueId, b: ValueId) -> Option<ValueId> {
    let high = builder.binary(BinaryOp::Maximum, a, b).ok()?;
    let low = builder.binary(BinaryOp::Minimum, a, b).ok()?;
    let equal = builder.binary(Relation::Eq, low, high).ok()?;
    let apart = builder.binary(BinaryOp::Sub, low, high).ok()?;
    let zero = builder.full_like(0.0, apart);
    let apart = builder.select(equal, zero, apart).ok()?;
    let ratio = builder.unary(FloatUnary::Exp, apart);
    let more = builder.unary(FloatUnary::Log1p, ratio);
    builder.binary(BinaryOp::Add, high, more).ok()
}

#[cfg(test)]
mod tests {
    use super::split_scans;
    use crate::graph::text::{parse, print};
    use crate::interpret::{Tensor, evaluate};
    use crate::passes::dce;
    use crate::target::{GpuTarget, Target};

    /// A scan before and after it is split, which give the same for an input, and how many scans it then is.
    #[track_caller]
    fn scans(op: &str, sizes: [usize; 3], axis: usize) -> usize {
        let ty = format!("f32[{}, {}, {}]", sizes[0], sizes[1], sizes[2]);
        let places = if op.starts_with("cum") && op.ends_with(['x', 'n']) {
            ty.replace("f32", "i64")
        } else {
            String::new()
        };
        let result = if places.is_empty() { String::new() } else { format!(", %i: {places}") };
        let output = if places.is_empty() { "" } else { "output %i" };
        let text = format!(
            "graph \"t\" {{ input %x \"x\": {ty} %y: {ty}{result} = {op} %x axis {axis} output %y {output} }}"
        );
        let graph = parse(&text).expect("the text parses");
        let target = Target::Gpu(GpuTarget::named("sm_90a").expect("an architecture"));
        let split = dce(split_scans(graph.clone(), &target));
        crate::graph::verify(&split).expect("the result is well formed");
        let count: usize = sizes.iter().product();
        let rises = |k: usize| if k % 4001 == 17 { (k / 4001) as f32 } else { (k * 7 % 3) as f32 - 1.0 };
        let mut values: Vec<f32> = (0..count).map(rises).collect();
        if op != "cumsum" {
            values[count / 3] = f32::INFINITY;
            values[count - count / 5] = f32::NAN;
        }
        let inputs = [Tensor::from_f32(&sizes, &values)];
        assert_eq!(evaluate(&split, &inputs).expect("it runs"), evaluate(&graph, &inputs).expect("it runs"));
        print(&split).matches(&format!("{op} ")).count()
    }

    #[test]
    fn logarithms_of_sums_are_cut_sooner() {
        let length = 9001;
        let graph = parse(&format!(
            "graph \"t\" {{ input %x \"x\": f32[1, {length}] %y: f32[1, {length}] = logcumsumexp %x axis 1 output %y }}"
        ));
        let graph = graph.expect("the text parses");
        let target = Target::Gpu(GpuTarget::named("sm_90a").expect("an architecture"));
        let split = dce(split_scans(graph.clone(), &target));
        assert_eq!(print(&split).matches("logcumsumexp ").count(), 3, "{}", print(&split));
        let mut values: Vec<f32> = (0..length).map(|k| (k * 7 % 11) as f32 - 5.0).collect();
        values[..3000].fill(f32::NEG_INFINITY);
        values[8000] = f32::INFINITY;
        let inputs = [Tensor::from_f32(&[1, length], &values)];
        let [own, expected] =
            [&split, &graph].map(|graph| evaluate(graph, &inputs).expect("it runs")[0].to_f64());
        for (own, expected) in own.iter().zip(&expected) {
            assert!(own == expected || (own - expected).abs() < 1e-5, "{own} for {expected}");
        }
    }

    #[test]
    fn few_long_rows_are_cut() {
        for op in ["cumsum", "cummax", "cummin"] {
            assert_eq!(scans(op, [1, 1, 1 << 16], 2), 2, "{op}: parts of one length");
            assert_eq!(scans(op, [2, 40_009, 1], 1), 3, "{op}: and a shorter one");
        }
        assert_eq!(scans("cummax", [1, 3001, 40], 1), 3, "side by side");
    }

    #[test]
    fn other_rows_stay() {
        assert_eq!(scans("cumsum", [1, 1, 20_000], 2), 1, "it is short");
        assert_eq!(scans("cumsum", [500, 3, 200], 2), 1, "there are rows for all");
    }
}
