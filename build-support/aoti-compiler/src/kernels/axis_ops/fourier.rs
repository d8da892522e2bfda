//! Fourier transforms of rows. On GPUs a row is the work of a team of threads, which keep its numbers in shared memory between passes
//! (`gpu/fourier.h`); [`passes_of`] says which rows fit there.

use super::{Code, OnGpus, Operand, RUN, RowBlock, element_bytes, number};
use crate::dtype::DType;
use crate::fourier::{FftMethod, Form, Fourier, Plan};
use crate::kernels::launch::{Launch, MAX_BLOCKS};
use crate::kernels::scratch::aligned;
use crate::kernels::{self, Algorithm, Call, Parameter, Scratch};
use crate::loops::{AxisKernel, AxisOp};
use crate::symbolic::{Expr, Ranges};
use crate::target::{GpuTarget, Target};

pub(crate) static FOURIER: Algorithm = Algorithm {
    word: "rows.fourier",
    version: 1,
    description: "Fourier transforms of rows",
    headers: |_| &["fourier.h"],
    code: kernels::Code::AxisOp(Code {
        scratch: |rows, target| {
            let bytes = Plan::of(fourier(rows), rows.dtype).work() * element_bytes(rows);
            Scratch::of_worker(aligned(&Expr::int(bytes), target))
        },
        processors: Some(call),
        gpus: Some(OnGpus {
            headers: &["gpu/fourier.h"],
            block,
            fits: |rows, block| {
                block.rows > 0
                    && team(&plan(rows), rows.dtype).is_some_and(|team| block.threads == block.rows * team)
            },
            launches: |rows, block| {
                let shared = Expr::int(block.rows * row_bytes(&plan(rows), rows.dtype));
                let resident = (RESIDENT / block.threads.max(WARP)).max(1);
                Launch { shared, resident, ..Launch::of(&rows.outer, block.rows, block.threads, MAX_BLOCKS) }
                    .into()
            },
            calls: |rows, block| call_of_teams(rows, block).into(),
        }),
    }),
};

/// Threads of a block at most, and of one that has several rows.
const MOST_THREADS: i64 = 1024;
const USUAL_THREADS: i64 = 128;
/// Threads that run in step at least: no block has fewer.
const WARP: i64 = 32;
/// Threads of a multiprocessor that registers are to suffice for.
const RESIDENT: i64 = 512;
/// Bytes of shared memory of a block that has several rows.
const SHARED: i64 = 16 << 10;
/// Bytes of the numbers that a thread has in registers at a time, or those of the largest factor where these are more.
const REGISTER_BYTES: i64 = 16 * 8;
/// Neighbouring numbers of a row in shared memory that an empty place follows (`RowMemory` of `gpu/fourier.h`).
const BETWEEN_GAPS: i64 = 16;

/// Bytes of a complex number.
fn number_bytes(dtype: DType) -> i64 {
    2 * i64::try_from(dtype.size()).expect("a few bytes")
}

/// Bytes of a row in shared memory.
fn row_bytes(plan: &Plan, dtype: DType) -> i64 {
    let last = plan.pass_length() - 1;
    (last + last / BETWEEN_GAPS + 1) * number_bytes(dtype)
}

/// Threads that work on a row together: as many as have the least to do in all, counting those that wait for others.
fn team(plan: &Plan, dtype: DType) -> Option<i64> {
    let length = plan.pass_length();
    let turns = |radix: i64, team: i64| (length / radix + team - 1) / team;
    let largest = plan.radices.iter().max()? * number_bytes(dtype);
    let fits = |team: i64| {
        let of_pass =
            |radix: &i64| turns(*radix, team) * radix * number_bytes(dtype) <= REGISTER_BYTES.max(largest);
        team <= MOST_THREADS && plan.radices.iter().all(of_pass)
    };
    let work = |team: i64| team * plan.radices.iter().map(|radix| turns(*radix, team) * radix).sum::<i64>();
    let candidates = plan.radices.iter().flat_map(|radix| {
        let all = length / radix;
        (1..=REGISTER_BYTES).map(move |turns| (all + turns - 1) / turns)
    });
    candidates.filter(|team| fits(*team)).min_by_key(|team| (work(*team), -team))
}

/// Which transforms a target has passes for; others are made of products, and of those.
pub(crate) fn passes_of(target: &Target) -> impl Fn(&Fourier, DType) -> bool {
    move |own, dtype| match target {
        Target::Cpu(_) => Plan::of(own, dtype).way != FftMethod::Matrix,
        Target::Gpu(gpu) => is_taken(own, dtype, gpu),
    }
}

/// Whether blocks of a GPU transform rows.
fn is_taken(own: &Fourier, dtype: DType, target: &GpuTarget) -> bool {
    let plan = Plan::of(own, dtype);
    plan.way != FftMethod::Matrix
        && row_bytes(&plan, dtype) <= target.max_shared_bytes
        && team(&plan, dtype).is_some_and(|team| team <= target.max_threads)
}

