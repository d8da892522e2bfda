//! Ranks that are processes, which may die, and ranks on GPUs, whose library is a stand-in.

#![cfg(unix)]

use aoti_runtime::{
    Collective, CollectiveKind, Communicator, DType, Device, Memory, Nccl, NcclCommunicator, Reduction,
    SocketGroup, ThreadGroup,
};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SECRET: [u8; 32] = *b"what nobody else knows, 32 bytes";
const LIMIT: Duration = Duration::from_secs(20);

fn sum(rank: &dyn Communicator, values: &[f32]) -> Result<Vec<f32>, String> {
    let input: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let mut output = vec![0; input.len()];
    rank.exchange(Collective {
        kind: CollectiveKind::AllReduce(Reduction::Sum),
        dtype: DType::F32,
        group: "0",
        ranks: None,
        memory: Memory::Processor { input: &input, output: &mut output },
    })?;
    Ok(output.chunks_exact(4).map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap())).collect())
}

fn all_to_all(
    rank: &dyn Communicator,
    send: &[i64],
    receive: &[i64],
    input: &[u8],
) -> Result<Vec<u8>, String> {
    let mut output = vec![0; usize::try_from(receive.iter().sum::<i64>()).unwrap()];
    rank.exchange(Collective {
        kind: CollectiveKind::AllToAll { send, receive },
        dtype: DType::U8,
        group: "0",
        ranks: Some(send.len()),
        memory: Memory::Processor { input, output: &mut output },
    })?;
    Ok(output)
}

/// This test as another process, which takes part as a rank.
fn start(address: SocketAddr, rank: usize, runs: usize) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_rank_of_a_process", "--nocapture"]);
    command.env("AOTI_TEST_RANK", format!("{address} {rank} {runs}"));
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Does nothing unless another test has started it.
#[test]
fn a_rank_of_a_process() {
    let Ok(given) = std::env::var("AOTI_TEST_RANK") else { return };
    let mut words = given.split(' ');
    let address = words.next().unwrap().parse().unwrap();
    let [rank, runs] = [(); 2].map(|()| words.next().unwrap().parse::<usize>().unwrap());
    let group = SocketGroup::join(address, (rank, 3), &SECRET, LIMIT).unwrap();
    for run in 0..runs {
        match sum(&group, &[run as f32, rank as f32]) {
            Ok(sums) => assert_eq!(sums, [3.0 * run as f32, 3.0]),
            // The others know what they wait for.
            Err(reason) => std::process::exit(if reason == "rank 2 has left the group" { 3 } else { 4 }),
        }
    }
    // It ends without a word, as a process that is killed does.
    std::process::abort();
}

#[test]
fn processes_compute_together_until_one_dies() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut others = [start(address, 1, 200), start(address, 2, 100)];
    let group = SocketGroup::host(&listener, 3, &SECRET, LIMIT).unwrap();
    for run in 0..100 {
        assert_eq!(sum(&group, &[run as f32, 0.0]).unwrap(), [3.0 * run as f32, 3.0]);
    }
    let begun = Instant::now();
    assert_eq!(sum(&group, &[100.0, 0.0]).unwrap_err(), "rank 2 has left the group");
    assert!(begun.elapsed() < LIMIT / 2, "nobody waits for a process that is gone");
    let [other, dead] = others.each_mut().map(|other| other.wait().unwrap());
    assert_eq!((other.code(), dead.code()), (Some(3), None));
}

#[test]
fn ranks_that_do_not_come_are_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let limit = Duration::from_millis(300);
    // Somebody who does not know the secret is no rank.
    let stranger =
        std::thread::spawn(move || SocketGroup::join(address, (1, 2), &[0; 32], limit).map(|_| ()));
    let error = SocketGroup::host(&listener, 2, &SECRET, limit).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "rank 1 did not connect within 300ms");
    assert!(stranger.join().unwrap().is_err());
}

