//! What there is to try, and by which kernels it is measured.

use super::*;

#[test]
fn ways_that_only_threads_see_are_not_tried_on_one() {
    let mut candidates = group(0, 4).candidates;
    candidates[1].is_shared = true;
    candidates[2].cost = 100.0;
    let kernel = |index: usize| OpenKernel {
        name: format!("k{index}"),
        key: TuningKey::parse("0123456789abcdef").unwrap(),
        target: "cpu".to_owned(),
        sizes: vec![],
        index: Some(index),
        candidates: candidates.clone(),
        taken: 0,
    };
    let kernels = [kernel(0), kernel(5)];
    let tried = |threads| crate::groups::groups(&kernels, &["x86_64"], threads, &[])[0].tried.clone();
    assert_eq!((tried(1), tried(2)), (vec![3], vec![1, 3]), "one is thought to be hopeless");
    let one = crate::groups::groups(&kernels, &["x86_64"], 1, &["k5".to_owned()]);
    assert_eq!((one.len(), &one[0].kernels[..], one[0].name.as_str()), (1, &[0, 5][..], "k5"));
    assert!(crate::groups::groups(&kernels, &["x86_64"], 1, &["k7".to_owned()]).is_empty());
    assert!(crate::groups::groups(&kernels, &["sm_90a"], 1, &[]).is_empty());
    assert_eq!(assignments(&one, true).len(), 1);
}

/// Work that no thread gets a part of, or all get theirs, is done the same whatever is worth a thread.
#[test]
fn ways_that_do_the_same_with_these_threads_are_one() {
    let settings = [
        "gemm.packed split rows 64 lanes outer grain 65536",
        "gemm.packed split rows 64 lanes outer grain 16384",
        "gemm.packed split rows 64 lanes outer grain 4096",
        "gemm.packed split rows 64 lanes outer grain 262144",
        "gemm.packed split rows 64 lanes outer grain 65536 block rows 8",
        "gemm.packed split rows 64 lanes outer grain 1048576",
    ];
    let mut kernel = open("k", Some(0), 1, &settings);
    let shares = [2, 8, 8, 1, 2, 1].map(Some);
    kernel.candidates.iter_mut().zip(shares).for_each(|(way, shares)| way.shares = shares);
    let mut group = crate::groups::groups(&[kernel.clone()], &["x86_64"], 2, &[]).remove(0);
    assert_eq!(group.tried, [1, 3, 4]);
    group.try_this(5);
    assert_eq!(group.tried, [1, 5, 4], "a record keeps its words");
    group.try_first(2);
    assert_eq!(group.tried, [2, 5, 4]);
    group.try_first(4);
    assert_eq!(group.tried, [4, 2, 5]);
    kernel.candidates.iter_mut().for_each(|way| way.shares = None);
    let group = crate::groups::groups(&[kernel], &["x86_64"], 2, &[]).remove(0);
    assert_eq!(group.tried, [1, 2, 3, 4, 5], "of open sizes");
}

/// A question about a processor's kernel, or about more than one, with these answers.
fn open(name: &str, index: Option<usize>, key: u8, settings: &[&str]) -> OpenKernel {
    let way = |text: &&str| TuningCandidate {
        setting: text.parse().unwrap(),
        cost: 1.0,
        parts: vec![],
        is_shared: false,
        shares: None,
    };
    OpenKernel {
        name: name.to_owned(),
        key: TuningKey::parse(&format!("{key:016x}")).unwrap(),
        target: "cpu".to_owned(),
        sizes: vec![],
        index,
        candidates: settings.iter().map(way).collect(),
        taken: 0,
    }
}

