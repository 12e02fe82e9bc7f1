// Foreign functions in C++17: how a function of typed buffers and attributes becomes a handler of the C interface.
//
//     namespace ffi = xla::ffi;
//     ffi::Error Scale(float by, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y);
//     XLA_FFI_DEFINE_HANDLER_SYMBOL(ScaleHandler, Scale,
//         ffi::Ffi::Bind().Attr<float>("by").Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
//
// The names are those of OpenXLA's header of the same name, so that sources written for it compile; this one is written
// for pullback. How it works: Bind() collects a list of types, one for each parameter of the function; each type has a
// Decode<T> that takes its value out of the call frame or says what is wrong; the handler decodes all and calls.
#ifndef PULLBACK_XLA_FFI_API_FFI_H_
#define PULLBACK_XLA_FFI_API_FFI_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "xla/ffi/api/api.h"
#include "xla/ffi/api/c_api.h"

namespace xla::ffi {

// ---- types of states ----

using TypeId = XLA_FFI_TypeId;
using TypeInfo = XLA_FFI_TypeInfo;

template <typename T>
constexpr TypeInfo MakeTypeInfo() {
    return {XLA_FFI_TypeInfo_STRUCT_SIZE, nullptr, [](void* object) { delete static_cast<T*>(object); }};
}

// What runs in which stage of a program.
enum class ExecutionStage : uint8_t {
    kInstantiate = XLA_FFI_ExecutionStage_INSTANTIATE,
    kPrepare = XLA_FFI_ExecutionStage_PREPARE,
    kInitialize = XLA_FFI_ExecutionStage_INITIALIZE,
    kExecute = XLA_FFI_ExecutionStage_EXECUTE,
};

namespace internal {

inline std::string Spent(const XLA_FFI_Api* api, XLA_FFI_Error* error) {
    XLA_FFI_Error_GetMessage_Args get = {XLA_FFI_Error_GetMessage_Args_STRUCT_SIZE, nullptr, error, nullptr};
    api->XLA_FFI_Error_GetMessage(&get);
    std::string message = get.message;
    XLA_FFI_Error_Destroy_Args destroy = {XLA_FFI_Error_Destroy_Args_STRUCT_SIZE, nullptr, error};
    api->XLA_FFI_Error_Destroy(&destroy);
    return message;
}

inline XLA_FFI_Error* ToC(const XLA_FFI_Api* api, const Error& error) {
    if (error.success()) return nullptr;
    XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, nullptr, error.message().c_str(),
                                      XLA_FFI_Error_Code(error.code())};
    return api->XLA_FFI_Error_Create(&args);
}

}  // namespace internal

// ---- contexts: types C of .Ctx<C>() have a CtxDecoding<C> with `using Type` and Decode(api, context, diagnostic) ----

template <typename C> struct CtxDecoding;

// The state that the handler of instantiation made.
template <typename T> struct State {};
template <typename T>
struct CtxDecoding<State<T>> {
    using Type = T*;
    static std::optional<Type> Decode(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* ctx, DiagnosticEngine& d) {
        XLA_FFI_State_Get_Args args = {XLA_FFI_State_Get_Args_STRUCT_SIZE, nullptr, ctx,
                                       XLA_FFI_ExecutionStage_INSTANTIATE, &T::id, nullptr};
        if (XLA_FFI_Error* error = api->XLA_FFI_State_Get(&args))
            return d.Emit("Failed to get state from execution context: " + internal::Spent(api, error));
        return static_cast<Type>(args.state);
    }
};

template <typename T> struct PlatformStream {};
template <typename T>
struct CtxDecoding<PlatformStream<T>> {
    using Type = T;
    static std::optional<Type> Decode(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* ctx, DiagnosticEngine& d) {
        XLA_FFI_Stream_Get_Args args = {XLA_FFI_Stream_Get_Args_STRUCT_SIZE, nullptr, ctx, nullptr};
        if (XLA_FFI_Error* error = api->XLA_FFI_Stream_Get(&args))
            return d.Emit("Failed to get platform stream: " + internal::Spent(api, error));
        return reinterpret_cast<T>(args.stream);
    }
};

