// Recurrent layers as one kernel ("persistent": Diamos, Sengupta, Catanzaro, Chrzanowski, Coates, Elsen, Engel, Hannun & Satheesh
// 2016). Each block of a cluster has some of the hidden units; their weights are read once and stay in registers, and in shared
// memory what is beyond. After each step the blocks write what their units became to each other's shared memory. A cluster has one
// direction and a few rows of the batch.
//
// Where blocks are no cluster, the first has all units, and reads the weights again at each step.
#pragma once

#include "cluster.h"
#include "operands.h"

AOTI_NAMESPACE_BEGIN

// What happens at a step.
enum class Cell { kLstm, kGru, kTanh, kRelu };

// Threads of a block.
constexpr int kRecurrentThreads = 256;

namespace detail {

// The sums over all lanes of N numbers each, N a power of two: a lane has that of number `lane * N / 32`.
template <int N, int Distance = 16> AOTI_INLINE f32 scattered_sums(f32 (&own)[N]) {
  if constexpr (Distance == 0) {
    return own[0];
  } else if constexpr (N == 1) {
    f32 all[1] = {own[0] + shuffle_xor(own[0], Distance)};
    return scattered_sums<1, Distance / 2>(all);
  } else {
    const bool is_upper = thread_index() & Distance;
    f32 half[N / 2];
    AOTI_UNROLL_TIMES(16)
    for (int i = 0; i < N / 2; ++i) {
      const f32 lower = own[i], upper = own[N / 2 + i];
      half[i] = (is_upper ? upper : lower) + shuffle_xor(is_upper ? lower : upper, Distance);
    }
    return scattered_sums<N / 2, Distance / 2>(half);
  }
}

// A number as an element is stored.
template <class T> AOTI_INLINE T element_of(f32 x) {
  if constexpr (is_same<T, f32>) {
    return x;
  } else {
    T own;
    from_f32(own, x);
    return own;
  }
}
AOTI_INLINE f32 sigmoid_of(f32 x) { return sigmoid(Vec<f32, 1>{x}).v; }
AOTI_INLINE f32 tanh_of(f32 x) { return tanh(Vec<f32, 1>{x}).v; }

constexpr int power_of_two_from(int n) { return n <= 1 ? 1 : 2 * power_of_two_from((n + 1) / 2); }
constexpr int pieces(int n, int size) { return (n + size - 1) / size; }

// How the hidden units are shared out.
template <Cell Kind, int Units, int Blocks, int Rows> struct RecurrentPartition {
  static constexpr int kWarps = kRecurrentThreads / 32;
  // Gates, and the same as a power of two.
  static constexpr int kGates = Kind == Cell::kLstm ? 4 : Kind == Cell::kGru ? 3 : 1, kPlaces = kGates == 3 ? 4 : kGates;
  // Units of a block, and of a warp: so many at a time, in so many groups.
  static constexpr int kOfBlock = pieces(Units, Blocks), kLeast = pieces(kOfBlock, kWarps);
  static constexpr int kMost = 32 / (kPlaces * Rows), kWanted = power_of_two_from(kLeast);
  static constexpr int kAtOnce = kMost < kWanted ? kMost : kWanted, kGroups = pieces(kLeast, kAtOnce);
  static constexpr int kOfWarp = kGroups * kAtOnce;
  // Columns of the weights: a lane has neighbouring ones of each chunk.
  static constexpr int kWidth = Units <= 32 ? 1 : Units <= 64 ? 2 : 4, kChunks = pieces(Units, 32 * kWidth);
  static constexpr int kColumns = kChunks * 32 * kWidth;
  // Sums of a lane at a time, and lanes that have the same sum in the end; and those that have the same unit and row.
  static constexpr int kSums = kAtOnce * Rows * kPlaces, kSameSum = 32 / kSums, kSameUnit = 32 / (kAtOnce * Rows);
  // Rows of the weights that a warp has.
  static constexpr int kWeights = kOfWarp * kGates;
  static_assert(kMost >= 1, "a warp has the sums of all gates of a unit");
};

// What a layer is given: `steps` and `batch`; a weight and a bias for each direction; the bias and the states may be missing.
template <class T> struct RecurrentLayer {
  i64 steps, batch;
  const T *gates, *weight, *bias, *hidden, *memory;
  T *all, *last, *last_memory;
};

// The units of one block, in one direction. `Held` chunks of the weights are in registers, the others in `shared`.
template <class T, Cell Kind, int Units, int Blocks, int Rows, int Held, bool BatchFirst> struct RecurrentBlock {
  using Partition = RecurrentPartition<Kind, Units, Blocks, Rows>;
  using C = Cluster<Blocks>;
  // Whether blocks are a cluster; else this one has the units of all.
  static constexpr bool kIsCluster = C::kParts == Blocks;
  static constexpr int kParts = kIsCluster ? 1 : Blocks, kGroups = Partition::kGroups, kGates = Partition::kGates;
  static constexpr int kHeld = kIsCluster ? Held : 0, kWidth = Partition::kWidth, kOnes = Partition::kAtOnce * kGates;

  // Weights of neighbouring columns.
  struct alignas(kWidth * sizeof(T)) Neighbours {
    T elements[kWidth];
  };
  struct alignas(kWidth * 4) States {
    f32 elements[kWidth];
  };

  const RecurrentLayer<T> &layer;
  int directions, direction, lane, warp;
  bool is_reversed;
  Neighbours *shared;
  f32 held[kGroups * kOnes * (kHeld > 0 ? kHeld : 1) * kWidth];

  AOTI_INLINE RecurrentBlock(const RecurrentLayer<T> &layer, int directions, int direction, bool is_reversed, char *shared)
      : layer(layer), directions(directions), direction(direction), lane(thread_index() % 32), warp(thread_index() / 32),
        is_reversed(is_reversed), shared((Neighbours *)shared) {}

  // The unit that is number `at` of this warp, of the units of a block.
  AOTI_INLINE int unit_of(int block, int at) const {
    const int own = warp * Partition::kOfWarp + at, unit = block * Partition::kOfBlock + own;
    return own < Partition::kOfBlock && unit < Units ? unit : -1;
  }
  // Neighbouring weights of a gate of a unit.
  AOTI_INLINE Neighbours weights_at(int block, int row, int chunk) const {
    const int unit = unit_of(block, row / kGates), column = column_of(chunk, 0);
    const T *const from = layer.weight + (i64(direction * kGates + row % kGates) * Units + unit) * Units + column;
    if (Units % kWidth == 0 && unit >= 0 && column + kWidth <= Units) return *(const Neighbours *)from;
    Neighbours own;
    AOTI_UNROLL_TIMES(4)
    for (int e = 0; e < kWidth; ++e) own.elements[e] = unit >= 0 && column + e < Units ? from[e] : T{};
    return own;
  }
  AOTI_INLINE int column_of(int chunk, int e) const { return (chunk * 32 + lane) * kWidth + e; }
  AOTI_INLINE Neighbours *shared_at(int row, int chunk) const {
    return shared + (row * (Partition::kChunks - kHeld) + chunk - kHeld) * kRecurrentThreads + thread_index();
  }

  AOTI_INLINE void hold_weights() {
    if constexpr (kIsCluster) {
      AOTI_UNROLL_TIMES(256)
      for (int row = 0; row < kGroups * kOnes; ++row) {
        AOTI_UNROLL_TIMES(32)
        for (int chunk = 0; chunk < Partition::kChunks; ++chunk) {
          const Neighbours own = weights_at(C::rank(), row, chunk);
          if (chunk < kHeld) {
            AOTI_UNROLL_TIMES(4)
            for (int e = 0; e < kWidth; ++e) held[(row * kHeld + chunk) * kWidth + e] = widen<f32>(own.elements[e]);
          } else {
            *shared_at(row, chunk) = own;
          }
        }
      }
    }
  }

  // Adds what a chunk of the state gives to the sums of a group.
  template <int Chunk> AOTI_INLINE void add_held(int group, const f32 (&x)[Rows][kWidth], f32 (&sums)[Partition::kSums]) const {
    AOTI_UNROLL_TIMES(32)
    for (int own = 0; own < kOnes; ++own) {
      AOTI_UNROLL_TIMES(8)
      for (int r = 0; r < Rows; ++r) {
        f32 &sum = sums[(own / kGates * Rows + r) * Partition::kPlaces + own % kGates];
        AOTI_UNROLL_TIMES(4)
        for (int e = 0; e < kWidth; ++e)
          sum = scalar_fma(held[((group * kOnes + own) * kHeld + Chunk) * kWidth + e], x[r][e], sum);
      }
    }
  }
  AOTI_INLINE void add_read(int block, int group, int chunk, const f32 (&x)[Rows][kWidth], f32 (&sums)[Partition::kSums]) const {
    AOTI_UNROLL_TIMES(32)
    for (int own = 0; own < kOnes; ++own) {
      const int row = group * kOnes + own;
      const Neighbours weights = kIsCluster ? *shared_at(row, chunk) : weights_at(block, row, chunk);
      AOTI_UNROLL_TIMES(8)
      for (int r = 0; r < Rows; ++r) {
        f32 &sum = sums[(own / kGates * Rows + r) * Partition::kPlaces + own % kGates];
        AOTI_UNROLL_TIMES(4)
        for (int e = 0; e < kWidth; ++e) sum = scalar_fma(widen<f32>(weights.elements[e]), x[r][e], sum);
      }
    }
  }
  template <int Chunk> AOTI_INLINE void add_all_held(int group, const f32 *state, f32 (&sums)[Partition::kSums]) const {
    if constexpr (Chunk < kHeld) {
      f32 x[Rows][kWidth];
      read_state(state, Chunk, x);
      add_held<Chunk>(group, x, sums);
      add_all_held<Chunk + 1>(group, state, sums);
    }
  }
  AOTI_INLINE void read_state(const f32 *state, int chunk, f32 (&x)[Rows][kWidth]) const {
    AOTI_UNROLL_TIMES(8)
    for (int r = 0; r < Rows; ++r) {
      const auto own = *(const States *)(state + r * Partition::kColumns + column_of(chunk, 0));
      AOTI_UNROLL_TIMES(4)
      for (int e = 0; e < kWidth; ++e) x[r][e] = own.elements[e];
    }
  }

  // The sum of number `lane / kSameSum` of a group: a gate of a row of a unit.
  AOTI_INLINE f32 sum_of(int block, int group, const f32 *state) const {
    f32 sums[Partition::kSums];
    AOTI_UNROLL_TIMES(32)
    for (int i = 0; i < Partition::kSums; ++i) sums[i] = 0.0f;
    add_all_held<0>(group, state, sums);
    AOTI_UNROLL_TIMES(2)
    for (int chunk = kHeld; chunk < Partition::kChunks; ++chunk) {
      f32 x[Rows][kWidth];
      read_state(state, chunk, x);
      add_read(block, group, chunk, x, sums);
    }
    return scattered_sums(sums);
  }

  // Where a step of a row is, of the first axes of the sequence.
  AOTI_INLINE i64 place_of(i64 step, i64 row) const {
    const i64 at = is_reversed ? layer.steps - 1 - step : step;
    return BatchFirst ? row * layer.steps + at : at * layer.batch + row;
  }

  // What a gate is before gates are joined, from the input's part and the state's: of a candidate that is reset, the latter alone.
  static AOTI_INLINE f32 gate_of(int gate, f32 x, f32 h) {
    if constexpr (Kind == Cell::kLstm)
      return gate == 2 ? tanh_of(x + h) : sigmoid_of(x + h);
    else if constexpr (Kind == Cell::kGru)
      return gate == 2 ? h : sigmoid_of(x + h);
    else if constexpr (Kind == Cell::kTanh)
      return tanh_of(x + h);
    else
      return x + h < 0.0f ? 0.0f : x + h;
  }
  // The next hidden state of a unit, and of its memory, where gate `i` is in lane `first + i * kSameSum`.
  static AOTI_INLINE f32 joined(int first, f32 gate, f32 x, f32 old, f32 &memory) {
    const auto of = [&](f32 own, int number) { return shuffle(own, first + number * Partition::kSameSum); };
    if constexpr (Kind == Cell::kLstm) {
      const f32 input = of(gate, 0), forget = of(gate, 1), candidate = of(gate, 2), output = of(gate, 3);
      memory = rounded(scalar_fma(forget, memory, input * candidate));
      return rounded(output * tanh_of(memory));
    } else if constexpr (Kind == Cell::kGru) {
      const f32 reset = of(gate, 0), update = of(gate, 1), recurrent = of(gate, 2), own = of(x, 2);
      const f32 candidate = tanh_of(scalar_fma(reset, recurrent, own));
      return rounded(scalar_fma(old - candidate, update, candidate));
    } else {
      return rounded(gate);
    }
  }
  static AOTI_INLINE f32 rounded(f32 x) { return widen<f32>(element_of<T>(x)); }

  // Some rows of the batch, from the first step to the last.
  AOTI_INLINE void run(i64 first, f32 (*states)[Rows * Partition::kColumns]) const {
    constexpr int all = kParts * kGroups;
    const int pair = lane / Partition::kSameUnit, r = pair % Rows, place = lane % Partition::kSameUnit;
    const int gate = lane / Partition::kSameSum % Partition::kPlaces, first_gate = pair * Partition::kSameUnit;
    const i64 row = first + r;
    const bool is_row = row < layer.batch, is_gate = gate < kGates;
    const auto block_of = [&](int i) { return kIsCluster ? C::rank() : i / kGroups; };
    const auto unit_at = [&](int i) { return unit_of(block_of(i), i % kGroups * Partition::kAtOnce + pair / Rows); };
    // What the batch has of one direction begins here, and the gates of a step; from step to step it is so far.
    const i64 own_row = (i64(direction) * layer.batch + row) * Units, width = i64(directions) * Units;
    const i64 place0 = place_of(0, row), step_places = place_of(1, row) - place0;
    const T *const gates = layer.gates + (place0 * width + direction * Units) * kGates + gate * Units;
    f32 memory[all], bias[all], given[all];
    AOTI_UNROLL_TIMES(32)
    for (int i = 0; i < all; ++i) {
      const int unit = unit_at(i);
      const bool is_there = unit >= 0 && is_row && is_gate;
      memory[i] = layer.memory && unit >= 0 && is_row ? widen<f32>(layer.memory[own_row + unit]) : 0.0f;
      bias[i] = layer.bias && unit >= 0 && is_gate ? widen<f32>(layer.bias[(direction * kGates + gate) * Units + unit]) : 0.0f;
      given[i] = is_there && layer.steps > 0 ? widen<f32>(gates[unit]) : 0.0f;
    }
    for (int i = thread_index(); i < 2 * Rows * Partition::kColumns; i += kRecurrentThreads) {
      const int column = i % Partition::kColumns;
      const i64 own = first + i / Partition::kColumns;
      const bool is_there = i < Rows * Partition::kColumns && layer.hidden && own < layer.batch && column < Units;
      states[0][i] = is_there ? widen<f32>(layer.hidden[(i64(direction) * layer.batch + own) * Units + column]) : 0.0f;
    }
    C::meet();
    for (i64 step = 0; step < layer.steps; ++step) {
      const f32 *state = states[step % 2];
      f32 *next = states[(step + 1) % 2];
      AOTI_UNROLL_TIMES(32)
      for (int i = 0; i < all; ++i) {
        const int unit = unit_at(i);
        const f32 x = given[i];
        // What the next step reads is on its way during this one.
        if (unit >= 0 && is_row && is_gate && step + 1 < layer.steps)
          given[i] = widen<f32>(gates[(step + 1) * step_places * width * kGates + unit]);
        const f32 own = gate_of(gate, x, sum_of(block_of(i), i % kGroups, state) + bias[i]);
        const f32 old = unit >= 0 ? state[r * Partition::kColumns + unit] : 0.0f;
        const f32 hidden = joined(first_gate, own, x, old, memory[i]);
        if (unit < 0 || !is_row) continue;
        AOTI_UNROLL_TIMES(16)
        for (int block = place; block < C::kParts; block += Partition::kSameUnit)
          C::put(block, next + r * Partition::kColumns + unit, hidden);
        if (place == 0) layer.all[(place0 + step * step_places) * width + direction * Units + unit] = element_of<T>(hidden);
      }
      C::meet();
    }
    const f32 *state = states[layer.steps % 2];
    AOTI_UNROLL_TIMES(32)
    for (int i = 0; i < all; ++i) {
      const int unit = unit_at(i);
      if (unit < 0 || !is_row || place != 0) continue;
      layer.last[own_row + unit] = element_of<T>(state[r * Partition::kColumns + unit]);
      if constexpr (Kind == Cell::kLstm) layer.last_memory[own_row + unit] = element_of<T>(memory[i]);
    }
    // The states of the next rows are written where these have been read.
    C::meet();
  }
};

} // namespace detail

