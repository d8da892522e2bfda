// Captures and graphs of the emulated drivers. Part of `driver.cpp`, within its `extern "C"`.
#pragma once

int NAME(cuStreamBeginCapture_v2, hipStreamBeginCapture)(Stream *stream, int mode) {
  Call call;
  // In other modes what other threads do fails meanwhile.
  if (own(stream, "a stream").capture || mode != 2) die("a capture that cannot begin");
  ++emulated_counts[1];
  stream->capture = new Capture;
  return 0;
}
int NAME(cuStreamEndCapture, hipStreamEndCapture)(Stream *stream, Graph **graph) {
  Call call;
  if (!own(stream, "a stream").capture) die("a capture ends that did not begin");
  *graph = new Graph{{&here()}, stream->capture->nodes};
  here().objects[*graph] = "a graph";
  stream->capture = nullptr;
  return 0;
}
int NAME(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags)(Exec **exec, Graph *graph, unsigned long long) {
  Call call;
  own(graph, "a graph");
  *exec = new Exec{{&here()}};
  for (const Node *node : graph->nodes) (*exec)->position[node] = (*exec)->nodes.size(), (*exec)->nodes.push_back(*node);
  here().objects[*exec] = "an executable graph";
  ++emulated_counts[2];
  return 0;
}
int NAME(cuGraphLaunch, hipGraphLaunch)(Exec *exec, Stream *given) {
  Call call;
  Stream &stream = stream_of(given);
  own(exec, "an executable graph");
  // What is under way keeps the arguments that it has.
  const auto nodes = std::make_shared<std::vector<Node>>(exec->nodes);
  put(stream, [=, &stream] {
    for (const Node &node : *nodes) node.run ? node.run() : perform(node.launch, *stream.context);
  });
  return 0;
}
int NAME(cuGraphDestroy, hipGraphDestroy)(Graph *graph) {
  Call call;
  own(graph, "a graph");
  here().objects.erase(graph);
  return 0;
}
int NAME(cuGraphExecDestroy, hipGraphExecDestroy)(Exec *exec) {
  Call call;
  own(exec, "an executable graph");
  here().objects.erase(exec);
  return 0;
}
#ifndef OLD_DRIVER
static int info_of(Stream *stream, int *status, void **graph, const Node ***last, size_t *count) {
  Call call;
  if (!own(stream, "a stream").capture) return *status = 0;
  static thread_local const Node *node;
  std::vector<Node *> &nodes = stream->capture->nodes;
  *count = nodes.empty() ? 0 : 1;
  if (*count) node = nodes.back();
  *status = 1, *graph = stream->capture, *last = &node;
  return 0;
}
static int set_node(Exec *exec, const Node *node, Function *function, const unsigned *blocks, const unsigned *threads, unsigned shared,
                    void **arguments) {
  Call call;
  const auto found = own(exec, "an executable graph").position.find(node);
  if (found == exec->position.end()) die("a node of another graph");
  Launch &launch = exec->nodes[found->second].launch;
  if (launch.function != function) return 910;
  ++emulated_counts[3];
  launch = launch_of(function, blocks[0], threads[0], shared, arguments);
  return 0;
}
#ifdef EMULATED_HIP
int hipStreamGetCaptureInfo_v2(Stream *stream, int *status, uint64_t *, void **graph, const Node ***last, size_t *count) {
  return info_of(stream, status, graph, last, count);
}
// hipKernelNodeParams
struct Parameters {
  unsigned threads[3];
  void **extra;
  Function *function;
  unsigned blocks[3];
  void **arguments;
  unsigned shared;
};
#else
int cuStreamGetCaptureInfo_v3(Stream *stream, int *status, uint64_t *, void **graph, const Node ***last, const void **, size_t *count) {
  return info_of(stream, status, graph, last, count);
}
// CUDA_KERNEL_NODE_PARAMS
struct Parameters {
  Function *function;
  unsigned blocks[3], threads[3], shared;
  void **arguments;
};
#endif
int NAME(cuGraphExecKernelNodeSetParams_v2, hipGraphExecKernelNodeSetParams)(Exec *exec, const Node *node, const Parameters *given) {
  return set_node(exec, node, given->function, given->blocks, given->threads, given->shared, given->arguments);
}
#endif
