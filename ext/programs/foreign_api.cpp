#include "programs/foreign_api.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>

struct XLA_FFI_Error {
    XLA_FFI_Error_Code code;
    std::string message;
};

struct XLA_FFI_Future {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    XLA_FFI_Error* error = nullptr;  // taken over
};

namespace pb {
namespace {

// ---- types of states and registered functions, of the process ----

std::mutex registry_mutex;

struct Type {
    int64_t id;
    void (*deleter)(void*);
};

std::map<std::string, Type>& types() {
    static auto* all = new std::map<std::string, Type>;
    return *all;
}

std::map<std::string, Target>& targets() {
    static auto* all = new std::map<std::string, Target>;
    return *all;
}

}  // namespace

std::string register_target(const std::string& name, const Target& target) {
    if (!target.handlers[XLA_FFI_ExecutionStage_EXECUTE])
        return "FFI handler for " + name + " must provide an execute implementation";
    std::lock_guard<std::mutex> lock(registry_mutex);
    auto [place, is_new] = targets().emplace(name, target);
    if (is_new || place->second == target) return {};
    return "Duplicate FFI handler registration for " + name + " with different bundle addresses";
}

std::string register_type(const std::string& name, XLA_FFI_TypeId* id, const XLA_FFI_TypeInfo* info) {
    std::lock_guard<std::mutex> lock(registry_mutex);
    auto found = types().find(name);
    if (found == types().end()) {
        int64_t fresh = id->type_id;
        auto is_taken = [&] {
            for (auto& [other, type] : types())
                if (type.id == fresh) return true;
            return false;
        };
        if (fresh && is_taken()) return "the id of type " + name + " is that of another type";
        while (!fresh || is_taken()) ++fresh;
        types()[name] = {fresh, info ? info->deleter : nullptr};
        id->type_id = fresh;
        return {};
    }
    if (id->type_id && id->type_id != found->second.id) return "type " + name + " is registered with another id";
    id->type_id = found->second.id;
    if (info && info->deleter) found->second.deleter = info->deleter;
    return {};
}

void State::drop() {
    if (!object) return;
    void (*deleter)(void*) = nullptr;
    {
        std::lock_guard<std::mutex> lock(registry_mutex);
        for (auto& [name, known] : types())
            if (known.id == type) deleter = known.deleter;
    }
    if (deleter) deleter(object);
    object = nullptr;
}

Target find_target(const std::string& name) {
    std::lock_guard<std::mutex> lock(registry_mutex);
    auto found = targets().find(name);
    return found == targets().end() ? Target() : found->second;
}

namespace {

// ---- what handlers call ----

XLA_FFI_Error* error(XLA_FFI_Error_Code code, std::string message) { return new XLA_FFI_Error{code, std::move(message)}; }

const char* name_of(XLA_FFI_Error_Code code) {
    static const char* names[] = {"OK",           "CANCELLED",           "UNKNOWN",           "INVALID_ARGUMENT",
                                  "DEADLINE_EXCEEDED", "NOT_FOUND",      "ALREADY_EXISTS",    "PERMISSION_DENIED",
                                  "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",     "OUT_OF_RANGE",
                                  "UNIMPLEMENTED", "INTERNAL",           "UNAVAILABLE",       "DATA_LOSS",
                                  "UNAUTHENTICATED"};
    return unsigned(code) < std::size(names) ? names[code] : "UNKNOWN";
}

XLA_FFI_Error* create_error(XLA_FFI_Error_Create_Args* a) { return error(a->errc, a->message ? a->message : ""); }
void get_message(XLA_FFI_Error_GetMessage_Args* a) { a->message = a->error->message.c_str(); }
void destroy_error(XLA_FFI_Error_Destroy_Args* a) { delete a->error; }

std::string text(const XLA_FFI_ByteSpan& span) { return std::string(span.ptr, span.len); }

XLA_FFI_Error* register_handler(XLA_FFI_Handler_Register_Args* a) {
    Target target;
    auto& b = a->bundle;
    target.handlers = {reinterpret_cast<void*>(b.instantiate), reinterpret_cast<void*>(b.prepare),
                       reinterpret_cast<void*>(b.initialize), reinterpret_cast<void*>(b.execute)};
    std::string wrong = register_target(text(a->name), target);
    return wrong.empty() ? nullptr : error(XLA_FFI_Error_Code_INVALID_ARGUMENT, wrong);
}

XLA_FFI_Error* get_stream(XLA_FFI_Stream_Get_Args*) {
    return error(XLA_FFI_Error_Code_UNIMPLEMENTED, "there are no streams on a CPU");
}

XLA_FFI_Error* register_type_of(XLA_FFI_Type_Register_Args* a) {
    std::string wrong = register_type(text(a->name), a->type_id, a->type_info);
    return wrong.empty() ? nullptr : error(XLA_FFI_Error_Code_INVALID_ARGUMENT, wrong);
}

XLA_FFI_Error* get_context(XLA_FFI_ExecutionContext_Get_Args*) {
    return error(XLA_FFI_Error_Code_NOT_FOUND, "the execution context holds no data of users");
}

XLA_FFI_Error* set_state(XLA_FFI_State_Set_Args* a) {
    State& state = a->ctx->state(a->stage);
    if (state.object) return error(XLA_FFI_Error_Code_INTERNAL, "the state of this stage is set already");
    state = {a->type_id->type_id, a->state};
    return nullptr;
}

XLA_FFI_Error* get_state(XLA_FFI_State_Get_Args* a) {
    State& state = a->ctx->state(a->stage);
    if (!state.object) return error(XLA_FFI_Error_Code_NOT_FOUND, "the state of this stage is not set");
    if (state.type != a->type_id->type_id)
        return error(XLA_FFI_Error_Code_INVALID_ARGUMENT, "the state of this stage has another type");
    a->state = state.object;
    return nullptr;
}

XLA_FFI_Error* allocate(XLA_FFI_DeviceMemory_Allocate_Args* a) {
    size_t alignment = std::max<size_t>(a->alignment, 64);
    if (alignment & (alignment - 1)) return error(XLA_FFI_Error_Code_INVALID_ARGUMENT, "alignment is no power of two");
    size_t size = (a->size + alignment - 1) / alignment * alignment;
    a->data = size < a->size ? nullptr : std::aligned_alloc(alignment, std::max(size, alignment));
    return a->data ? nullptr : error(XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, "no memory");
}

XLA_FFI_Error* release(XLA_FFI_DeviceMemory_Free_Args* a) {
    std::free(a->data);
    return nullptr;
}

// The interface allows tasks to run in the thread that asks for them; so a pool of one thread is what handlers see.
XLA_FFI_Error* schedule(XLA_FFI_ThreadPool_Schedule_Args* a) {
    a->task(a->data);
    return nullptr;
}

XLA_FFI_Error* count_threads(XLA_FFI_ThreadPool_NumThreads_Args* a) {
    *a->num_threads = 1;
    return nullptr;
}

XLA_FFI_Error* create_future(XLA_FFI_Future_Create_Args* a) {
    a->future = new XLA_FFI_Future;
    return nullptr;
}

XLA_FFI_Error* settle(XLA_FFI_Future* future, XLA_FFI_Error* wrong) {
    std::lock_guard<std::mutex> lock(future->mutex);
    future->done = true;
    future->error = wrong;
    future->changed.notify_all();
    return nullptr;
}

XLA_FFI_Error* set_available(XLA_FFI_Future_SetAvailable_Args* a) { return settle(a->future, nullptr); }
XLA_FFI_Error* set_error(XLA_FFI_Future_SetError_Args* a) { return settle(a->future, a->error); }

XLA_FFI_Error* get_run(XLA_FFI_RunId_Get_Args* a) {
    a->run_id = a->ctx->run;
    return nullptr;
}

XLA_FFI_Error* get_device(XLA_FFI_DeviceOrdinal_Get_Args* a) {
    a->device_ordinal = int32_t(a->ctx->device);
    return nullptr;
}

}  // namespace

const XLA_FFI_Api foreign_api = {
    XLA_FFI_Api_STRUCT_SIZE,
    nullptr,
    {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR},
    nullptr,
    create_error,
    get_message,
    destroy_error,
    register_handler,
    get_stream,
    register_type_of,
    get_context,
    set_state,
    get_state,
    allocate,
    release,
    schedule,
    count_threads,
    create_future,
    set_available,
    set_error,
    get_run,
    get_device,
};

std::string spent(XLA_FFI_Error* wrong) {
    if (!wrong) return {};
    std::string message = std::string(name_of(wrong->code)) + ": " + wrong->message;
    delete wrong;
    return message;
}

std::string wait_for(XLA_FFI_Future* future) {
    if (!future) return {};
    XLA_FFI_Error* wrong;
    {
        std::unique_lock<std::mutex> lock(future->mutex);
        future->changed.wait(lock, [&] { return future->done; });
        wrong = future->error;
    }
    delete future;
    return spent(wrong);
}

}  // namespace pb