// A layer of `Units` hidden units, by clusters of so many blocks that have so many rows of the batch each.
template <class T, Cell Kind, int Units, bool BatchFirst, bool IsReversed, int Directions, int Blocks, int Rows, int Held>
AOTI_INLINE void recurrent_layer(i64 steps, i64 batch, const T *gates, const T *weight, const T *bias, const T *hidden,
                                 const T *memory, T *all, T *last, T *last_memory) {
  using Block = detail::RecurrentBlock<T, Kind, Units, Blocks, Rows, Held, BatchFirst>;
  using C = Cluster<Blocks>;
  if (C::is_idle()) return;
  alignas(16) AOTI_SHARED f32 states[2][Rows * Block::Partition::kColumns];
  AOTI_DYNAMIC_SHARED(weights);
  const int cluster = block_index() / Blocks, clusters = block_count() / Blocks;
  // Each cluster has one direction.
  const int direction = cluster % Directions;
  const bool is_reversed = Directions == 1 ? IsReversed : direction == 1;
  const detail::RecurrentLayer<T> layer{steps, batch, gates, weight, bias, hidden, memory, all, last, last_memory};
  Block block(layer, Directions, direction, is_reversed, weights);
  block.hold_weights();
  for (i64 first = i64(cluster / Directions) * Rows; first < batch; first += i64(clusters / Directions) * Rows)
    block.run(first, states);
}

AOTI_NAMESPACE_END
