// The machine behind the emulated drivers: devices with contexts, memory, streams and events. What is put into a stream is done as
// late as possible, when somebody waits for it: what relies on work that nothing orders before it sees old values. Memory of a
// device can only be touched by what runs there.
//
// Whatever goes to a wrong context, stream or address ends the program.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <vector>

namespace machine {

constexpr int kDevices = 2;
constexpr size_t kPage = 4096;

[[noreturn]] inline void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "emulated driver: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  va_end(arguments);
  abort();
}

struct Context;
// What belongs to a context, and to no other.
struct Owned {
  Context *context;
};
struct Work {
  uint64_t number;
  std::function<void()> run;
};
struct Capture;
struct Stream : Owned {
  bool blocking; // ordered with the default stream of its context
  std::deque<Work> queue;
  Capture *capture = nullptr;
};
struct Event : Owned {
  Stream *stream = nullptr; // that it was recorded on last
  uint64_t number = 0;
  bool done = false;
  double time = 0;
};
struct Piece : Owned {
  char *mapped;
  size_t room; // without the page behind it, which nobody touches
  uint64_t at;
  size_t bytes;
  bool on_host, freed;
};
struct Context {
  int device, retained = 0;
  bool primary = false;
  Stream standard{{this}, true};
  std::map<void *, const char *> objects; // streams, events, modules and graphs, and what they are. Addresses do not come again
  int pieces = 0;
};

inline std::recursive_mutex &lock() {
  static std::recursive_mutex own;
  return own;
}
// Every call of a driver holds it.
struct Call {
  std::lock_guard<std::recursive_mutex> held{lock()};
};

inline thread_local std::vector<Context *> current;
inline Context primaries[kDevices];
inline std::set<Context *> contexts;
inline std::map<uint64_t, Piece> pieces; // also those that were freed: addresses do not come again
inline uint64_t numbered = 0;
inline double clock_ms = 0;

inline Context &here() {
  if (current.empty()) die("no context is current");
  if (!contexts.count(current.back())) die("the current context is gone");
  return *current.back();
}
template <class T> T &own(T *object, const char *what) {
  const auto is_in = [&](const Context &context) {
    const auto found = context.objects.find((void *)object);
    return found != context.objects.end() && !strcmp(found->second, what);
  };
  if (is_in(here())) return *object;
  for (Context *other : contexts)
    if (is_in(*other)) die("%s of another context, of device %d", what, other->device);
  die("%s that does not exist", what);
}
inline Stream &stream_of(Stream *stream) { return stream ? own(stream, "a stream") : here().standard; }

// --- memory ---

inline Piece *piece_at(uint64_t address) {
  auto next = pieces.upper_bound(address);
  if (next == pieces.begin()) return nullptr;
  Piece &piece = std::prev(next)->second;
  return address < uint64_t(piece.mapped) + piece.room + kPage ? &piece : nullptr;
}
inline void on_fault(int, siginfo_t *info, void *) {
  const Piece *piece = piece_at(uint64_t(info->si_addr));
  if (!piece) signal(SIGSEGV, SIG_DFL), raise(SIGSEGV);
  const char *what = piece->freed                                           ? "that was freed"
                     : uint64_t(info->si_addr) >= piece->at + piece->bytes ? "behind its end"
                                                                            : "by what does not run there";
  die("memory of device %d is touched %s", piece->context->device, what);
}
inline uint64_t allocate(Context &context, size_t bytes, bool on_host) {
  // The end of the memory is near the page that nobody touches.
  const size_t wide = (bytes + 255) / 256 * 256, room = (wide + kPage - 1) / kPage * kPage + (wide ? 0 : kPage);
  char *mapped = (char *)mmap(nullptr, room + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return 0;
  mprotect(mapped, room, PROT_READ | PROT_WRITE);
  memset(mapped, 0xff, room);
  if (!on_host) mprotect(mapped, room, PROT_NONE);
  const uint64_t at = uint64_t(mapped) + room - wide;
  pieces[uint64_t(mapped)] = {{&context}, mapped, room, at, bytes, on_host, false};
  ++context.pieces;
  return at;
}
inline void free_memory(uint64_t address, bool on_host) {
  Piece *piece = piece_at(address);
  if (!piece || piece->at != address || piece->on_host != on_host) die("memory that was not allocated is freed");
  if (piece->freed) die("memory is freed twice");
  if (piece->context != &here()) die("memory of another context is freed");
  piece->freed = true, --piece->context->pieces;
  madvise(piece->mapped, piece->room, MADV_DONTNEED);
  mprotect(piece->mapped, piece->room, PROT_NONE);
}
// Memory that the work of a context touches: `bytes` from an address on.
inline void check_range(const Context &context, uint64_t address, size_t bytes, const char *what) {
  const Piece *piece = piece_at(address);
  if (!piece || piece->on_host) die("%s: %p is no memory of a device", what, (void *)address);
  if (piece->freed) die("%s: the memory was freed", what);
  if (piece->context != &context) die("%s: the memory is of another context, of device %d", what, piece->context->device);
  if (address < piece->at || address + bytes > piece->at + piece->bytes) die("%s: beyond what was allocated", what);
}
inline void check_host(const void *address, const char *what) {
  const Piece *piece = piece_at(uint64_t(address));
  if (piece && !piece->on_host) die("%s: memory of a device as memory of the host", what);
}
// The memory of a context can be touched while this lives.
struct Opened {
  const Context &context;
  explicit Opened(const Context &context) : context(context) { protect(PROT_READ | PROT_WRITE); }
  ~Opened() { protect(PROT_NONE); }
  void protect(int how) {
    for (auto &[at, piece] : pieces)
      if (piece.context == &context && !piece.on_host && !piece.freed) mprotect(piece.mapped, piece.room, how);
  }
};

// --- streams ---

// Does what lies in a stream up to a number. The default stream waits for others of its context, and they wait for it, unless
// they were made not to.
inline void complete(Stream &stream, uint64_t number) {
  Context &context = *stream.context;
  while (!stream.queue.empty() && stream.queue.front().number <= number) {
    const uint64_t before = stream.queue.front().number - 1;
    if (&stream == &context.standard) {
      for (const auto &[object, what] : std::map(context.objects))
        if (!strcmp(what, "a stream") && ((Stream *)object)->blocking) complete(*(Stream *)object, before);
    } else if (stream.blocking) {
      complete(context.standard, before);
    }
    if (stream.queue.empty()) return;
    Work work = std::move(stream.queue.front());
    stream.queue.pop_front();
    work.run();
  }
}
inline uint64_t put(Stream &stream, std::function<void()> work) {
  stream.queue.push_back({++numbered, std::move(work)});
  return numbered;
}

} // namespace machine
