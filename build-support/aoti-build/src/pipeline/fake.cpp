// A model written by hand, as the compiler would print one: y = x + weights[0], rows of three. Stands for generated
// code in the tests of the build, which care for files and tools, not for kernels.
#include "kernels.h"
#include <aoti/abi.h>
#include <string.h>

extern "C" const float EMBEDDED[] __attribute__((WEAK visibility("hidden")));

struct AotiModel {
  const float *weights;
};
static AotiModel only;

static const AotiDimInfo dims[] = {{"batch", 1, 1000000}, {nullptr, 3, 3}};
static const AotiValueInfo inputs_info[] = {{"x", AOTI_F32, 2, dims}};
static const AotiValueInfo outputs_info[] = {{"y", AOTI_F32, 2, dims}};
static const AotiModelInfo info = {"fake",       "by hand",    1,       1,  0, 0, inputs_info,
                                   outputs_info, nullptr,      nullptr, 64, 0, nullptr, 0, 0,
                                   "",           nullptr};

static int32_t create(const AotiCreateOptions *options, AotiModel **model, AotiError *) {
  only.weights = options->weights ? static_cast<const float *>(options->weights) : EMBEDDED;
  *model = &only;
  return only.weights ? AOTI_OK : AOTI_ERROR_WEIGHTS;
}
static void destroy(AotiModel *) {}
static int32_t output_sizes(const AotiModel *, const AotiTensor *inputs, int32_t, int64_t *const *sizes, AotiError *) {
  sizes[0][0] = inputs[0].sizes[0];
  sizes[0][1] = 3;
  return AOTI_OK;
}
static int32_t workspace_bytes(const AotiModel *, const AotiTensor *, int32_t, int32_t, int64_t *bytes, AotiError *) {
  *bytes = 0;
  return AOTI_OK;
}
// It changes nothing, so its states are all the same one.
static int32_t create_state(const AotiModel *, void *, AotiState **state, AotiError *) {
  *state = nullptr;
  return AOTI_OK;
}
static int32_t reset_state(const AotiModel *, AotiState *, AotiError *) { return AOTI_OK; }
static int32_t copy_state(const AotiState *, void *, AotiState **, AotiError *) { return AOTI_ERROR_MEMORY; }
static void destroy_state(AotiState *) {}
static int32_t run(const AotiModel *model, const AotiTensor *inputs, int32_t, const AotiTensor *outputs, int32_t,
                   int64_t *const *, AotiState *, void *, int64_t, const AotiContext *, AotiError *error) {
  if (REFUSES) {
    error->code = AOTI_ERROR_ASSERT;
    static const char text[] = "it never wants to";
    memcpy(error->message, text, sizeof text);
    return AOTI_ERROR_ASSERT;
  }
  KERNEL(static_cast<const float *>(inputs[0].data), static_cast<float *>(outputs[0].data), inputs[0].sizes[0] * 3,
         model->weights[0]);
  return AOTI_OK;
}
static int32_t prepare(const AotiModel *, const AotiTensor *, int32_t, int32_t, void *, int64_t, AotiRun **, AotiError *) {
  return AOTI_ERROR_MEMORY;
}
static int32_t submit(AotiRun *, const AotiTensor *, int32_t, const AotiTensor *, int32_t, AotiState *,
                      const AotiContext *, AotiError *) {
  return AOTI_ERROR_NULL;
}
static int32_t wait(AotiRun *, int64_t *const *, AotiError *) { return AOTI_ERROR_NULL; }
static void release(AotiRun *) {}

static const AotiCandidate candidate = {"by-hand", AOTI_CPU, AOTI_PICKED, "there is no other"};
static const AotiPlan the_plan = {{AOTI_CPU, 0}, "by-hand", &candidate, 1, 0};
static const AotiPlan *plan(const AotiModel *) { return &the_plan; }

static const AotiApi api = {AOTI_ABI_VERSION, sizeof(AotiApi), &info,      create,        destroy, output_sizes, workspace_bytes,
                            create_state,     reset_state,     copy_state, destroy_state, run,     prepare,      submit,
                            wait,             release,         plan};

extern "C" __attribute__((visibility("default"))) const AotiApi *API() { return &api; }
