//! How tiles of contractions are launched: a block for each, or blocks that stay and take one after the other.

use super::tensor_map::{ROW_BYTES, TensorMap, tensor_maps};
use crate::kernels::conv::brought;
use crate::kernels::launch::{Launch, MAX_BLOCKS, MapArgument, Trigger};
use crate::kernels::mapping::Tile;
use crate::loops::{BufferId, Channels, ConvShape, Convolution, MatMul, Program, Storage};
use crate::symbolic::{Expr, NoRanges};

/// A launch of one block for each tile of each batch, or of as many as share one.
fn launch(batches: &Expr, rows: &Expr, columns: &Expr, tile: &Tile) -> Launch {
    let tiles = |size: &Expr, step: i64| size.ceil_div(&Expr::int(step), &NoRanges);
    let units = &(batches * &tiles(rows, tile.rows)) * &tiles(columns, tile.columns);
    let launch = Launch::of(&(&units * tile.blocks), 1, tile.threads, MAX_BLOCKS);
    let shared = Expr::int(tile.shared);
    Launch {
        shared,
        cluster: tile.blocks,
        producer_threads: tile.producer_threads,
        // Blocks that share a tile wait for each other at its end.
        persistent: tile.producer_threads > 0 && tile.blocks == 1,
        ..launch
    }
}

/// Of a matrix product.
pub(in crate::kernels) fn of_product(program: &Program, matmul: &MatMul, tile: &Tile) -> Launch {
    let (batch, matrix) = matmul.axes.split_at(matmul.axes.len() - 2);
    let batches = Expr::product(batch.iter().map(|axis| &axis.extent));
    let launch = launch(&batches, &matrix[0].extent, &matrix[1].extent, tile);
    let maps = if tile.producer_threads > 0 { maps(program, matmul, tile) } else { vec![] };
    let trigger = if comes_early(program, matmul, tile) { Trigger::InTemplate } else { launch.trigger };
    Launch { maps, trigger, ..launch }
}

/// Of a convolution, as a product of the weights and of the pixels of all images. What lies side by side in the result are
/// columns: pixels, or channels where those are last. Groups are batches.
pub(in crate::kernels) fn of_convolution(program: &Program, conv: &Convolution, tile: &Tile) -> Launch {
    let groups = Expr::int(ConvShape::new(program, conv).groups);
    let channels = conv.channel().extent.floor_div(&groups);
    let pixels = Expr::product(conv.spatial().iter().map(|axis| &axis.extent));
    let pixels = &conv.image().extent * &pixels;
    let launch = match conv.output_channels {
        Channels::First => launch(&groups, &channels, &pixels, tile),
        Channels::Last => launch(&groups, &pixels, &channels, tile),
    };
    let maps = if tile.producer_threads > 0 { maps_of_convolution(program, conv, tile) } else { vec![] };
    Launch { maps, ..launch }
}

/// The maps by which the copy engine brings pieces of the weights and of the pixels that windows meet.
fn maps_of_convolution(program: &Program, conv: &Convolution, tile: &Tile) -> Vec<MapArgument> {
    let Some([pixels, weights]) = brought::tensor_maps(program, conv) else {
        unreachable!("there are producer threads where operands have maps")
    };
    let depth = ROW_BYTES / conv.dtype.size() as i64;
    let argument = |buffer: BufferId, map: TensorMap, outers: i64| MapArgument {
        buffer,
        map,
        extents: vec![depth, outers],
    };
    match conv.output_channels {
        Channels::First => {
            vec![argument(conv.weight, weights, tile.rows), argument(conv.input, pixels, tile.columns)]
        }
        Channels::Last => {
            let weights = right(conv.weight, weights, depth, tile);
            vec![argument(conv.input, pixels, tile.rows), weights]
        }
    }
}

/// Whether columns of weights are on their way before the kernel begins: they are the same in every run, so earlier kernels may
/// still write. Only where a few rows are multiplied the weights are what takes the time.
fn comes_early(program: &Program, matmul: &MatMul, tile: &Tile) -> bool {
    let is_constant = matches!(program.buffers[matmul.b.buffer].storage, Storage::Constant(_));
    let by_depth = matmul.by_depth() == [true, true];
    tile.by.row().is_of_few && is_constant && by_depth
}

/// The maps by which the copy engine brings pieces of both operands.
fn maps(program: &Program, matmul: &MatMul, tile: &Tile) -> Vec<MapArgument> {
    let Some(maps) = tensor_maps(program, matmul) else {
        unreachable!("there are producer threads where operands have maps")
    };
    let operands = [&matmul.a, &matmul.b].into_iter().zip([tile.rows, tile.columns]).zip(matmul.by_depth());
    let all = operands.zip(maps).map(|(((operand, outers), by_depth), map)| {
        let depth = ROW_BYTES / matmul.dtype.size() as i64;
        let extents = if by_depth { vec![depth, outers] } else { vec![depth, depth] };
        MapArgument { buffer: operand.buffer, map, extents }
    });
    let mut all: Vec<MapArgument> = all.collect();
    if matmul.right_by_depth()
        && let Some(own) = all.pop()
    {
        let depth = ROW_BYTES / matmul.dtype.size() as i64;
        all.push(right(own.buffer, own.map, depth, tile));
    }
    all
}

/// The map of a right operand that is contiguous along the depth. Sums that blocks add up together are in the order of the columns.
fn right(buffer: BufferId, map: TensorMap, depth: i64, tile: &Tile) -> MapArgument {
    let columns = tile.columns;
    match map.interleaved(depth, columns).filter(|_| tile.blocks == 1) {
        Some((map, extents)) => MapArgument { buffer, map, extents },
        None => MapArgument { buffer, map, extents: vec![depth, columns] },
    }
}