struct RunId {
    int64_t run_id;
};
template <>
struct CtxDecoding<RunId> {
    using Type = RunId;
    static std::optional<Type> Decode(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* ctx, DiagnosticEngine& d) {
        XLA_FFI_RunId_Get_Args args = {XLA_FFI_RunId_Get_Args_STRUCT_SIZE, nullptr, ctx, 0};
        if (XLA_FFI_Error* error = api->XLA_FFI_RunId_Get(&args)) return d.Emit(internal::Spent(api, error));
        return RunId{args.run_id};
    }
};

struct DeviceOrdinal {};
template <>
struct CtxDecoding<DeviceOrdinal> {
    using Type = int32_t;
    static std::optional<Type> Decode(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* ctx, DiagnosticEngine& d) {
        XLA_FFI_DeviceOrdinal_Get_Args args = {XLA_FFI_DeviceOrdinal_Get_Args_STRUCT_SIZE, nullptr, ctx, 0};
        if (XLA_FFI_Error* error = api->XLA_FFI_DeviceOrdinal_Get(&args)) return d.Emit(internal::Spent(api, error));
        return args.device_ordinal;
    }
};

// Memory for the time of one call.
class ScratchAllocator {
  public:
    ScratchAllocator(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* ctx) : owner_(std::make_shared<Owner>()) {
        owner_->api = api;
        owner_->ctx = ctx;
    }
    std::optional<void*> Allocate(size_t size, size_t alignment = 1) {
        XLA_FFI_DeviceMemory_Allocate_Args args = {XLA_FFI_DeviceMemory_Allocate_Args_STRUCT_SIZE, nullptr, owner_->ctx,
                                                   size, alignment, nullptr};
        if (XLA_FFI_Error* error = owner_->api->XLA_FFI_DeviceMemory_Allocate(&args)) {
            internal::Spent(owner_->api, error);
            return std::nullopt;
        }
        owner_->all.push_back({size, args.data});
        return args.data;
    }

  private:
    struct Owner {
        const XLA_FFI_Api* api;
        XLA_FFI_ExecutionContext* ctx;
        std::vector<std::pair<size_t, void*>> all;
        ~Owner() {
            for (auto& [size, data] : all) {
                XLA_FFI_DeviceMemory_Free_Args args = {XLA_FFI_DeviceMemory_Free_Args_STRUCT_SIZE, nullptr, ctx, size,
                                                       data};
                if (XLA_FFI_Error* error = api->XLA_FFI_DeviceMemory_Free(&args)) internal::Spent(api, error);
            }
        }
    };
    std::shared_ptr<Owner> owner_;
};
template <>
struct CtxDecoding<ScratchAllocator> {
    using Type = ScratchAllocator;
    static std::optional<Type> Decode(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* ctx, DiagnosticEngine&) {
        return ScratchAllocator(api, ctx);
    }
};

class ThreadPool {
  public:
    ThreadPool(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* ctx) : api_(api), ctx_(ctx) {}
    int64_t num_threads() const {
        int64_t count = 1;
        XLA_FFI_ThreadPool_NumThreads_Args args = {XLA_FFI_ThreadPool_NumThreads_Args_STRUCT_SIZE, nullptr, ctx_,
                                                   &count};
        if (XLA_FFI_Error* error = api_->XLA_FFI_ThreadPool_NumThreads(&args)) internal::Spent(api_, error);
        return count;
    }
    template <typename F> void Schedule(F&& task) const {
        auto* held = new std::function<void()>(std::forward<F>(task));
        XLA_FFI_ThreadPool_Schedule_Args args = {XLA_FFI_ThreadPool_Schedule_Args_STRUCT_SIZE, nullptr, ctx_,
                                                 [](void* data) {
                                                     auto* f = static_cast<std::function<void()>*>(data);
                                                     (*f)();
                                                     delete f;
                                                 },
                                                 held};
        if (XLA_FFI_Error* error = api_->XLA_FFI_ThreadPool_Schedule(&args)) {
            internal::Spent(api_, error);
            (*held)();
            delete held;
        }
    }

