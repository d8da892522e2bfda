// Sums small tensors over the GPUs of a group that read each other's memory: one exchange, where NCCL takes several steps.
// Each block puts its part of the tensor where the other ranks read it, waits until they have theirs there, and adds the parts of
// all in the order of the ranks: the bits are the same on all ranks and in all runs.
// A rank's memory holds, for each block, its part twice, a flag from each rank, and its turn: how often it has run. A block that
// begins its turn t + 2 and writes over the part of t has seen that the others began t + 1, so they had read it.
// Written for clang without CUDA's headers; `cargo xtask regenerate` compiles it to `all_reduce.ptx`. A test defines
// AOTI_STAND_IN and what is below it, and runs it on a processor.

typedef unsigned int u32;
typedef unsigned long long u64;

#ifndef AOTI_STAND_IN
#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE static inline __attribute__((device, always_inline))

DEVICE u32 thread() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE u32 block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE void barrier() { __syncthreads(); }
DEVICE void signal(u32 *flag, u32 value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
DEVICE u32 observe(const u32 *flag) {
  u32 value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}
#endif

// Most ranks of a group.
constexpr u32 kRanks = 8;

// How the ranks find each other's memory. Written by the host.
struct Group {
  char *memory[kRanks];
  const u32 *ended; // not 0 once nobody is to wait any more
  u32 rank, ranks, parts, part_bytes;
};

// Flags of a rank's memory, behind its parts; its turns are behind them.
DEVICE u32 *flags_of(const Group &group, u32 rank) { return (u32 *)(group.memory[rank] + u64(2) * group.parts * group.part_bytes); }
// Where rank `from` tells `rank` of its part.
DEVICE u32 *flag(const Group &group, u32 rank, u32 from) { return flags_of(group, rank) + block() * kRanks + from; }
DEVICE u32 *turn_of(const Group &group) { return flags_of(group, group.rank) + group.parts * kRanks + block(); }

// Tells the other ranks that this part is there, and waits for theirs: a thread for each rank.
DEVICE void meet(const Group &group, u32 turn) {
  barrier();
  const u32 other = thread();
  if (other < group.ranks && other != group.rank) {
    signal(flag(group, other, group.rank), turn);
    const u32 *own = flag(group, group.rank, other);
    // Whether all is over stands in memory of the host, which is far.
    for (u32 tries = 1; int(observe(own) - turn) < 0; ++tries)
      if (tries % 4096 == 0 && observe(group.ended)) break;
  }
  barrier();
}

struct F32 {
  typedef u32 Bits;
  DEVICE float widen(Bits bits) { return __builtin_bit_cast(float, bits); }
  DEVICE Bits round(float value) { return __builtin_bit_cast(Bits, value); }
};

struct Bf16 {
  typedef unsigned short Bits;
  DEVICE float widen(Bits bits) { return __builtin_bit_cast(float, u32(bits) << 16); }
  // To the nearest, ties to even. What is no number stays none.
  DEVICE Bits round(float value) {
    const u32 bits = __builtin_bit_cast(u32, value);
    return Bits(value != value ? 0x7fc0u : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
  }
};

struct F16 {
  typedef unsigned short Bits;
  DEVICE float widen(Bits bits) { return float(__builtin_bit_cast(_Float16, bits)); }
  DEVICE Bits round(float value) { return __builtin_bit_cast(Bits, _Float16(value)); }
};

// The elements that a thread moves at once: as many bytes as one instruction has.
template <class Type> struct alignas(16) Lanes {
  static constexpr u32 kCount = 16 / sizeof(typename Type::Bits);
  typename Type::Bits bits[kCount];
};

// From where a tensor of the program is, which may be anywhere, and may end within.
template <class Type> DEVICE Lanes<Type> read(const typename Type::Bits *from, u32 count) {
  if (count == Lanes<Type>::kCount && u64(from) % sizeof(Lanes<Type>) == 0) return *(const Lanes<Type> *)from;
  Lanes<Type> lanes = {};
  for (u32 lane = 0; lane < Lanes<Type>::kCount; ++lane)
    if (lane < count) lanes.bits[lane] = from[lane];
  return lanes;
}

template <class Type> DEVICE void write(typename Type::Bits *to, const Lanes<Type> &lanes, u32 count) {
  if (count == Lanes<Type>::kCount && u64(to) % sizeof(Lanes<Type>) == 0) {
    *(Lanes<Type> *)to = lanes;
    return;
  }
  for (u32 lane = 0; lane < Lanes<Type>::kCount; ++lane)
    if (lane < count) to[lane] = lanes.bits[lane];
}

template <class Type>
DEVICE void sum(const Group &group, const typename Type::Bits *input, typename Type::Bits *output, u64 count) {
  typedef Lanes<Type> Own;
  const u32 bytes = sizeof(typename Type::Bits), most = group.part_bytes / bytes;
  const u64 begin = u64(block()) * most, last = begin + most < count ? begin + most : count;
  u32 *turns = turn_of(group);
  const u32 turn = *turns + 1;
  const u64 part = (u64(block()) * 2 + turn % 2) * group.part_bytes;
  const auto left = [&](u64 at) { return u32(last - at < Own::kCount ? last - at : Own::kCount); };
#pragma nounroll
  for (u64 at = begin + thread() * Own::kCount; at < last; at += threads() * Own::kCount)
    *(Own *)(group.memory[group.rank] + part + (at - begin) * bytes) = read<Type>(input + at, left(at));
  meet(group, turn);
#pragma nounroll
  for (u64 at = begin + thread() * Own::kCount; at < last; at += threads() * Own::kCount) {
    float sums[Own::kCount];
#pragma nounroll
    for (u32 rank = 0; rank < group.ranks; ++rank) {
      const Own given = *(const Own *)(group.memory[rank] + part + (at - begin) * bytes);
      for (u32 lane = 0; lane < Own::kCount; ++lane) {
        const float value = Type::widen(given.bits[lane]);
        sums[lane] = rank ? sums[lane] + value : value;
      }
    }
    Own made;
    for (u32 lane = 0; lane < Own::kCount; ++lane) made.bits[lane] = Type::round(sums[lane]);
    write<Type>(output + at, made, left(at));
  }
  if (thread() == 0) *turns = turn;
}

KERNEL sum_f32(Group group, const u32 *input, u32 *output, u64 count) { sum<F32>(group, input, output, count); }
KERNEL sum_f16(Group group, const unsigned short *input, unsigned short *output, u64 count) {
  sum<F16>(group, input, output, count);
}
KERNEL sum_bf16(Group group, const unsigned short *input, unsigned short *output, u64 count) {
  sum<Bf16>(group, input, output, count);
}
