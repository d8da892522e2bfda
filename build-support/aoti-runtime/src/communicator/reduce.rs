//! What a rank gets when the inputs of all ranks are known. Sums are made in the order of the ranks, so that every run and every
//! rank has the same bits.

use super::{CollectiveKind, Reduction};
use crate::DType;

/// A rank's part of a collective, as the others see it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Part {
    pub(super) kind: OwnedKind,
    pub(super) dtype: DType,
    pub(super) group: String,
    pub(super) input: Vec<u8>,
}

/// A [`CollectiveKind`] that borrows nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum OwnedKind {
    AllReduce(Reduction),
    AllGather,
    ReduceScatter(Reduction),
    AllToAll { send: Vec<i64>, receive: Vec<i64> },
    Broadcast { root: usize },
}

impl OwnedKind {
    pub(super) fn of(kind: CollectiveKind<'_>) -> OwnedKind {
        match kind {
            CollectiveKind::AllReduce(reduction) => OwnedKind::AllReduce(reduction),
            CollectiveKind::AllGather => OwnedKind::AllGather,
            CollectiveKind::ReduceScatter(reduction) => OwnedKind::ReduceScatter(reduction),
            CollectiveKind::AllToAll { send, receive } => {
                OwnedKind::AllToAll { send: send.to_vec(), receive: receive.to_vec() }
            }
            CollectiveKind::Broadcast { root } => OwnedKind::Broadcast { root },
        }
    }

    pub(super) fn borrowed(&self) -> CollectiveKind<'_> {
        match self {
            OwnedKind::AllReduce(reduction) => CollectiveKind::AllReduce(*reduction),
            OwnedKind::AllGather => CollectiveKind::AllGather,
            OwnedKind::ReduceScatter(reduction) => CollectiveKind::ReduceScatter(*reduction),
            OwnedKind::AllToAll { send, receive } => CollectiveKind::AllToAll { send, receive },
            OwnedKind::Broadcast { root } => CollectiveKind::Broadcast { root: *root },
        }
    }

    /// Whether two ranks may meet in them: sizes of blocks are compared one by one.
    fn meets(&self, other: &OwnedKind) -> bool {
        match (self, other) {
            (OwnedKind::AllToAll { .. }, OwnedKind::AllToAll { .. }) => true,
            (a, b) => a == b,
        }
    }
}

/// Writes what `rank` gets; the parts are those of all ranks in their order.
pub(super) fn result(parts: &[Part], rank: usize, output: &mut [u8]) -> Result<(), String> {
    let own = &parts[rank];
    check(parts, rank)?;
    let bytes = own.input.len();
    let fits = |wanted: usize| {
        let message = || format!("the result has {} bytes, and the ranks make {wanted}", output.len());
        if output.len() == wanted { Ok(()) } else { Err(message()) }
    };
    match &own.kind {
        OwnedKind::AllReduce(reduction) => {
            fits(bytes)?;
            reduced(parts, *reduction, 0, output)
        }
        OwnedKind::ReduceScatter(reduction) => {
            fits(bytes / parts.len())?;
            reduced(parts, *reduction, rank * output.len(), output)
        }
        OwnedKind::AllGather => {
            fits(bytes * parts.len())?;
            let places = output.chunks_exact_mut(bytes.max(1));
            places.zip(parts).for_each(|(place, part)| place.copy_from_slice(&part.input));
            Ok(())
        }
        OwnedKind::Broadcast { root } => {
            fits(bytes)?;
            let from = parts.get(*root).ok_or_else(|| format!("there is no rank {root}"))?;
            output.copy_from_slice(&from.input);
            Ok(())
        }
        OwnedKind::AllToAll { receive, .. } => {
            let blocks = block_bytes(receive, own.dtype)?;
            fits(blocks.iter().sum())?;
            let mut rest = output;
            for (part, length) in parts.iter().zip(blocks) {
                let (place, others) = rest.split_at_mut(length);
                place.copy_from_slice(sent(part, rank)?);
                rest = others;
            }
            Ok(())
        }
    }
}