  private:
    const XLA_FFI_Api* api_;
    XLA_FFI_ExecutionContext* ctx_;
};
template <>
struct CtxDecoding<ThreadPool> {
    using Type = ThreadPool;
    static std::optional<Type> Decode(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* ctx, DiagnosticEngine&) {
        return ThreadPool(api, ctx);
    }
};

// ---- results of functions ----

// How what a function returns becomes the handler's result. Users may add types.
template <ExecutionStage stage, typename R> struct ResultEncoding;

template <ExecutionStage stage>
struct ResultEncoding<stage, Error> {
    static XLA_FFI_Error* Encode(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext*, const Error& error) {
        return internal::ToC(api, error);
    }
};

// The instantiation's result is the state of that place of the program.
template <typename T>
struct ResultEncoding<ExecutionStage::kInstantiate, ErrorOr<std::unique_ptr<T>>> {
    static XLA_FFI_Error* Encode(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* ctx,
                                 ErrorOr<std::unique_ptr<T>> state) {
        if (state.has_error()) return internal::ToC(api, state.error());
        XLA_FFI_State_Set_Args args = {XLA_FFI_State_Set_Args_STRUCT_SIZE, nullptr, ctx,
                                       XLA_FFI_ExecutionStage_INSTANTIATE, &T::id, state->get()};
        XLA_FFI_Error* error = api->XLA_FFI_State_Set(&args);
        if (!error) state->release();
        return error;
    }
};

// ---- bindings ----

class Ffi {
  public:
    virtual ~Ffi() = default;
    virtual XLA_FFI_Error* Call(const XLA_FFI_CallFrame* frame) const = 0;
    template <ExecutionStage stage = ExecutionStage::kExecute> static auto Bind();
    template <ExecutionStage stage = ExecutionStage::kExecute, typename F> static auto BindTo(F fn);
};

namespace internal {

template <typename T> struct ArgTag {};
template <typename T> struct RetTag {};
template <typename T> struct CtxTag {};
template <typename T> struct AttrTag {};  // its name is in the binding
template <typename T> struct AttrsTag {};
struct RemainingArgsTag {};
struct RemainingRetsTag {};

struct Position {
    int64_t args = 0, rets = 0, attrs = 0;
};

// Takes the value of one parameter out of a frame, and moves on.
template <typename Tag> struct Decode;

template <typename T> struct Decode<ArgTag<T>> {
    static std::optional<T> Get(const XLA_FFI_CallFrame* f, Position& at, const std::vector<std::string>&,
                                DiagnosticEngine& d) {
        return AsBuffer<T>::Get(static_cast<const XLA_FFI_Buffer*>(f->args.args[at.args++]), d);
    }
};
template <typename T> struct Decode<RetTag<T>> {
    static std::optional<Result<T>> Get(const XLA_FFI_CallFrame* f, Position& at, const std::vector<std::string>&,
                                        DiagnosticEngine& d) {
        auto found = AsBuffer<T>::Get(static_cast<const XLA_FFI_Buffer*>(f->rets.rets[at.rets++]), d);
        return found ? std::optional<Result<T>>(Result<T>(*found)) : std::nullopt;
    }
};
template <typename T> struct Decode<CtxTag<T>> {
    static std::optional<typename CtxDecoding<T>::Type> Get(const XLA_FFI_CallFrame* f, Position&,
                                                            const std::vector<std::string>&, DiagnosticEngine& d) {
        return CtxDecoding<T>::Decode(f->api, f->ctx, d);
    }
};
template <typename T> struct Decode<AttrTag<T>> {
    static auto Get(const XLA_FFI_CallFrame* f, Position& at, const std::vector<std::string>& names,
                    DiagnosticEngine& d) {
        const std::string& name = names[size_t(at.attrs++)];
        using Value = decltype(AttrDecoding<T>::Decode(XLA_FFI_AttrType_SCALAR, nullptr, d));
        for (int64_t i = 0; i < f->attrs.size; ++i)
            if (std::string_view(f->attrs.names[i]->ptr, f->attrs.names[i]->len) == name)
                return Value(AttrDecoding<T>::Decode(f->attrs.types[i], f->attrs.attrs[i], d));
        d.append("Attribute " + name + " is missing");
        return Value();
    }
};
template <typename T> struct Decode<AttrsTag<T>> {
    static std::optional<T> Get(const XLA_FFI_CallFrame* f, Position&, const std::vector<std::string>&,
                                DiagnosticEngine& d) {
        return AttrDecoding<T>::Decode(XLA_FFI_AttrType_DICTIONARY, const_cast<XLA_FFI_Attrs*>(&f->attrs), d);
    }
};
template <> struct Decode<RemainingArgsTag> {
    static std::optional<RemainingArgs> Get(const XLA_FFI_CallFrame* f, Position& at, const std::vector<std::string>&,
                                            DiagnosticEngine&) {
        return RemainingArgs(&f->args, size_t(at.args));
    }
};
template <> struct Decode<RemainingRetsTag> {
    static std::optional<RemainingRets> Get(const XLA_FFI_CallFrame* f, Position& at, const std::vector<std::string>&,
                                            DiagnosticEngine&) {
        return RemainingRets(&f->rets, size_t(at.rets));
    }
};

template <typename Tag> struct IsArg : std::false_type {};
template <typename T> struct IsArg<ArgTag<T>> : std::true_type {};
template <typename Tag> struct IsRet : std::false_type {};
template <typename T> struct IsRet<RetTag<T>> : std::true_type {};
template <typename Tag> struct IsAttr : std::false_type {};
template <typename T> struct IsAttr<AttrTag<T>> : std::true_type {};

template <typename Tag> struct IsAttrs : std::false_type {};
template <typename T> struct IsAttrs<AttrsTag<T>> : std::true_type {};

inline const char* NameOf(ExecutionStage stage) {
    static const char* names[] = {"instantiate", "prepare", "initialize", "execute"};
    return names[size_t(stage)];
}

}  // namespace internal

