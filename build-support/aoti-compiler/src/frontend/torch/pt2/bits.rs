//! Bits of integers as Python has them: integers have as many as they need, negative ones end in ones.

use super::fraction::{checked, product};
use crate::symbolic::{Expr, Ranges};

/// Shifts beyond this leave 64 bits.
const MAX_SHIFT: i64 = 62;

/// A shift by, or the bits together with, a number; of two sizes, no expression says them.
pub(super) fn combined(name: &str, a: &Expr, b: &Expr, ranges: &dyn Ranges) -> Result<Expr, String> {
    if let "LShift" | "RShift" = name {
        let power = b.as_int().filter(|places| (0..=MAX_SHIFT).contains(places)).map(|places| 1i64 << places);
        let power = power.ok_or_else(|| format!("a shift by `{b}`"))?;
        return if name == "LShift" {
            product(a, &Expr::int(power))
        } else {
            Ok(a.floor_div_in(&Expr::int(power), ranges))
        };
    }
    let (number, mask) = match (a.as_int(), b.as_int()) {
        (_, Some(mask)) => (a, mask),
        (Some(mask), None) => (b, mask),
        (None, None) => return Err(format!("bits of `{a}` with bits of `{b}`")),
    };
    let common = masked(number, mask, ranges)?;
    match name {
        "BitwiseFn_bitwise_and" => Ok(common),
        "BitwiseFn_bitwise_or" => checked(&(number + mask) - &common),
        _ => checked(&(number + mask) - &(&common * 2)),
    }
}

/// `number & mask`: each run of ones is the difference of two remainders by powers of two.
fn masked(number: &Expr, mask: i64, ranges: &dyn Ranges) -> Result<Expr, String> {
    if mask < 0 {
        return checked(number - &masked(number, !mask, ranges)?);
    }
    if mask >> MAX_SHIFT != 0 {
        return Err(format!("bits of `{number}` with bits of {mask}"));
    }
    let below = |places: u32| number.modulo_in(&Expr::int(1 << places), ranges);
    let mut sum = Expr::int(0);
    let mut rest = mask;
    while rest != 0 {
        let low = rest.trailing_zeros();
        let high = low + (rest >> low).trailing_ones();
        sum = checked(&sum + &(&below(high) - &below(low)))?;
        rest &= !((1i64 << high) - 1);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolic::{NoRanges, Symbol};

    #[test]
    fn bits_are_those_of_python() {
        let size = Expr::sym(Symbol::size(0));
        let masks = [0, 1, 6, 7, 8, 0b1011_0110, 255, -1, -8, -6, i64::from(i32::MAX)];
        for (mask, value) in
            masks.into_iter().flat_map(|mask| [-9, -1, 0, 1, 5, 7, 182, 1000].map(|value| (mask, value)))
        {
            let of = |name: &str| {
                let expr = combined(name, &size, &Expr::int(mask), &NoRanges).unwrap();
                expr.evaluate(&|_| Some(value)).unwrap()
            };
            assert_eq!(of("BitwiseFn_bitwise_and"), value & mask, "{value} & {mask}");
            assert_eq!(of("BitwiseFn_bitwise_or"), value | mask, "{value} | {mask}");
            assert_eq!(of("BitwiseFn_bitwise_xor"), value ^ mask, "{value} ^ {mask}");
            if (0..9).contains(&mask) {
                assert_eq!(of("LShift"), value << mask);
                assert_eq!(of("RShift"), value >> mask);
            }
        }
    }

    #[test]
    fn bits_of_two_sizes_are_no_expression() {
        let (a, b) = (Expr::sym(Symbol::size(0)), Expr::sym(Symbol::size(1)));
        for name in ["BitwiseFn_bitwise_and", "LShift"] {
            combined(name, &a, &b, &NoRanges).unwrap_err();
        }
        combined("RShift", &a, &Expr::int(-1), &NoRanges).unwrap_err();
    }
}