/// All ranks must have come to the same.
fn check(parts: &[Part], rank: usize) -> Result<(), String> {
    let own = &parts[rank];
    for (other, part) in parts.iter().enumerate() {
        let is_list = matches!(own.kind, OwnedKind::AllToAll { .. });
        let lengths = is_list || part.input.len() == own.input.len();
        if !own.kind.meets(&part.kind) || own.dtype != part.dtype || own.group != part.group || !lengths {
            return Err(format!(
                "rank {rank} came to {}, rank {other} to {}: the ranks' programs differ",
                described(own),
                described(part)
            ));
        }
        let (OwnedKind::AllToAll { receive, .. }, OwnedKind::AllToAll { send, .. }) = (&own.kind, &part.kind)
        else {
            continue;
        };
        if receive.len() != parts.len() || send.len() != parts.len() || receive[other] != send[rank] {
            return Err(format!("rank {rank} wants {receive:?} elements, and rank {other} sends {send:?}"));
        }
    }
    Ok(())
}

fn described(part: &Part) -> String {
    let (name, dtype, group) = (part.kind.borrowed().name(), part.dtype, &part.group);
    let reduction = match &part.kind {
        OwnedKind::AllReduce(reduction) | OwnedKind::ReduceScatter(reduction) => format!(" by {reduction:?}"),
        OwnedKind::AllGather | OwnedKind::AllToAll { .. } | OwnedKind::Broadcast { .. } => String::new(),
    };
    format!("{name}{reduction} of {} {dtype} in group `{group}`", part.input.len() / dtype.size())
}

/// The block that a rank sends another.
fn sent(part: &Part, to: usize) -> Result<&[u8], String> {
    let OwnedKind::AllToAll { send, .. } = &part.kind else { return Err("the ranks differ".to_owned()) };
    let blocks = block_bytes(send, part.dtype)?;
    let start: usize = blocks[..to].iter().sum();
    let block = part.input.get(start..start + blocks[to]);
    block.ok_or_else(|| "the blocks are longer than what they are blocks of".to_owned())
}

fn block_bytes(blocks: &[i64], dtype: DType) -> Result<Vec<usize>, String> {
    let bytes = |count: &i64| usize::try_from(*count).ok()?.checked_mul(dtype.size());
    let all: Option<Vec<usize>> = blocks.iter().map(bytes).collect();
    let all = all.filter(|all| all.iter().try_fold(0usize, |sum, next| sum.checked_add(*next)).is_some());
    all.ok_or_else(|| format!("blocks cannot have {blocks:?} elements"))
}