template <ExecutionStage stage, typename F, typename... Tags>
class Handler final : public Ffi {
  public:
    Handler(F fn, std::vector<std::string> names) : fn_(std::move(fn)), names_(std::move(names)) {}

    XLA_FFI_Error* Call(const XLA_FFI_CallFrame* f) const override {
        for (auto* e = f->extension_start; e; e = e->next) {
            if (e->type != XLA_FFI_Extension_Metadata) continue;
            auto* metadata = reinterpret_cast<XLA_FFI_Metadata_Extension*>(e)->metadata;
            metadata->api_version.major_version = XLA_FFI_API_MAJOR;
            metadata->api_version.minor_version = XLA_FFI_API_MINOR;
            metadata->traits = 0;
            return nullptr;
        }
        if (f->struct_size < XLA_FFI_CallFrame_STRUCT_SIZE)
            return Fail(f, "the caller's call frame is smaller than that of this header");
        if (ExecutionStage(f->stage) != stage)
            return Fail(f, std::string("Wrong execution stage: expected ") + internal::NameOf(stage) + " but got " +
                               internal::NameOf(ExecutionStage(f->stage)));
        if (auto wrong = Count(f->args.size, args, rest_args, "arguments"); !wrong.empty()) return Fail(f, wrong);
        if (auto wrong = Count(f->rets.size, rets, rest_rets, "results"); !wrong.empty()) return Fail(f, wrong);
        if (attrs && !any_attrs)
            if (auto wrong = Count(f->attrs.size, attrs, false, "attributes"); !wrong.empty()) return Fail(f, wrong);
        DiagnosticEngine diagnostic;
        internal::Position at;
        // Braces: values are decoded from left to right.
        std::tuple<decltype(internal::Decode<Tags>::Get(f, at, names_, diagnostic))...> values{
            internal::Decode<Tags>::Get(f, at, names_, diagnostic)...};
        return Run(f, values, diagnostic, std::index_sequence_for<Tags...>());
    }

