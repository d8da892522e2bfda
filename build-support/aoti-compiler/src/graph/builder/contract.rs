//! Matrix products and convolutions.

use super::{Builder, Built, ShapeError, ensure};
use crate::graph::{Conv, Op, ValueId};
use crate::symbolic::Expr;

impl Builder {
    /// Batched matrix product; leading axes broadcast.
    pub fn matmul(&mut self, a: ValueId, b: ValueId) -> Built {
        let (a_type, b_type) = (self.ty(a).clone(), self.ty(b).clone());
        ensure!(a_type.dtype == b_type.dtype, "factors are {} and {}", a_type.dtype, b_type.dtype);
        ensure!(
            a_type.rank() >= 2 && b_type.rank() >= 2,
            "factors have {} and {} axes",
            a_type.rank(),
            b_type.rank()
        );
        let (a_lead, a_matrix) = a_type.shape.split_at(a_type.rank() - 2);
        let (b_lead, b_matrix) = b_type.shape.split_at(b_type.rank() - 2);
        let differ = |_| ShapeError(format!("inner sizes {} and {} differ", a_matrix[1], b_matrix[0]));
        self.require_same(&a_matrix[1], &b_matrix[0]).map_err(differ)?;
        let b = self.with_sizes(b, &[b_lead, &[a_matrix[1].clone(), b_matrix[1].clone()]].concat())?;
        let b_matrix = [a_matrix[1].clone(), b_matrix[1].clone()];
        let batch = self.broadcast(&[a_lead.to_vec(), b_lead.to_vec()])?;
        let with = |tail: &[Expr]| [batch.as_slice(), tail].concat();
        let (a, b) = (self.expand(a, &with(a_matrix))?, self.expand(b, &with(&b_matrix))?);
        let shape = with(&[a_matrix[0].clone(), b_matrix[1].clone()]);
        Ok(self.push1(Op::MatMul, &[a, b], a_type.dtype, shape))
    }

    /// Convolution or its transpose, without bias.
    pub fn conv(&mut self, x: ValueId, weight: ValueId, conv: Conv) -> Built {
        let (x_type, w_type) = (self.ty(x).clone(), self.ty(weight).clone());
        let spatial = conv.stride.len();
        ensure!(x_type.dtype == w_type.dtype, "input is {}, weight is {}", x_type.dtype, w_type.dtype);
        ensure!(
            x_type.rank() == spatial + 2 && w_type.rank() == spatial + 2,
            "input has {} axes and weight {}, not {}",
            x_type.rank(),
            w_type.rank(),
            spatial + 2
        );
        ensure!(
            conv.padding.len() == spatial
                && conv.dilation.len() == spatial
                && conv.output_padding.len() == spatial,
            "parameters do not have one entry for each of {spatial} axes"
        );
        ensure!(
            conv.groups > 0 && conv.stride.iter().chain(&conv.dilation).all(|value| *value > 0),
            "groups, strides and dilations must be positive"
        );
        let groups = Expr::int(conv.groups);
        let (in_channels, out_channels) = if conv.transposed {
            (w_type.shape[0].clone(), &w_type.shape[1] * &groups)
        } else {
            (&w_type.shape[1] * &groups, w_type.shape[0].clone())
        };
        let differ = |_| {
            let channels = &x_type.shape[1];
            ShapeError(format!("input has {channels} channels, the weight wants {in_channels}"))
        };
        self.require_same(&x_type.shape[1], &in_channels).map_err(differ)?;
        let mut own = x_type.shape.clone();
        own[1] = in_channels;
        let x = self.with_sizes(x, &own)?;
        let mut shape = vec![x_type.shape[0].clone(), out_channels];
        for axis in 0..spatial {
            let span = &(&(&w_type.shape[axis + 2] - 1) * conv.dilation[axis]) + 1;
            let (low, high) = conv.padding[axis];
            let size = &x_type.shape[axis + 2];
            let result = if conv.transposed {
                &(&(&(size - 1) * conv.stride[axis]) - (low + high)) + &(&span + conv.output_padding[axis])
            } else {
                let room = &(size + (low + high)) - &span;
                self.require_room(&room)?;
                &room.floor_div_in(&Expr::int(conv.stride[axis]), &self.ranges) + 1
            };
            ensure!(result.interval(&self.ranges).max >= 0, "the window of {span} does not fit {size}");
            shape.push(result);
        }
        Ok(self.push1(Op::Conv(conv), &[x, weight], x_type.dtype, shape))
    }
}
