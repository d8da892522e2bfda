//! Fourier transforms of drawn lengths: by passes alone, as half as many complex numbers, by convolution, and of rows that no block
//! has room for; one row of a block, and several.

use super::drawn::Draw;
use super::{GFX9, NVIDIA, emulated};
use aoti_compiler::dtype::DType;
use aoti_compiler::fourier::{Form, Fourier, Norm};
use aoti_compiler::graph::{Builder, InputRole, OutputRole, TensorType, text};
use aoti_compiler::symbolic::Expr;

/// A graph of transforms of so many rows.
fn graph(all: &[(Fourier, i64, DType)]) -> String {
    let mut b = Builder::new("fourier");
    for (number, (own, rows, dtype)) in all.iter().enumerate() {
        let shape = std::iter::once(*rows).chain(own.operand()).map(Expr::int).collect();
        let x = b.input(&format!("x{number}"), TensorType { dtype: *dtype, shape }, InputRole::User);
        let y = b.fourier(*own, x).expect("the operand has rows of the transform");
        b.output(&format!("y{number}"), y, OutputRole::User);
    }
    text::print(&b.finish())
}

#[test]
fn transforms_of_drawn_lengths_are_those_of_the_evaluator() {
    let mut draw = Draw::new(7);
    for machine in [NVIDIA, GFX9] {
        let mut all = vec![];
        for length in [32, 37, 64, 100, 210, 255, 384, 509, 1000, 1024, 2 * 1009] {
            let own = Fourier {
                form: draw.one_of(&Form::ALL),
                length,
                norm: draw.one_of(&[Norm::One, Norm::Root, Norm::Length]),
            };
            let rows = if length < 300 { 600 } else { 3 };
            all.push((own, rows, draw.one_of(&[DType::F32, DType::F64])));
        }
        for form in Form::ALL {
            all.push((Fourier { form, length: 96, norm: Norm::One }, 2, DType::F32));
            all.push((Fourier { form, length: 1155, norm: Norm::One }, 1, DType::F64));
        }
        emulated("transforms", &graph(&all), machine);
    }
}

#[test]
fn rows_beyond_shared_memory_are_transformed_in_two_steps() {
    for form in Form::ALL {
        emulated(
            "long_transforms",
            &graph(&[(Fourier { form, length: 24_576, norm: Norm::One }, 1, DType::F64)]),
            GFX9,
        );
    }
}
