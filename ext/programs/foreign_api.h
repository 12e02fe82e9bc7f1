// What a handler of XLA's interface may ask for while it runs: errors, states, memory, tasks, futures; and the functions
// and types of states that were registered in this process. Whoever calls handlers (foreign.cpp) gives them `foreign_api`.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "xla/ffi/api/c_api.h"

namespace pb {

constexpr int kStages = 4;

struct Target {
    std::array<void*, kStages> handlers{};  // of each stage, or null
    bool original = false;                  // the only one is a plain C function
    bool operator==(const Target& other) const { return handlers == other.handlers && original == other.original; }
};

// What is wrong with a registration, or nothing. An id of 0 becomes a new one.
std::string register_target(const std::string& name, const Target& target);
std::string register_type(const std::string& name, XLA_FFI_TypeId* id, const XLA_FFI_TypeInfo* info);
// Without an `execute` handler if there is none of that name.
Target find_target(const std::string& name);

// What a handler keeps between stages; its type says how it is deleted.
struct State {
    int64_t type = 0;
    void* object = nullptr;

    void drop();
};

extern const XLA_FFI_Api foreign_api;

// "CODE: message" of an error, which is destroyed; nothing for null.
std::string spent(XLA_FFI_Error* wrong);
// Waits for a call that goes on after its handler has returned, and destroys the future; null: it is over.
std::string wait_for(XLA_FFI_Future* future);

}  // namespace pb

// One run of one place that calls. The state of instantiation outlives it.
struct XLA_FFI_ExecutionContext {
    pb::State* instance;
    int device;
    int64_t run;
    pb::State states[pb::kStages];

    pb::State& state(int stage) { return stage == XLA_FFI_ExecutionStage_INSTANTIATE ? *instance : states[stage]; }
    ~XLA_FFI_ExecutionContext() {
        for (pb::State& state : states) state.drop();
    }
};
