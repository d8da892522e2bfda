//! Ranks that are processes, connected by sockets. Rank 0 has a thread for each of the others that takes part for it.

use super::reduce::{OwnedKind, Part};
use super::threads::{ThreadGroup, ThreadRank, part_of};
use super::{Collective, Communicator, Reduction};
use crate::DType;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest message about what went wrong.
const LONGEST_MESSAGE: u64 = 1 << 12;
/// The other side is a rank of such a group, of this version.
const GREETING: [u8; 8] = *b"aotirnk1";
const SECRET_BYTES: usize = 32;

/// What a rank proves that it belongs to the group with: anything that others of the machine or the network cannot guess.
type Secret = [u8; SECRET_BYTES];

/// One rank of a group of processes on one machine, or on machines that trust their network: what they send is not encrypted.
///
/// Everything goes through rank 0, so this is for few ranks and small tensors.
/// As in a [`ThreadGroup`], reductions are made in the order of the ranks, and a
/// process that ends breaks the group.
pub struct SocketGroup {
    side: Side,
}

enum Side {
    /// Rank 0, which takes part as a thread does.
    Host(ThreadRank),
    Guest {
        rank: usize,
        ranks: usize,
        limit: Duration,
        stream: Mutex<Option<TcpStream>>,
    },
}

impl SocketGroup {
    /// Rank 0 of a group. Returns when all others have connected to the listener, which has to be within the limit; after that, it is
    /// how long ranks wait for the others in a collective.
    ///
    /// # Errors
    /// What sockets report, and ranks that do not come.
    pub fn host(
        listener: &TcpListener,
        ranks: usize,
        secret: &Secret,
        limit: Duration,
    ) -> io::Result<SocketGroup> {
        let deadline = Instant::now() + limit;
        let mut members = ThreadGroup::new(ranks).with_time_limit(limit).into_ranks();
        let mut guests: Vec<Option<TcpStream>> = (1..ranks).map(|_| None).collect();
        listener.set_nonblocking(true)?;
        while guests.iter().any(Option::is_none) {
            match listener.accept() {
                // Whoever does not belong to the group is not listened to.
                Ok((stream, _)) => {
                    let Some((rank, stream)) = greeted(stream, secret, deadline) else { continue };
                    if let Some(place @ None) = rank.checked_sub(1).and_then(|rank| guests.get_mut(rank)) {
                        *place = Some(stream);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() > deadline {
                        let missing = guests.iter().position(Option::is_none).unwrap_or_default() + 1;
                        let message = format!("rank {missing} did not connect within {limit:?}");
                        return Err(io::Error::new(io::ErrorKind::TimedOut, message));
                    }
                    thread::sleep(Duration::from_millis(2));
                }
                Err(error) => return Err(error),
            }
        }
        for (member, mut stream) in members.drain(1..).zip(guests.into_iter().flatten()) {
            // Every rank knows that all are there.
            stream.write_all(&GREETING)?;
            stream.set_read_timeout(None)?;
            thread::Builder::new()
                .name(format!("rank {}", member.rank()))
                .spawn(move || serve(&member, &stream))?;
        }
        let own = members.pop().ok_or_else(|| io::Error::other("a group has a rank 0"))?;
        Ok(SocketGroup { side: Side::Host(own) })
    }

    /// Another rank of a group, whose rank 0 listens at an address. Tries to connect until the limit is over.
    ///
    /// # Errors
    /// What sockets report, and a group that is not complete in time.
    pub fn join(
        address: SocketAddr,
        (rank, ranks): (usize, usize),
        secret: &Secret,
        limit: Duration,
    ) -> io::Result<SocketGroup> {
        let deadline = Instant::now() + limit;
        let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let mut stream = loop {
            match TcpStream::connect_timeout(&address, left()) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(left()))?;
        let mut greeting = GREETING.to_vec();
        greeting.extend(secret);
        greeting.extend((rank as u64).to_le_bytes());
        stream.write_all(&greeting)?;
        let mut answer = [0; GREETING.len()];
        stream.read_exact(&mut answer)?;
        if answer != GREETING {
            return Err(io::Error::other("the other side is no rank of this version"));
        }
        // The host says who is late; beyond its limit, it is gone itself.
        stream.set_read_timeout(Some(limit + limit / 4 + Duration::from_secs(1)))?;
        Ok(SocketGroup { side: Side::Guest { rank, ranks, limit, stream: Mutex::new(Some(stream)) } })
    }
}

/// The rank at the other end, if it knows the secret.
fn greeted(mut stream: TcpStream, secret: &Secret, deadline: Instant) -> Option<(usize, TcpStream)> {
    let patience = deadline.saturating_duration_since(Instant::now()).min(Duration::from_secs(1));
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(patience.max(Duration::from_millis(1)))).ok()?;
    stream.set_nodelay(true).ok()?;
    let mut greeting = [0; GREETING.len() + SECRET_BYTES + 8];
    stream.read_exact(&mut greeting).ok()?;
    let (head, rest) = greeting.split_at(GREETING.len());
    let (given, rank) = rest.split_at(SECRET_BYTES);
    // In a time that does not tell how much of it is right.
    let differs = given.iter().zip(secret).fold(0, |all, (a, b)| all | (a ^ b));
    let rank = usize::try_from(u64::from_le_bytes(rank.try_into().ok()?)).ok()?;
    (head == GREETING && differs == 0).then_some((rank, stream))
}