#[test]
fn blocks_of_different_sizes_find_their_ranks() {
    let ranks = ThreadGroup::new(2).into_ranks();
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads = [
            scope.spawn(|| all_to_all(&ranks[0], &[1, 2], &[1, 0], b"abc")),
            scope.spawn(|| all_to_all(&ranks[1], &[0, 3], &[2, 3], b"xyz")),
        ];
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(results, [Ok(b"a".to_vec()), Ok(b"bcxyz".to_vec())]);
}

/// A library of the tests, compiled, and the folder that it is in.
fn compiled(compiler: &str, arguments: &[&str], source: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("library.so");
    let mut command = Command::new(compiler);
    command.args(["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]).args(arguments);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let status = command.arg(&source).arg("-o").arg(&path).status();
    assert!(
        status.expect("the tests need compilers named `cc` and `c++`").success(),
        "{source:?} does not compile"
    );
    (folder, path)
}

/// A stand-in for NCCL, whose GPUs are this processor.
fn stand_in() -> Nccl {
    let (_folder, path) = compiled("cc", &["-std=c11"], "nccl.c");
    // SAFETY: the library has the functions of NCCL.
    unsafe { Nccl::open_file(&path) }.unwrap()
}

fn on_device<const N: usize>(
    rank: &NcclCommunicator,
    kind: CollectiveKind<'_>,
    input: &[f32],
) -> Result<[f32; N], String> {
    let mut output = [0.0f32; N];
    rank.exchange(Collective {
        kind,
        dtype: DType::F32,
        group: "0",
        ranks: Some(2),
        memory: Memory::Device {
            device: Device::Cuda(0),
            input: input.as_ptr().cast(),
            input_count: input.len(),
            output: output.as_mut_ptr().cast(),
            output_count: N,
            stream: std::ptr::null_mut(),
        },
    })?;
    Ok(output)
}

#[test]
fn nccl_is_called_as_it_wants_to_be() {
    let nccl = stand_in();
    let id = nccl.id().unwrap();
    let both = |rank: usize| {
        let own = NcclCommunicator::new(&nccl, id, rank, 2);
        let x = [1.0 + rank as f32, 10.0];
        assert_eq!(on_device(&own, CollectiveKind::AllReduce(Reduction::Sum), &x), Ok([3.0, 20.0]));
        assert_eq!(on_device(&own, CollectiveKind::AllReduce(Reduction::Average), &x), Ok([1.5, 10.0]));
        let largest = CollectiveKind::ReduceScatter(Reduction::Max);
        assert_eq!(on_device(&own, largest, &x), Ok([[2.0], [10.0]][rank]));
        assert_eq!(on_device(&own, CollectiveKind::AllGather, &x[..1]), Ok([1.0, 2.0]));
        assert_eq!(on_device(&own, CollectiveKind::Broadcast { root: 1 }, &x), Ok([2.0, 10.0]));
        let blocks = CollectiveKind::AllToAll { send: &[1, 1], receive: &[1, 1] };
        assert_eq!(on_device(&own, blocks, &x), Ok([[1.0, 2.0], [10.0, 10.0]][rank]));
        assert!(own.is_capturable() && own.poll(Duration::from_secs(1)).is_ok());
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| both(1));
        both(0);
        other.join().unwrap();
    });
}

/// A sum by a rank on a GPU, of as many elements as there are, which may be anywhere.
fn sum_on_device<T>(rank: &NcclCommunicator, dtype: DType, input: &[T], output: &mut [T]) {
    let memory = Memory::Device {
        device: Device::Cuda(0),
        input: input.as_ptr().cast(),
        input_count: input.len(),
        output: output.as_mut_ptr().cast(),
        output_count: output.len(),
        stream: std::ptr::null_mut(),
    };
    let kind = CollectiveKind::AllReduce(Reduction::Sum);
    rank.exchange(Collective { kind, dtype, group: "0", ranks: None, memory }).unwrap();
}