/// Reduces what the parts have from `start` on.
fn reduced(parts: &[Part], reduction: Reduction, start: usize, output: &mut [u8]) -> Result<(), String> {
    let inputs: Vec<&[u8]> = parts.iter().map(|part| &part.input[start..start + output.len()]).collect();
    macro_rules! integers {
        ($type:ty) => {{
            let own = (<$type>::from_ne_bytes, <$type>::to_ne_bytes);
            match reduction {
                Reduction::Sum => each(&inputs, output, own, |a, b| a.wrapping_add(b)),
                Reduction::Product => each(&inputs, output, own, |a, b| a.wrapping_mul(b)),
                Reduction::Min => each(&inputs, output, own, |a, b| a.min(b)),
                Reduction::Max => each(&inputs, output, own, |a, b| a.max(b)),
                Reduction::And => each(&inputs, output, own, |a, b| a & b),
                Reduction::Or => each(&inputs, output, own, |a, b| a | b),
                Reduction::Xor => each(&inputs, output, own, |a, b| a ^ b),
                Reduction::Average => return unknown(parts[0].dtype, reduction),
            }
        }};
    }
    // In the type that they are reduced in, which is wider for halves.
    macro_rules! floats {
        ($wide:ty, $read:expr, $write:expr) => {{
            let own = ($read, $write);
            match reduction {
                Reduction::Sum => each(&inputs, output, own, |a, b| a + b),
                Reduction::Average => {
                    let count = inputs.len() as $wide;
                    each(&inputs, output, ($read, |sum: $wide| $write(sum / count)), |a, b| a + b);
                }
                Reduction::Product => each(&inputs, output, own, |a, b| a * b),
                // What is not a number stays, as in PyTorch.
                Reduction::Min => each(&inputs, output, own, |a, b| if b < a || b.is_nan() { b } else { a }),
                Reduction::Max => each(&inputs, output, own, |a, b| if b > a || b.is_nan() { b } else { a }),
                Reduction::And | Reduction::Or | Reduction::Xor => return unknown(parts[0].dtype, reduction),
            }
        }};
    }
    match parts[0].dtype {
        DType::Bool => {
            let own = (|[byte]: [u8; 1]| byte != 0, |truth: bool| [u8::from(truth)]);
            match reduction {
                Reduction::Sum | Reduction::Max | Reduction::Or => each(&inputs, output, own, |a, b| a | b),
                Reduction::Product | Reduction::Min | Reduction::And => {
                    each(&inputs, output, own, |a, b| a & b)
                }
                Reduction::Xor => each(&inputs, output, own, |a, b| a ^ b),
                Reduction::Average => return unknown(DType::Bool, reduction),
            }
        }
        DType::U8 => integers!(u8),
        DType::I8 => integers!(i8),
        DType::U16 => integers!(u16),
        DType::I16 => integers!(i16),
        DType::U32 => integers!(u32),
        DType::I32 => integers!(i32),
        DType::U64 => integers!(u64),
        DType::I64 => integers!(i64),
        DType::F32 => floats!(f32, f32::from_ne_bytes, f32::to_ne_bytes),
        DType::F64 => floats!(f64, f64::from_ne_bytes, f64::to_ne_bytes),
        DType::F16 => floats!(f32, of_f16, to_f16),
        DType::Bf16 => floats!(f32, of_bf16, to_bf16),
        dtype @ (DType::F8E4M3Fn
        | DType::F8E5M2
        | DType::F8E4M3Fnuz
        | DType::F8E5M2Fnuz
        | DType::F8E8M0Fnu
        | DType::C32
        | DType::C64
        | DType::C128) => return unknown(dtype, reduction),
    }
    Ok(())
}

fn unknown(dtype: DType, reduction: Reduction) -> Result<(), String> {
    Err(format!("ranks do not reduce {dtype} by {reduction:?}"))
}

/// Element by element, from the first rank to the last.
fn each<const BYTES: usize, T: Copy>(
    inputs: &[&[u8]],
    output: &mut [u8],
    (read, write): (impl Fn([u8; BYTES]) -> T, impl Fn(T) -> [u8; BYTES]),
    reduce: impl Fn(T, T) -> T,
) {
    let Some((first, others)) = inputs.split_first() else { return };
    for (index, place) in output.chunks_exact_mut(BYTES).enumerate() {
        let element = |input: &[u8]| {
            let mut bytes = [0; BYTES];
            bytes.copy_from_slice(&input[index * BYTES..][..BYTES]);
            read(bytes)
        };
        let all = others.iter().fold(element(first), |all, input| reduce(all, element(input)));
        place.copy_from_slice(&write(all));
    }
}

fn of_bf16(bytes: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_ne_bytes(bytes)) << 16)
}

/// The nearest, the even one of two.
fn to_bf16(value: f32) -> [u8; 2] {
    let bits = value.to_bits();
    let rounded = if value.is_nan() { bits | 0x40_0000 } else { bits + 0x7fff + ((bits >> 16) & 1) };
    ((rounded >> 16) as u16).to_ne_bytes()
}