/// The plan of the transform.
fn plan(rows: &AxisKernel) -> Plan {
    Plan::of(fourier(rows), rows.dtype)
}

/// Several short rows, as long as that leaves blocks to all multiprocessors.
fn block(rows: &AxisKernel, ranges: &dyn Ranges) -> RowBlock {
    let plan = plan(rows);
    let team = team(&plan, rows.dtype).unwrap_or(1);
    let share = rows.outer.interval(ranges).max / (2 * GpuTarget::MULTIPROCESSORS);
    let most = (USUAL_THREADS / team).min(SHARED / row_bytes(&plan, rows.dtype)).min(share);
    let own = most.max(1);
    RowBlock { threads: own * team, rows: own }
}

/// The transform.
fn fourier(rows: &AxisKernel) -> &Fourier {
    match &rows.op {
        AxisOp::Fourier(own) => own,
        AxisOp::Scan(_)
        | AxisOp::Sort(_)
        | AxisOp::NthElement { .. }
        | AxisOp::SearchSorted { .. }
        | AxisOp::Matrices(_)
        | AxisOp::Recurrent(_) => unreachable!("its rows are transformed"),
    }
}

/// The words of `fourier_radix.h` for what a transform makes of what, and by which passes.
fn words(own: &Fourier, plan: &Plan) -> [Parameter; 2] {
    let form = match own.form {
        Form::Forward => "fourier::kForward",
        Form::Inverse => "fourier::kInverse",
        Form::ToHalf => "fourier::kToHalf",
        Form::FromHalf => "fourier::kFromHalf",
    };
    let way = match plan.way {
        FftMethod::MixedRadix => "fourier::kPlain",
        FftMethod::RealPacked => "fourier::kHalved",
        FftMethod::Bluestein => "fourier::kConvolved",
        FftMethod::Matrix => unreachable!("products have taken its place"),
    };
    [form.into(), way.into()]
}

/// The factors of a plan as a type.
fn radices(name: &str, plan: &Plan) -> Parameter {
    let radices = plan.radices.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    format!("fourier::{name}<{radices}>").into()
}

/// The call of `fourier.h`.
fn call(rows: &AxisKernel) -> Call<Operand> {
    let (own, plan) = (fourier(rows), plan(rows));
    let operands = [RUN, Operand::WorkerBytes].into_iter().chain(operands(rows, own));
    let [form, way] = words(own, &plan);
    Call::new("fourier_rows", operands).with([form, way, number(own.length), radices("Radices", &plan)])
}

/// The call of `gpu/fourier.h`.
fn call_of_teams(rows: &AxisKernel, block: RowBlock) -> Call<Operand> {
    let (own, plan) = (fourier(rows), plan(rows));
    let [form, way] = words(own, &plan);
    let block = [block.threads, block.rows].map(number);
    let parameters = [form, way, number(own.length), radices("TeamRadices", &plan)];
    Call::new("fourier_of_teams", operands(rows, own)).with(parameters.into_iter().chain(block))
}

/// Rows, operands, result, and what it is multiplied by.
fn operands(rows: &AxisKernel, own: &Fourier) -> impl Iterator<Item = Operand> + use<> {
    let tensors = [Operand::Input(0), Operand::Input(1), Operand::Output(0)];
    let (outer, scale) = (Operand::Size(rows.outer.clone()), Operand::Number(own.scale()));
    [outer].into_iter().chain(tensors).chain([scale])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fourier::Norm;

    fn plan(length: i64) -> Plan {
        Plan::of(&Fourier { form: Form::Forward, length, norm: Norm::One }, DType::F32)
    }

    #[test]
    fn threads_of_a_team_have_equal_shares() {
        for length in (32..=512).chain([1000, 1024, 2048, 4096, 8192, 16384]) {
            let plan = plan(length);
            let team = team(&plan, DType::F32).expect("a team");
            let turns = |radix: &i64| (plan.pass_length() / radix + team - 1) / team;
            let numbers = plan.radices.iter().map(|radix| turns(radix) * radix * team).sum::<i64>();
            let least = plan.pass_length() * i64::try_from(plan.radices.len()).expect("a few");
            assert!(numbers < 2 * least, "{length}: {team} of {:?}", plan.radices);
        }
    }

    #[test]
    fn rows_that_fit_shared_memory_are_taken() {
        let own = |length| Fourier { form: Form::Forward, length, norm: Norm::One };
        let hopper = GpuTarget::named("sm_90a").expect("it is known");
        let taken = |length, dtype| is_taken(&own(length), dtype, &hopper);
        assert!(taken(1024, DType::F32) && taken(16384, DType::F32) && taken(8192, DType::F64));
        assert!(!taken(31, DType::F32), "shorter rows are products with a matrix");
        assert!(!taken(32768, DType::F32) && !taken(16384, DType::F64));
        assert!(taken(1009, DType::F32), "a prime length is a convolution");
    }
}