/// The kernel's own text, on a processor: parts of several blocks and turns, ends, and tensors that are not aligned.
#[test]
fn gpus_that_read_each_other_sum_without_nccl() {
    let nccl = stand_in();
    // Pragmas are for clang, and kernels are found as addresses.
    let arguments = ["-std=c++17", "-Wno-unknown-pragmas", "-Wno-cast-function-type"];
    let (_folder, path) = compiled("c++", &arguments, "driver.cpp");
    // SAFETY: the library has the functions of the driver that are used.
    let nccl = unsafe { nccl.with_driver_file(&path) };
    let id = nccl.id().unwrap();
    let both = |rank: usize| {
        let own = NcclCommunicator::new(&nccl, id, rank, 2);
        for (count, skipped) in [(1, 0), (7, 0), (4096, 0), (20_000, 0), (4096, 1), (3, 1), (8192, 0)] {
            let input: Vec<f32> = (0..count + skipped).map(|at| at as f32 + 0.25 * rank as f32).collect();
            let mut output = vec![-1.0; count + skipped];
            sum_on_device(&own, DType::F32, &input[skipped..], &mut output[skipped..]);
            let expected = (skipped..count + skipped).map(|at| 2.0 * at as f32 + 0.25);
            assert!(output[skipped..].iter().copied().eq(expected), "{count} elements of rank {rank}");
            assert!(output[..skipped].iter().all(|before| *before == -1.0));
        }
        // NCCL's stand-in ends the program where it is given other types. 1 + 2, rounded to even, and what is no number.
        let halves =
            [0x3c00, 0x3c01, 0x7e00].map(|bits: u16| bits + 0x400 * u16::from(rank == 1 && bits < 0x7e00));
        let mut sums = [0u16; 3];
        sum_on_device(&own, DType::F16, &halves, &mut sums);
        assert_eq!(sums, [0x4200, 0x4202, 0x7e00]);
        let halves =
            [0x3f80, 0x3f81, 0x7fc0].map(|bits: u16| bits + 0x80 * u16::from(rank == 1 && bits < 0x7fc0));
        sum_on_device(&own, DType::Bf16, &halves, &mut sums);
        assert_eq!(sums, [0x4040, 0x4042, 0x7fc0]);
        // What is too large is NCCL's.
        let (input, mut output) = (vec![1.0f32; 140_000], vec![0.0; 140_000]);
        sum_on_device(&own, DType::F32, &input, &mut output);
        assert!(output.iter().all(|sum| *sum == 2.0));
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| both(1));
        both(0);
        other.join().unwrap();
    });
    // SAFETY: the library has this function.
    let live = unsafe {
        let library = libloading::Library::new(&path).unwrap();
        library.get::<unsafe extern "C" fn() -> i32>(b"live_memory").unwrap()()
    };
    assert_eq!(live, 0, "memory of ranks that are gone");
}

#[test]
fn ranks_on_gpus_do_not_wait_forever() {
    let nccl = stand_in();
    let limit = Duration::from_millis(100);
    let alone = NcclCommunicator::new(&nccl, nccl.id().unwrap(), 0, 2).with_time_limit(limit);
    let kind = CollectiveKind::AllGather;
    let error = on_device::<2>(&alone, kind, &[1.0]).unwrap_err();
    assert_eq!(error, "connecting the ranks took longer than 100ms");
    assert_eq!(on_device::<2>(&alone, kind, &[1.0]).unwrap_err(), error, "it cannot be used again");
    // What a stream waits for is polled.
    let single = NcclCommunicator::new(&nccl, nccl.id().unwrap(), 0, 1).with_time_limit(limit);
    let error = on_device::<1>(&single, kind, &[1.0]).unwrap_err();
    assert_eq!(error, "the program is for 2 ranks, and group `0` has 1");
    assert!(single.poll(limit / 2).is_ok());
    assert_eq!(single.poll(limit * 2).unwrap_err(), "rank 0 waited longer than 100ms for the others");
}