/// Takes part for a rank in another process, until that is gone.
fn serve(member: &ThreadRank, mut stream: &TcpStream) {
    while let Ok(Some((part, output_bytes))) = receive(&mut stream) {
        let mut output = vec![0; output_bytes];
        let done = member.take_part(part, &mut output);
        let answered = match &done {
            Ok(()) => answer(&mut stream, 0, &output),
            Err(reason) => answer(&mut stream, 1, clipped(reason)),
        };
        if done.is_err() || answered.is_err() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

fn answer(stream: &mut impl Write, status: u64, bytes: &[u8]) -> io::Result<()> {
    let head = [status, bytes.len() as u64].map(u64::to_le_bytes).concat();
    stream.write_all(&head)?;
    stream.write_all(bytes)
}

fn clipped(text: &str) -> &[u8] {
    &text.as_bytes()[..text.len().min(LONGEST_MESSAGE as usize)]
}

/// Numbers of a request: kind, reduction or root, element type, and lengths of the group's name, of both lists, of the input and
/// of the result; behind them what has these lengths.
const NUMBERS: usize = 8;

fn send(stream: &mut impl Write, part: &Part, output_bytes: usize) -> io::Result<()> {
    let none: &[i64] = &[];
    let (kind, parameter, [send, receive]) = match &part.kind {
        OwnedKind::AllReduce(reduction) => (0, *reduction as usize, [none, none]),
        OwnedKind::AllGather => (1, 0, [none, none]),
        OwnedKind::ReduceScatter(reduction) => (2, *reduction as usize, [none, none]),
        OwnedKind::AllToAll { send, receive } => (3, 0, [send.as_slice(), receive]),
        OwnedKind::Broadcast { root } => (4, *root, [none, none]),
    };
    let lengths = [part.group.len(), send.len(), receive.len(), part.input.len(), output_bytes];
    let numbers = [kind, parameter, part.dtype.code() as usize].into_iter().chain(lengths);
    let mut head: Vec<u8> = numbers.flat_map(|number| (number as u64).to_le_bytes()).collect();
    head.extend(part.group.as_bytes());
    head.extend(send.iter().chain(receive).flat_map(|size| size.to_le_bytes()));
    stream.write_all(&head)?;
    stream.write_all(&part.input)
}

/// The next request, or nothing where the other side has ended.
fn receive(stream: &mut impl Read) -> io::Result<Option<(Part, usize)>> {
    let invalid = || io::Error::other("a message that no rank sends");
    let mut head = [0; NUMBERS * 8];
    if let Err(error) = stream.read_exact(&mut head) {
        return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
    }
    let mut numbers = [0usize; NUMBERS];
    for (number, bytes) in numbers.iter_mut().zip(head.chunks_exact(8)) {
        let bytes = bytes.try_into().map_err(|_| invalid())?;
        *number = usize::try_from(u64::from_le_bytes(bytes)).map_err(|_| invalid())?;
    }
    let [kind, parameter, dtype, group, send, receive, input, output] = numbers;
    let group = String::from_utf8(bytes(stream, group)?).map_err(|_| invalid())?;
    let mut list = |count: usize| -> io::Result<Vec<i64>> {
        let all = bytes(stream, count.checked_mul(8).ok_or_else(invalid)?)?;
        let size = |bytes: &[u8]| bytes.try_into().map(i64::from_le_bytes).map_err(|_| invalid());
        all.chunks_exact(8).map(size).collect()
    };
    let (send, receive) = (list(send)?, list(receive)?);
    let reduction = || Reduction::ALL.get(parameter).copied().ok_or_else(invalid);
    let kind = match kind {
        0 => OwnedKind::AllReduce(reduction()?),
        1 => OwnedKind::AllGather,
        2 => OwnedKind::ReduceScatter(reduction()?),
        3 => OwnedKind::AllToAll { send, receive },
        4 => OwnedKind::Broadcast { root: parameter },
        _ => return Err(invalid()),
    };
    let dtype = i32::try_from(dtype).ok().and_then(DType::from_code).ok_or_else(invalid)?;
    Ok(Some((Part { kind, dtype, group, input: bytes(stream, input)? }, output)))
}

/// So many bytes. Memory is asked for as they come, whatever was announced.
fn bytes(stream: &mut impl Read, count: usize) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    let found = stream.take(count as u64).read_to_end(&mut all)?;
    if found == count { Ok(all) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn exchange_by(stream: &mut TcpStream, part: &Part, output: &mut [u8]) -> io::Result<Result<(), String>> {
    send(stream, part, output.len())?;
    let mut head = [0; 16];
    stream.read_exact(&mut head)?;
    let (status, length) = head.split_at(8);
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).map_err(io::Error::other);
    let length = number(length)?;
    if number(status)? != 0 {
        let mut message = Vec::new();
        stream.take(length.min(LONGEST_MESSAGE)).read_to_end(&mut message)?;
        return Ok(Err(String::from_utf8_lossy(&message).into_owned()));
    }
    if length != output.len() as u64 {
        return Err(io::Error::other("a result of another length"));
    }
    stream.read_exact(output)?;
    Ok(Ok(()))
}

impl Communicator for SocketGroup {
    fn exchange(&self, collective: Collective<'_>) -> Result<(), String> {
        let (rank, ranks, limit, stream) = match &self.side {
            Side::Host(own) => return own.exchange(collective),
            Side::Guest { rank, ranks, limit, stream } => (rank, *ranks, limit, stream),
        };
        let mut place = stream.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = place.as_mut().ok_or_else(|| format!("rank {rank} has left the group"))?;
        let name = collective.kind.name();
        let done = part_of(collective, ranks).and_then(|(part, output)| {
            exchange_by(stream, &part, output).unwrap_or_else(|error| {
                let late = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
                Err(if late {
                    format!("rank 0 did not answer in {name} within {limit:?}")
                } else {
                    format!("the connection to rank 0 is lost in {name}: {error}")
                })
            })
        });
        if done.is_err() {
            *place = None;
        }
        done
    }

    fn failed(&self, reason: &str) {
        match &self.side {
            Side::Host(own) => own.failed(reason),
            // The host notices.
            Side::Guest { stream, .. } => *stream.lock().unwrap_or_else(PoisonError::into_inner) = None,
        }
    }
}

impl fmt::Debug for SocketGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = match &self.side {
            Side::Host(_) => 0,
            Side::Guest { rank, .. } => *rank,
        };
        f.debug_struct("SocketGroup").field("rank", &rank).finish_non_exhaustive()
    }
}
