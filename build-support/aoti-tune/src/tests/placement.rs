//! What wins where threads are near each other at times and far apart at others.

use super::*;

/// A search over one kernel, of which the second way is the better one only where threads are near each other.
fn shared(fork_join: fn(usize) -> f64, known: Option<f64>, before: Option<usize>) -> Outcome {
    let does = vec![vec![Takes(10.0), Shares(8.0, 30.0)]];
    let mut stub = Stub { fork_join, ..Stub::new(does, true) };
    let (groups, budget) = ([group(0, 2)], Duration::from_millis(200));
    let found = Search::new(&groups, vec![before], &mut stub, &Heard::default(), (budget, known)).run();
    found.unwrap_or_else(|failure| panic!("{failure:?}"))
}

#[test]
fn runs_count_where_threads_are_as_near_as_they_ever_are() {
    let far_at_first: fn(usize) -> f64 = |run| if run < 100 { FAR } else { NEAR };
    let often_far: fn(usize) -> f64 = |run| if run % 7 < 4 { FAR } else { NEAR };
    for (fork_join, known) in [
        (far_at_first, None),
        (far_at_first, Some(FAR)),
        (far_at_first, Some(NEAR)),
        (often_far, None),
        (often_far, Some(NEAR)),
    ] {
        let outcome = shared(fork_join, known, None);
        assert_eq!(outcome.winners, Assignment(vec![1]), "{known:?}: {:?}", outcome.apart);
        assert_eq!((outcome.apart.best, outcome.timing(0, 1).unwrap().median.round()), (NEAR, 8.0));
        let [first, tuned] = outcome.whole.unwrap();
        assert!(tuned.median < first.median, "{known:?}: {first:?} {tuned:?}");
    }
}

/// Nothing is known then, and what was recorded stays; where they were never nearer, that is how the machine is.
#[test]
fn while_threads_are_farther_apart_than_they_were_no_record_changes() {
    for before in [None, Some(0), Some(1)] {
        let outcome = shared(|_| FAR, Some(NEAR), before);
        assert_eq!(outcome.winners, Assignment(vec![before.unwrap_or(0)]));
        assert!(
            outcome.is_empty()
                && !outcome.has_firsts()
                && outcome.whole.is_none()
                && outcome.apart.left_out > 0
        );
        let outcome = shared(|_| FAR, Some(FAR), before);
        assert_eq!((outcome.winners, outcome.apart.left_out), (Assignment(vec![0]), 0));
    }
}