/// Where two kernels are one, the time of that is held against the times of both: those of other kernels say nothing.
#[test]
fn a_pair_is_measured_by_the_kernels_that_it_makes() {
    let pair = open("a + b", None, 9, &["fused", "apart"]);
    let kernel = |name: &str, index: usize, key: u8| open(name, Some(index), key, &SETTINGS[..2]);
    // Two layers of one key, with something between.
    let fused = [pair.clone(), kernel("ab", 0, 1), kernel("c", 1, 2), kernel("ab_2", 2, 1)];
    let apart = [
        pair.clone(),
        kernel("a", 0, 3),
        kernel("b", 1, 4),
        kernel("c", 2, 2),
        kernel("a_2", 3, 3),
        kernel("b_2", 4, 4),
    ];
    let other = |_: &TuningKey, setting: &aoti_compiler::schedule::Setting| {
        assert_eq!(setting.to_string(), "apart");
        Ok::<_, ()>(apart.to_vec())
    };
    let between = (TuningStage::Fusion, 1);
    let found = crate::groups::questions(&fused, &["x86_64"], between, &[], &other).unwrap();
    let [group] = &found[..] else { panic!("one pair") };
    assert_eq!((group.positions(0), group.positions(1)), (&[0, 2][..], &[0, 1, 3, 4][..]));
    assert!(group.makes_kernels());
    // Kernels are groups of their own, and the pair is none of them.
    let kernels = crate::groups::groups(&fused, &["x86_64"], 1, &[]);
    assert_eq!(kernels.iter().map(|group| &group.kernels[..]).collect::<Vec<_>>(), [&[0, 2][..], &[1]]);
    // Each pair has a library of its own.
    let two = vec![group.clone(), group.clone()];
    assert_eq!(assignments(&two, true), [Assignment(vec![1, 0]), Assignment(vec![0, 1])]);
    // One that makes no other kernels is no question.
    let same = |_: &TuningKey, _: &aoti_compiler::schedule::Setting| Ok::<_, ()>(fused.to_vec());
    assert!(crate::groups::questions(&fused, &["x86_64"], between, &[], &same).unwrap().is_empty());
    assert!(
        crate::groups::questions(&fused, &["x86_64"], between, &["c".to_owned()], &other).unwrap().is_empty()
    );
    let in_graph = (TuningStage::Graph, 1);
    assert!(crate::groups::questions(&fused, &["x86_64"], in_graph, &[], &other).unwrap().is_empty());
}

/// Answers to one question are held against each other by what any of them changes.
#[test]
fn several_answers_are_measured_by_what_they_have_not_in_common() {
    let open = |index, key: u8, settings: &[&str]| open(&format!("k{key}"), index, key, settings);
    let run = |keys: &[u8]| -> Vec<OpenKernel> {
        let question = open(None, 99, &["parts 64", "parts 1", "parts 16", "parts 8"]);
        let kernels = keys.iter().enumerate();
        let kernels = kernels.map(|(index, key)| open(Some(index), *key, &SETTINGS[..1]));
        std::iter::once(question).chain(kernels).collect()
    };
    let other = |_: &TuningKey, setting: &aoti_compiler::schedule::Setting| {
        Ok::<_, ()>(match setting.to_string().as_str() {
            "parts 1" => run(&[7, 3, 5]),
            "parts 16" => run(&[7, 8, 2, 5]),
            // As without a record.
            "parts 8" => run(&[7, 1, 2, 5]),
            other => panic!("{other}"),
        })
    };
    let (all, in_graph) = (run(&[7, 1, 2, 5]), (TuningStage::Graph, 1));
    let found = crate::groups::questions(&all, &["x86_64"], in_graph, &[], &other).unwrap();
    let [group] = &found[..] else { panic!("one question") };
    assert_eq!(group.tried, [1, 2], "an answer that changes nothing is not tried");
    let positions: Vec<&[usize]> = (0..3).map(|way| group.positions(way)).collect();
    assert_eq!(positions, [&[1, 2][..], &[1], &[1, 2]], "what one of them changes is measured with all");
    // What an answer only leaves out has no time of its own.
    let fewer = |_: &TuningKey, _: &aoti_compiler::schedule::Setting| Ok::<_, ()>(run(&[7, 5]));
    let found = crate::groups::questions(&all, &["x86_64"], in_graph, &[], &fewer).unwrap();
    assert_eq!((found[0].positions(0), found[0].positions(1)), (&[0, 1, 2, 3][..], &[0, 1][..]));
}