fn of_f16(bytes: [u8; 2]) -> f32 {
    let bits = u32::from(u16::from_ne_bytes(bytes));
    let magnitude = bits & 0x7fff;
    let value = match magnitude {
        0x7c00 => f32::INFINITY,
        0x7c01.. => f32::NAN,
        // The exponent moves to where `f32` has it, and a product rebiases it.
        _ => f32::from_bits(magnitude << 13) * 2f32.powi(112),
    };
    if bits == magnitude { value } else { -value }
}

/// The nearest, the even one of two.
fn to_f16(value: f32) -> [u8; 2] {
    let magnitude = value.abs().to_bits();
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let code = if value.is_nan() {
        0x7e00
    } else if magnitude < 0x3880_0000 {
        // Below the smallest normal number: adding one whose last place is ours rounds to it.
        (f32::from_bits(magnitude) + 0.5).to_bits() - 0.5f32.to_bits()
    } else {
        let odd = (magnitude >> 13) & 1;
        ((magnitude - 0x3800_0000 + 0xfff + odd) >> 13).min(0x7c00)
    };
    ((sign | code) as u16).to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_to_the_nearest() {
        for code in 0..=u16::MAX {
            let value = half::f16::from_bits(code).to_f32();
            let own = of_f16(code.to_ne_bytes());
            assert!(own.to_bits() == value.to_bits() || own.is_nan() && value.is_nan(), "{code}");
            for nudged in [value, value * 1.000_3, value * 1.000_488_3, value * 0.999_9] {
                let wanted = half::f16::from_f32(nudged);
                let given = half::f16::from_bits(u16::from_ne_bytes(to_f16(nudged)));
                assert!(given == wanted || given.is_nan() && wanted.is_nan(), "{nudged}: {given} {wanted}");
                let wanted = half::bf16::from_f32(nudged);
                let given = half::bf16::from_bits(u16::from_ne_bytes(to_bf16(nudged)));
                assert!(given == wanted || given.is_nan() && wanted.is_nan(), "{nudged}: {given} {wanted}");
            }
        }
    }

    fn part(kind: OwnedKind, dtype: DType, input: Vec<u8>) -> Part {
        Part { kind, dtype, group: "0".to_owned(), input }
    }

    #[test]
    fn every_type_is_reduced() {
        for (reduction, wanted) in [
            (Reduction::Sum, 7),
            (Reduction::Product, 12),
            (Reduction::Min, 3),
            (Reduction::Max, 4),
            (Reduction::And, 0),
            (Reduction::Or, 7),
            (Reduction::Xor, 7),
        ] {
            let of =
                |value: i32| part(OwnedKind::AllReduce(reduction), DType::I32, value.to_ne_bytes().to_vec());
            let mut output = [0; 4];
            result(&[of(3), of(4)], 1, &mut output).unwrap();
            assert_eq!(i32::from_ne_bytes(output), wanted, "{reduction:?}");
        }
        let of = |value: f64| {
            part(OwnedKind::AllReduce(Reduction::Average), DType::F64, value.to_ne_bytes().to_vec())
        };
        let mut output = [0; 8];
        result(&[of(3.0), of(4.0)], 0, &mut output).unwrap();
        assert_eq!(f64::from_ne_bytes(output), 3.5);
    }

    #[test]
    fn ranks_that_differ_are_told_how() {
        let a = part(OwnedKind::AllGather, DType::U8, vec![1, 2]);
        let b = part(OwnedKind::AllReduce(Reduction::Sum), DType::U8, vec![1, 2]);
        let error = result(&[a, b], 0, &mut [0; 4]).unwrap_err();
        assert_eq!(
            error,
            "rank 0 came to all_gather of 2 u8 in group `0`, rank 1 to all_reduce by Sum of 2 u8 in group `0`: \
             the ranks' programs differ"
        );
    }
}
