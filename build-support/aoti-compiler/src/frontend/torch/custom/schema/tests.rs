//! What schemas are read as, and what is refused in them.

use super::*;

fn argument(text: &str) -> Argument {
    let schema = Schema::parse(&format!("({text}) -> Tensor")).unwrap_or_else(|error| panic!("{error}"));
    schema.arguments.into_iter().next().expect("one argument")
}

#[test]
fn types_and_defaults_are_read() {
    let list = argument("SymInt[2]? sizes=None");
    assert_eq!((list.ty, list.is_list, list.is_optional), (Type::Int, true, true));
    assert_eq!(list.default, Some(Default::None));
    assert_eq!(argument("float k=-1e-3").default, Some(Default::Float(-1e-3)));
    assert_eq!(argument("float k=2").default, Some(Default::Int(2)));
    assert_eq!(argument("str mode='a b'").default, Some(Default::Text("a b".to_owned())));
    assert_eq!(
        argument("bool[] f=[True, False]").default.map(|d| matches!(d, Default::List(l) if l.len() == 2)),
        Some(true)
    );
}

#[test]
fn results_are_tensors_and_lists_of_them() {
    let schema =
        Schema::parse("f(Tensor x, *, Tensor? y=None) -> (Tensor a, Tensor[] b)").expect("it parses");
    assert_eq!(schema.results.iter().map(|result| result.is_list).collect::<Vec<_>>(), [false, true]);
    assert!(Schema::parse("() -> ()").expect("nothing").results.is_empty());
}

#[test]
fn what_is_not_supported_is_named() {
    for (text, words) in [
        ("(Tensor(a!)[] x) -> ()", "`x`: only a tensor that is always given can be changed in place"),
        ("(Tensor(a!)? x) -> ()", "`x`: only a tensor that is always given can be changed in place"),
        ("(Tensor(a!) x) -> Tensor(a!)", "a result `Tensor(a!)` is a view of a tensor"),
        ("(Tensor x) -> Tensor(a)", "a result `Tensor(a)` is a view of a tensor"),
        ("(Scalar x) -> Tensor", "the type `Scalar`"),
        ("(Tensor x) -> int", "a result is `int`"),
        ("(Tensor?[] x) -> Tensor", "a list of `Tensor?`"),
        ("(str[] x) -> Tensor", "a list of `str`"),
        ("(Tensor x, int x) -> Tensor", "two arguments are called `x`"),
        ("(Tensor x, int n=1.5) -> Tensor", "the default of `n` is no `int`"),
        ("(int[] n=3) -> Tensor", "the default of `n` is no `int[]`"),
        ("(Tensor x", "expected `,`, found the end"),
        ("(Tensor x) Tensor", "expected `->`, found `Tensor`"),
        ("(Tensor 3) -> Tensor", "expected the name of an argument, found `3)"),
        ("(Tensor x) -> Tensor or two", "expected the end, found `or two`"),
        ("", "expected `(`, found the end"),
        ("(float k=fast) -> Tensor", "expected a default, found `fast)"),
    ] {
        let error = Schema::parse(text).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}
