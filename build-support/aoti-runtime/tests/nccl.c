// NCCL for tests: ranks are threads of one process, streams do at once what they are given, and memory is this processor's.
// Whatever is called in a wrong way ends the program.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, IN_PROGRESS = 7, MOST = 8, FLOAT = 7, BYTE = 1 };

typedef struct Group {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int ranks, connected, arrived, rounds;
  const void *inputs[MOST], *sent[MOST][MOST];
} Group;
typedef struct Comm {
  Group *group;
  int rank, asked;
  void *received[MOST];
  size_t bytes[MOST];
} Comm;
typedef struct Id {
  char bytes[128];
} Id;
typedef struct Config {
  size_t size;
  unsigned magic, version;
  int blocking;
} Config;

static _Thread_local Comm *grouped;
static _Thread_local int in_group;

int ncclGetUniqueId(Id *id) {
  Group *group = calloc(1, sizeof *group);
  pthread_mutex_init(&group->lock, NULL), pthread_cond_init(&group->changed, NULL);
  memcpy(id->bytes, &group, sizeof group);
  return SUCCESS;
}
int ncclCommInitRankConfig(Comm **comm, int ranks, Id id, int rank, Config *config) {
  if (config->size != sizeof *config || config->magic != 0xcafebeef || config->blocking) abort();
  *comm = calloc(1, sizeof **comm);
  memcpy(&(*comm)->group, id.bytes, sizeof(Group *));
  Group *group = (*comm)->group;
  (*comm)->rank = rank;
  pthread_mutex_lock(&group->lock);
  group->ranks = ranks, ++group->connected;
  pthread_mutex_unlock(&group->lock);
  return IN_PROGRESS;
}
// It takes a while to connect, and others must be there.
int ncclCommGetAsyncError(Comm *comm, int *state) {
  pthread_mutex_lock(&comm->group->lock);
  *state = comm->group->connected == comm->group->ranks && comm->asked++ >= 3 ? SUCCESS : IN_PROGRESS;
  pthread_mutex_unlock(&comm->group->lock);
  return SUCCESS;
}
int ncclCommFinalize(Comm *comm) { return comm ? SUCCESS : 4; }
int ncclCommDestroy(Comm *comm) {
  free(comm);
  return SUCCESS;
}
int ncclCommAbort(Comm *comm) {
  free(comm);
  return SUCCESS;
}
const char *ncclGetErrorString(int code) { return code == 4 ? "invalid argument" : "another error"; }

// Waits until all ranks are here.
static void meet(Group *group) {
  pthread_mutex_lock(&group->lock);
  const int round = group->rounds;
  if (++group->arrived == group->ranks) {
    group->arrived = 0, ++group->rounds;
    pthread_cond_broadcast(&group->changed);
  }
  while (group->rounds == round) pthread_cond_wait(&group->changed, &group->lock);
  pthread_mutex_unlock(&group->lock);
}
static void give(Comm *comm, const void *input) {
  comm->group->inputs[comm->rank] = input;
  meet(comm->group);
}
static void reduce(const Comm *comm, size_t from, float *to, size_t count, int type, int op) {
  if (type != FLOAT) abort();
  for (size_t k = 0; k < count; ++k) {
    float all = ((const float *)comm->group->inputs[0])[from + k];
    for (int rank = 1; rank < comm->group->ranks; ++rank) {
      const float next = ((const float *)comm->group->inputs[rank])[from + k];
      all = op == 0 || op == 4 ? all + next : op == 2 ? (next > all ? next : all) : 0;
    }
    to[k] = op == 4 ? all / (float)comm->group->ranks : all;
  }
}
int ncclAllReduce(const void *input, void *output, size_t count, int type, int op, Comm *comm, void *stream) {
  (void)stream;
  give(comm, input), reduce(comm, 0, output, count, type, op), meet(comm->group);
  return SUCCESS;
}
int ncclReduceScatter(const void *input, void *output, size_t count, int type, int op, Comm *comm, void *stream) {
  (void)stream;
  give(comm, input), reduce(comm, (size_t)comm->rank * count, output, count, type, op), meet(comm->group);
  return SUCCESS;
}
int ncclAllGather(const void *input, void *output, size_t count, int type, Comm *comm, void *stream) {
  (void)stream;
  if (type != BYTE) abort();
  give(comm, input);
  for (int rank = 0; rank < comm->group->ranks; ++rank)
    memcpy((char *)output + (size_t)rank * count, comm->group->inputs[rank], count);
  meet(comm->group);
  return SUCCESS;
}
int ncclBroadcast(const void *input, void *output, size_t count, int type, int root, Comm *comm, void *stream) {
  (void)stream;
  if (type != BYTE || root >= comm->group->ranks) return 4;
  give(comm, input), memcpy(output, comm->group->inputs[root], count), meet(comm->group);
  return SUCCESS;
}
int ncclGroupStart(void) {
  if (in_group++) abort();
  return SUCCESS;
}
int ncclSend(const void *from, size_t count, int type, int peer, Comm *comm, void *stream) {
  (void)stream, (void)count;
  if (type != BYTE || !in_group) abort();
  comm->group->sent[comm->rank][peer] = from, grouped = comm;
  return SUCCESS;
}
int ncclRecv(void *to, size_t count, int type, int peer, Comm *comm, void *stream) {
  (void)stream;
  if (type != BYTE || !in_group) abort();
  comm->received[peer] = to, comm->bytes[peer] = count, grouped = comm;
  return SUCCESS;
}
int ncclGroupEnd(void) {
  Comm *comm = grouped;
  in_group = 0;
  if (!comm) return SUCCESS;
  meet(comm->group);
  for (int peer = 0; peer < comm->group->ranks; ++peer)
    memcpy(comm->received[peer], comm->group->sent[peer][comm->rank], comm->bytes[peer]);
  meet(comm->group);
  return SUCCESS;
}