  private:
    static constexpr int64_t args = (0 + ... + int(internal::IsArg<Tags>::value));
    static constexpr int64_t rets = (0 + ... + int(internal::IsRet<Tags>::value));
    static constexpr int64_t attrs = (0 + ... + int(internal::IsAttr<Tags>::value));
    static constexpr bool rest_args = (false || ... || std::is_same_v<Tags, internal::RemainingArgsTag>);
    static constexpr bool rest_rets = (false || ... || std::is_same_v<Tags, internal::RemainingRetsTag>);
    static constexpr bool any_attrs = (false || ... || internal::IsAttrs<Tags>::value);

    static std::string Count(int64_t got, int64_t expected, bool more, const char* what) {
        if (more ? got >= expected : got == expected) return {};
        return std::string("Wrong number of ") + what + ": expected " + (more ? "at least " : "") +
               std::to_string(expected) + " but got " + std::to_string(got);
    }

    static XLA_FFI_Error* Fail(const XLA_FFI_CallFrame* f, const std::string& text) {
        return internal::ToC(f->api, Error::InvalidArgument(std::string("[") + internal::NameOf(stage) + "] " + text));
    }

    template <typename Values, size_t... I>
    XLA_FFI_Error* Run(const XLA_FFI_CallFrame* f, Values& values, DiagnosticEngine& diagnostic,
                       std::index_sequence<I...>) const {
        std::string bad;
        ((std::get<I>(values).has_value() ? void() : void(bad += (bad.empty() ? "" : ", ") + std::to_string(I))), ...);
        if (!bad.empty())
            return Fail(f, "Failed to decode all FFI handler operands (bad operands at: " + bad +
                               ")\nDiagnostics:\n" + diagnostic.Result());
        using R = std::decay_t<decltype(fn_(*std::move(std::get<I>(values))...))>;
        return ResultEncoding<stage, R>::Encode(f->api, f->ctx, fn_(*std::move(std::get<I>(values))...));
    }

    F fn_;
    std::vector<std::string> names_;
};

template <ExecutionStage stage, typename... Tags>
class Binding {
  public:
    explicit Binding(std::vector<std::string> names = {}) : names_(std::move(names)) {}
    template <typename T> auto Arg() const { return With<internal::ArgTag<T>>(); }
    template <typename T> auto Ret() const { return With<internal::RetTag<T>>(); }
    template <typename T> auto Ctx() const { return With<internal::CtxTag<T>>(); }
    template <typename T> auto Attr(std::string name) const { return With<internal::AttrTag<T>>(std::move(name)); }
    template <typename T = Dictionary> auto Attrs() const { return With<internal::AttrsTag<T>>(); }
    auto RemainingArgs() const { return With<internal::RemainingArgsTag>(); }
    auto RemainingRets() const { return With<internal::RemainingRetsTag>(); }
    template <typename F> std::unique_ptr<Handler<stage, F, Tags...>> To(F fn) const {
        return std::make_unique<Handler<stage, F, Tags...>>(std::move(fn), names_);
    }

  private:
    template <typename Tag> Binding<stage, Tags..., Tag> With() const { return Binding<stage, Tags..., Tag>(names_); }
    template <typename Tag> Binding<stage, Tags..., Tag> With(std::string name) const {
        std::vector<std::string> names = names_;
        names.push_back(std::move(name));
        return Binding<stage, Tags..., Tag>(std::move(names));
    }
    std::vector<std::string> names_;
};

template <ExecutionStage stage> auto Ffi::Bind() { return Binding<stage>(); }

namespace internal {
// The parameter that a function's type tells by itself: buffers, results, the rest of them, dictionaries.
template <typename T> struct Tag;
template <> struct Tag<AnyBuffer> { using type = ArgTag<AnyBuffer>; };
template <DataType d, size_t r> struct Tag<Buffer<d, r>> { using type = ArgTag<Buffer<d, r>>; };
template <typename T> struct Tag<Result<T>> { using type = RetTag<T>; };
template <> struct Tag<RemainingArgs> { using type = RemainingArgsTag; };
template <> struct Tag<RemainingRets> { using type = RemainingRetsTag; };
template <> struct Tag<Dictionary> { using type = AttrsTag<Dictionary>; };

template <ExecutionStage stage, typename R, typename... P> auto BindFunction(R (*fn)(P...)) {
    return std::make_unique<Handler<stage, R (*)(P...), typename Tag<std::decay_t<P>>::type...>>(
        fn, std::vector<std::string>());
}
}  // namespace internal

