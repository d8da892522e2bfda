//! Operators of ATen that are other operators under a second name.

/// The operator that `name` (without namespace and overload) is another name of. In-place names map to in-place ones.
pub(crate) fn canonical(name: &str) -> Option<&str> {
    let found = ALIASES.binary_search_by(|(alias, _)| (*alias).cmp(name));
    if let Ok(index) = found {
        return Some(ALIASES[index].1);
    }
    // Most of `torch.special` is older functions under one roof.
    name.strip_prefix("special_")
}

/// (alias, operator), sorted by alias.
const ALIASES: &[(&str, &str)] = &[
    ("__and__", "bitwise_and"),
    ("__iand__", "bitwise_and_"),
    ("__ilshift__", "bitwise_left_shift_"),
    ("__ior__", "bitwise_or_"),
    ("__irshift__", "bitwise_right_shift_"),
    ("__ixor__", "bitwise_xor_"),
    ("__lshift__", "bitwise_left_shift"),
    ("__or__", "bitwise_or"),
    ("__rshift__", "bitwise_right_shift"),
    ("__xor__", "bitwise_xor"),
    ("absolute", "abs"),
    ("absolute_", "abs_"),
    ("arccos", "acos"),
    ("arccos_", "acos_"),
    ("arccosh", "acosh"),
    ("arccosh_", "acosh_"),
    ("arcsin", "asin"),
    ("arcsin_", "asin_"),
    ("arcsinh", "asinh"),
    ("arcsinh_", "asinh_"),
    ("arctan", "atan"),
    ("arctan2", "atan2"),
    ("arctan2_", "atan2_"),
    ("arctan_", "atan_"),
    ("arctanh", "atanh"),
    ("arctanh_", "atanh_"),
    ("clip", "clamp"),
    ("clip_", "clamp_"),
    ("concat", "cat"),
    ("concatenate", "cat"),
    ("divide", "div"),
    ("divide_", "div_"),
    ("fix", "trunc"),
    ("fix_", "trunc_"),
    ("greater", "gt"),
    ("greater_", "gt_"),
    ("greater_equal", "ge"),
    ("greater_equal_", "ge_"),
    ("less", "lt"),
    ("less_", "lt_"),
    ("less_equal", "le"),
    ("less_equal_", "le_"),
    ("multiply", "mul"),
    ("multiply_", "mul_"),
    ("negative", "neg"),
    ("negative_", "neg_"),
    ("not_equal", "ne"),
    ("not_equal_", "ne_"),
    ("sgn", "sign"),
    ("sgn_", "sign_"),
    ("special_expit", "sigmoid"),
    ("special_gammainc", "igamma"),
    ("special_gammaincc", "igammac"),
    ("special_gammaln", "lgamma"),
    ("special_multigammaln", "mvlgamma"),
    ("special_psi", "digamma"),
    ("subtract", "sub"),
    ("subtract_", "sub_"),
    ("true_divide", "div"),
    ("true_divide_", "div_"),
];

#[cfg(test)]
mod tests {
    use super::ALIASES;

    #[test]
    fn aliases_are_sorted_for_the_search() {
        assert!(ALIASES.is_sorted_by_key(|(alias, _)| *alias));
    }
}