template <ExecutionStage stage, typename F> auto Ffi::BindTo(F fn) { return internal::BindFunction<stage>(+fn); }

}  // namespace xla::ffi

// ---- handlers ----

namespace xla::ffi {

enum class Traits : uint32_t { kCmdBufferCompatible = XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE };

namespace internal {
template <typename F> auto MakeHandler(F fn) { return Ffi::BindTo(fn); }
template <typename F, ExecutionStage stage, typename... Tags>
auto MakeHandler(F fn, const Binding<stage, Tags...>& binding, std::initializer_list<Traits> = {}) {
    return binding.To(std::move(fn));
}
}  // namespace internal

}  // namespace xla::ffi

#if defined(_WIN32)
#define PULLBACK_FFI_VISIBLE __declspec(dllexport)
#else
#define PULLBACK_FFI_VISIBLE __attribute__((visibility("default")))
#endif
#define PULLBACK_FFI_BODY(...)                                                               \
    {                                                                                        \
        static auto* handler = ::xla::ffi::internal::MakeHandler(__VA_ARGS__).release();     \
        return handler->Call(call_frame);                                                    \
    }

// (name, function[, binding[, traits]]): a handler of this translation unit; with _SYMBOL one that others see.
#define XLA_FFI_DEFINE_HANDLER(fn, ...) \
    static ::XLA_FFI_Error* fn(::XLA_FFI_CallFrame* call_frame) PULLBACK_FFI_BODY(__VA_ARGS__)
#define XLA_FFI_DECLARE_HANDLER_SYMBOL(fn) \
    extern "C" PULLBACK_FFI_VISIBLE ::XLA_FFI_Error* fn(::XLA_FFI_CallFrame* call_frame)
#define XLA_FFI_DEFINE_HANDLER_SYMBOL(fn, ...) XLA_FFI_DECLARE_HANDLER_SYMBOL(fn) PULLBACK_FFI_BODY(__VA_ARGS__)

// Dictionaries as structs, and integers as enums: one line outside of any namespace.
#define XLA_FFI_REGISTER_ENUM_ATTR_DECODING(T)                                                               \
    template <>                                                                                              \
    struct xla::ffi::AttrDecoding<T> {                                                                       \
        static std::optional<T> Decode(XLA_FFI_AttrType type, void* attr, DiagnosticEngine& diagnostic) {    \
            auto value = AttrDecoding<std::underlying_type_t<T>>::Decode(type, attr, diagnostic);            \
            return value ? std::optional<T>(static_cast<T>(*value)) : std::nullopt;                          \
        }                                                                                                    \
    }

namespace xla::ffi {

// One member of a struct: its name among the attributes.
template <typename T>
struct StructMember {
    using Type = T;
    std::string_view name;
};

namespace internal {
template <typename S, typename... T>
std::optional<S> DecodeStruct(XLA_FFI_AttrType type, void* attr, DiagnosticEngine& diagnostic, StructMember<T>... members) {
    auto dictionary = AttrDecoding<Dictionary>::Decode(type, attr, diagnostic);
    if (!dictionary) return std::nullopt;
    std::tuple<std::optional<T>...> values{dictionary->get<T>(members.name, diagnostic)...};
    return std::apply(
        [](auto&&... value) { return (true && ... && value.has_value()) ? std::optional<S>(S{*value...}) : std::nullopt; },
        values);
}
}  // namespace internal

}  // namespace xla::ffi

#define XLA_FFI_REGISTER_STRUCT_ATTR_DECODING(T, ...)                                                     \
    template <>                                                                                           \
    struct xla::ffi::AttrDecoding<T> {                                                                    \
        static std::optional<T> Decode(XLA_FFI_AttrType type, void* attr, DiagnosticEngine& diagnostic) { \
            return internal::DecodeStruct<T>(type, attr, diagnostic, __VA_ARGS__);                        \
        }                                                                                                 \
    }

#endif
