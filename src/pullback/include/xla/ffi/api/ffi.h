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

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "xla/ffi/api/c_api.h"

namespace xla::ffi {

// ---- element types ----

enum class DataType : uint8_t {
#define PULLBACK_FFI_TYPES(X)                                                                                        \
    X(INVALID) X(PRED) X(S1) X(S2) X(S4) X(S8) X(S16) X(S32) X(S64) X(U1) X(U2) X(U4) X(U8) X(U16) X(U32) X(U64)    \
    X(F16) X(F32) X(F64) X(BF16) X(C64) X(C128) X(TOKEN) X(F8E5M2) X(F8E4M3) X(F8E4M3FN) X(F8E4M3B11FNUZ)           \
    X(F8E5M2FNUZ) X(F8E4M3FNUZ) X(F8E3M4) X(F4E2M1FN) X(F8E8M0FNU)
#define PULLBACK_FFI_VALUE(name) name = XLA_FFI_DataType_##name,
    PULLBACK_FFI_TYPES(PULLBACK_FFI_VALUE)
#undef PULLBACK_FFI_VALUE
};
#define PULLBACK_FFI_NAME(name) inline constexpr DataType name = DataType::name;
PULLBACK_FFI_TYPES(PULLBACK_FFI_NAME)
#undef PULLBACK_FFI_NAME

inline std::string ToString(DataType type) {
    switch (type) {
#define PULLBACK_FFI_CASE(name) \
    case DataType::name: return #name;
        PULLBACK_FFI_TYPES(PULLBACK_FFI_CASE)
#undef PULLBACK_FFI_CASE
    }
    return "type " + std::to_string(int(type));
}
#undef PULLBACK_FFI_TYPES

namespace internal {
// The C++ type of elements; small floats are their bits.
template <DataType> struct Native { using type = uint8_t; };
#define PULLBACK_FFI_NATIVE(name, t) \
    template <> struct Native<DataType::name> { using type = t; };
PULLBACK_FFI_NATIVE(PRED, bool)
PULLBACK_FFI_NATIVE(S2, int8_t)
PULLBACK_FFI_NATIVE(S4, int8_t)
PULLBACK_FFI_NATIVE(S8, int8_t)
PULLBACK_FFI_NATIVE(S16, int16_t)
PULLBACK_FFI_NATIVE(S32, int32_t)
PULLBACK_FFI_NATIVE(S64, int64_t)
PULLBACK_FFI_NATIVE(U16, uint16_t)
PULLBACK_FFI_NATIVE(U32, uint32_t)
PULLBACK_FFI_NATIVE(U64, uint64_t)
PULLBACK_FFI_NATIVE(F16, uint16_t)
PULLBACK_FFI_NATIVE(BF16, uint16_t)
PULLBACK_FFI_NATIVE(F32, float)
PULLBACK_FFI_NATIVE(F64, double)
PULLBACK_FFI_NATIVE(C64, std::complex<float>)
PULLBACK_FFI_NATIVE(C128, std::complex<double>)
PULLBACK_FFI_NATIVE(TOKEN, void)
#undef PULLBACK_FFI_NATIVE
}  // namespace internal

template <DataType dtype> using NativeType = typename internal::Native<dtype>::type;

constexpr size_t ByteWidth(DataType type) {
    switch (type) {
        case DataType::INVALID:
        case DataType::TOKEN: return 0;
        case DataType::S16:
        case DataType::U16:
        case DataType::F16:
        case DataType::BF16: return 2;
        case DataType::S32:
        case DataType::U32:
        case DataType::F32: return 4;
        case DataType::S64:
        case DataType::U64:
        case DataType::F64:
        case DataType::C64: return 8;
        case DataType::C128: return 16;
        default: return 1;
    }
}

constexpr bool IsComplexType(DataType type) { return type == DataType::C64 || type == DataType::C128; }

namespace internal {
template <typename T> struct Type { static constexpr DataType value = DataType::INVALID; };
#define PULLBACK_FFI_TYPE(t, name) \
    template <> struct Type<t> { static constexpr DataType value = DataType::name; };
PULLBACK_FFI_TYPE(bool, PRED)
PULLBACK_FFI_TYPE(int8_t, S8)
PULLBACK_FFI_TYPE(int16_t, S16)
PULLBACK_FFI_TYPE(int32_t, S32)
PULLBACK_FFI_TYPE(int64_t, S64)
PULLBACK_FFI_TYPE(uint8_t, U8)
PULLBACK_FFI_TYPE(uint16_t, U16)
PULLBACK_FFI_TYPE(uint32_t, U32)
PULLBACK_FFI_TYPE(uint64_t, U64)
PULLBACK_FFI_TYPE(float, F32)
PULLBACK_FFI_TYPE(double, F64)
PULLBACK_FFI_TYPE(std::complex<float>, C64)
PULLBACK_FFI_TYPE(std::complex<double>, C128)
#undef PULLBACK_FFI_TYPE
}  // namespace internal

// ---- pieces of memory ----

template <typename T>
class Span {
  public:
    constexpr Span() = default;
    constexpr Span(T* data, size_t size) : data_(data), size_(size) {}
    constexpr Span(const std::vector<std::remove_const_t<T>>& v) : Span(v.data(), v.size()) {}  // NOLINT
    constexpr T& operator[](size_t i) const { return data_[i]; }
    constexpr bool operator==(const Span& other) const {
        if (size_ != other.size_) return false;
        for (size_t i = 0; i < size_; ++i)
            if (!(data_[i] == other.data_[i])) return false;
        return true;
    }
    constexpr T& front() const { return data_[0]; }
    constexpr T& back() const { return data_[size_ - 1]; }
    constexpr Span first(size_t n) const { return Span(data_, n); }
    constexpr Span last(size_t n) const { return Span(data_ + size_ - n, n); }
    constexpr size_t size() const { return size_; }
    constexpr bool empty() const { return size_ == 0; }
    constexpr T* data() const { return data_; }
    constexpr T* begin() const { return data_; }
    constexpr T* end() const { return data_ + size_; }

  private:
    T* data_ = nullptr;
    size_t size_ = 0;
};

// ---- errors ----

enum class ErrorCode : uint8_t {
    kOk = XLA_FFI_Error_Code_OK,
    kCancelled = XLA_FFI_Error_Code_CANCELLED,
    kUnknown = XLA_FFI_Error_Code_UNKNOWN,
    kInvalidArgument = XLA_FFI_Error_Code_INVALID_ARGUMENT,
    kDeadlineExceeded = XLA_FFI_Error_Code_DEADLINE_EXCEEDED,
    kNotFound = XLA_FFI_Error_Code_NOT_FOUND,
    kAlreadyExists = XLA_FFI_Error_Code_ALREADY_EXISTS,
    kPermissionDenied = XLA_FFI_Error_Code_PERMISSION_DENIED,
    kResourceExhausted = XLA_FFI_Error_Code_RESOURCE_EXHAUSTED,
    kFailedPrecondition = XLA_FFI_Error_Code_FAILED_PRECONDITION,
    kAborted = XLA_FFI_Error_Code_ABORTED,
    kOutOfRange = XLA_FFI_Error_Code_OUT_OF_RANGE,
    kUnimplemented = XLA_FFI_Error_Code_UNIMPLEMENTED,
    kInternal = XLA_FFI_Error_Code_INTERNAL,
    kUnavailable = XLA_FFI_Error_Code_UNAVAILABLE,
    kDataLoss = XLA_FFI_Error_Code_DATA_LOSS,
    kUnauthenticated = XLA_FFI_Error_Code_UNAUTHENTICATED,
};

class [[nodiscard]] Error {
  public:
    Error() = default;
    Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
    Error(XLA_FFI_Error_Code code, std::string message) : Error(ErrorCode(code), std::move(message)) {}
    static Error Success() { return {}; }
    static Error Internal(std::string m) { return {ErrorCode::kInternal, std::move(m)}; }
    static Error InvalidArgument(std::string m) { return {ErrorCode::kInvalidArgument, std::move(m)}; }
    bool success() const { return code_ == ErrorCode::kOk; }
    bool failure() const { return !success(); }
    std::optional<ErrorCode> errc() const { return success() ? std::nullopt : std::optional<ErrorCode>(code_); }
    ErrorCode code() const { return code_; }
    const std::string& message() const { return message_; }

  private:
    ErrorCode code_ = ErrorCode::kOk;
    std::string message_;
};

template <typename E>
class Unexpected {
  public:
    explicit Unexpected(E error) : error_(std::move(error)) {}
    E& value() { return error_; }
    const E& value() const { return error_; }

  private:
    E error_;
};
Unexpected(const char*) -> Unexpected<std::string>;

// A value, or what went wrong.
template <typename T, typename E>
class [[nodiscard]] Expected {
  public:
    Expected(T value) : data_(std::in_place_index<0>, std::move(value)) {}                         // NOLINT
    Expected(Unexpected<E> u) : data_(std::in_place_index<1>, std::move(u.value())) {}             // NOLINT
    Expected(E error) : data_(std::in_place_index<1>, std::move(error)) {}                         // NOLINT
    bool has_value() const { return data_.index() == 0; }
    bool has_error() const { return data_.index() == 1; }
    explicit operator bool() const { return has_value(); }
    T& value() { return std::get<0>(data_); }
    const T& value() const { return std::get<0>(data_); }
    E& error() { return std::get<1>(data_); }
    const E& error() const { return std::get<1>(data_); }
    T& operator*() { return value(); }
    const T& operator*() const { return value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

  private:
    std::variant<T, E> data_;
};

template <typename T> using ErrorOr = Expected<T, Error>;

// ---- what is wrong with a call, collected over all parameters ----

class DiagnosticEngine;

class InFlightDiagnostic {
  public:
    InFlightDiagnostic(DiagnosticEngine* engine, std::string text) : engine_(engine), text_(std::move(text)) {}
    InFlightDiagnostic& operator<<(std::string_view text) {
        text_ += text;
        return *this;
    }
    template <typename T> operator std::optional<T>() const;

  private:
    DiagnosticEngine* engine_;
    std::string text_;
};

class DiagnosticEngine {
  public:
    InFlightDiagnostic Emit(std::string text) { return {this, std::move(text)}; }
    void append(const std::string& text) { all_ += (all_.empty() ? "" : "; ") + text; }
    std::string Result() const { return all_; }

  private:
    std::string all_;
};

template <typename T>
InFlightDiagnostic::operator std::optional<T>() const {
    engine_->append(text_);
    return std::nullopt;
}

// ---- buffers ----

inline constexpr size_t kDynamicRank = std::numeric_limits<size_t>::max();
using Dims = Span<const int64_t>;

class AnyBuffer {
  public:
    using Dimensions = Dims;
    explicit AnyBuffer(const XLA_FFI_Buffer* buffer) : buffer_(buffer) {}
    DataType element_type() const { return DataType(buffer_->dtype); }
    Dimensions dimensions() const { return {buffer_->dims, size_t(buffer_->rank)}; }
    size_t rank() const { return size_t(buffer_->rank); }
    size_t element_count() const {
        size_t count = 1;
        for (int64_t size : dimensions()) count *= size_t(size);
        return count;
    }
    size_t size_bytes() const { return element_count() * ByteWidth(element_type()); }
    void* untyped_data() const { return buffer_->data; }
    // Null if the elements have another type.
    template <typename T> T* typed_data() const {
        return internal::Type<T>::value == element_type() ? static_cast<T*>(buffer_->data) : nullptr;
    }
    // Null if the elements have another width.
    template <typename T> T* reinterpret_data() const {
        return sizeof(T) == ByteWidth(element_type()) ? static_cast<T*>(buffer_->data) : nullptr;
    }

  protected:
    const XLA_FFI_Buffer* buffer_;
};

template <DataType dtype, size_t fixed_rank = kDynamicRank>
class Buffer : public AnyBuffer {
  public:
    using AnyBuffer::AnyBuffer;
    NativeType<dtype>* typed_data() const { return static_cast<NativeType<dtype>*>(buffer_->data); }
};

template <DataType dtype> using BufferR0 = Buffer<dtype, 0>;
template <DataType dtype> using BufferR1 = Buffer<dtype, 1>;
template <DataType dtype> using BufferR2 = Buffer<dtype, 2>;
template <DataType dtype> using BufferR3 = Buffer<dtype, 3>;
template <DataType dtype> using BufferR4 = Buffer<dtype, 4>;
using Token = BufferR0<DataType::TOKEN>;

// A result, written through -> or *.
template <typename T>
class Result {
  public:
    Result(T value) : value_(value) {}  // NOLINT
    T& operator*() { return value_; }
    T* operator->() { return &value_; }

  private:
    T value_;
};

template <DataType dtype, size_t rank = kDynamicRank> using ResultBuffer = Result<Buffer<dtype, rank>>;
template <DataType dtype> using ResultBufferR0 = ResultBuffer<dtype, 0>;
template <DataType dtype> using ResultBufferR1 = ResultBuffer<dtype, 1>;
template <DataType dtype> using ResultBufferR2 = ResultBuffer<dtype, 2>;
template <DataType dtype> using ResultBufferR3 = ResultBuffer<dtype, 3>;
template <DataType dtype> using ResultBufferR4 = ResultBuffer<dtype, 4>;

namespace internal {

// A buffer as B, if it has B's element type and rank.
template <typename B> struct AsBuffer;
template <> struct AsBuffer<AnyBuffer> {
    static std::optional<AnyBuffer> Get(const XLA_FFI_Buffer* buffer, DiagnosticEngine&) { return AnyBuffer(buffer); }
};
template <DataType dtype, size_t rank> struct AsBuffer<Buffer<dtype, rank>> {
    static std::optional<Buffer<dtype, rank>> Get(const XLA_FFI_Buffer* buffer, DiagnosticEngine& diagnostic) {
        if (DataType(buffer->dtype) != dtype)
            return diagnostic.Emit("Wrong buffer dtype: expected " + ToString(dtype) + " but got " +
                                   ToString(DataType(buffer->dtype)));
        if (rank != kDynamicRank && size_t(buffer->rank) != rank)
            return diagnostic.Emit("Wrong buffer rank: expected " + std::to_string(rank) + " but got " +
                                   std::to_string(buffer->rank));
        return Buffer<dtype, rank>(buffer);
    }
};

template <typename T>
ErrorOr<T> OrError(std::optional<T> value, const DiagnosticEngine& diagnostic) {
    if (value.has_value()) return *std::move(value);
    return Error(ErrorCode::kInvalidArgument, diagnostic.Result());
}

}  // namespace internal

// The arguments that no parameter names.
class RemainingArgs {
  public:
    RemainingArgs(const XLA_FFI_Args* args, size_t first) : args_(args), first_(first) {}
    size_t size() const { return size_t(args_->size) - first_; }
    bool empty() const { return size() == 0; }
    template <typename T> ErrorOr<T> get(size_t i) const {
        DiagnosticEngine diagnostic;
        if (i >= size()) return Error(ErrorCode::kInvalidArgument, "Index out of range: " + std::to_string(i));
        auto* buffer = static_cast<const XLA_FFI_Buffer*>(args_->args[first_ + i]);
        return internal::OrError(internal::AsBuffer<T>::Get(buffer, diagnostic), diagnostic);
    }

  private:
    const XLA_FFI_Args* args_;
    size_t first_;
};

class RemainingRets {
  public:
    RemainingRets(const XLA_FFI_Rets* rets, size_t first) : rets_(rets), first_(first) {}
    size_t size() const { return size_t(rets_->size) - first_; }
    bool empty() const { return size() == 0; }
    template <typename T> ErrorOr<Result<T>> get(size_t i) const {
        DiagnosticEngine diagnostic;
        if (i >= size()) return Error(ErrorCode::kInvalidArgument, "Index out of range: " + std::to_string(i));
        auto* buffer = static_cast<const XLA_FFI_Buffer*>(rets_->rets[first_ + i]);
        auto found = internal::AsBuffer<T>::Get(buffer, diagnostic);
        if (!found) return Error(ErrorCode::kInvalidArgument, diagnostic.Result());
        return Result<T>(*found);
    }

  private:
    const XLA_FFI_Rets* rets_;
    size_t first_;
};

// ---- attributes: a type that users add has `static std::optional<T> Decode(XLA_FFI_AttrType, void*, DiagnosticEngine&)` in
// a specialization of AttrDecoding<T> ----

template <typename T, typename = void> struct AttrDecoding;

template <typename T>
struct AttrDecoding<T, std::enable_if_t<internal::Type<T>::value != DataType::INVALID>> {
    static std::optional<T> Decode(XLA_FFI_AttrType type, void* attr, DiagnosticEngine& diagnostic) {
        if (type != XLA_FFI_AttrType_SCALAR) return diagnostic.Emit("Wrong attribute type: expected scalar");
        auto* scalar = static_cast<XLA_FFI_Scalar*>(attr);
        if (DataType(scalar->dtype) != internal::Type<T>::value)
            return diagnostic.Emit("Wrong scalar data type: expected " + ToString(internal::Type<T>::value) +
                                   " but got " + ToString(DataType(scalar->dtype)));
        T value;
        std::memcpy(&value, scalar->value, sizeof(T));
        return value;
    }
};

template <typename T>
struct AttrDecoding<Span<const T>> {
    static std::optional<Span<const T>> Decode(XLA_FFI_AttrType type, void* attr, DiagnosticEngine& diagnostic) {
        if (type != XLA_FFI_AttrType_ARRAY) return diagnostic.Emit("Wrong attribute type: expected array");
        auto* array = static_cast<XLA_FFI_Array*>(attr);
        if (DataType(array->dtype) != internal::Type<T>::value)
            return diagnostic.Emit("Wrong array data type: expected " + ToString(internal::Type<T>::value) +
                                   " but got " + ToString(DataType(array->dtype)));
        return Span<const T>(static_cast<const T*>(array->data), array->size);
    }
};

template <>
struct AttrDecoding<std::string_view> {
    static std::optional<std::string_view> Decode(XLA_FFI_AttrType type, void* attr, DiagnosticEngine& diagnostic) {
        if (type != XLA_FFI_AttrType_STRING) return diagnostic.Emit("Wrong attribute type: expected string");
        auto* span = static_cast<XLA_FFI_ByteSpan*>(attr);
        return std::string_view(span->ptr, span->len);
    }
};

template <>
struct AttrDecoding<std::string> {
    static std::optional<std::string> Decode(XLA_FFI_AttrType type, void* attr, DiagnosticEngine& diagnostic) {
        auto view = AttrDecoding<std::string_view>::Decode(type, attr, diagnostic);
        return view ? std::optional<std::string>(std::string(*view)) : std::nullopt;
    }
};

// A pointer that was passed as an integer.
template <typename T> struct Pointer {};
template <typename T>
struct AttrDecoding<Pointer<T>> {
    static std::optional<T*> Decode(XLA_FFI_AttrType type, void* attr, DiagnosticEngine& diagnostic) {
        auto number = AttrDecoding<int64_t>::Decode(type, attr, diagnostic);
        return number ? std::optional<T*>(reinterpret_cast<T*>(static_cast<intptr_t>(*number))) : std::nullopt;
    }
};

class Dictionary {
  public:
    explicit Dictionary(const XLA_FFI_Attrs* attrs) : attrs_(attrs) {}
    size_t size() const { return size_t(attrs_->size); }
    bool contains(std::string_view name) const { return find(name) < size(); }
    template <typename T> ErrorOr<T> get(std::string_view name) const {
        DiagnosticEngine diagnostic;
        return internal::OrError(get<T>(name, diagnostic), diagnostic);
    }
    template <typename T> std::optional<T> get(std::string_view name, DiagnosticEngine& diagnostic) const {
        size_t i = find(name);
        if (i == size()) return diagnostic.Emit("Unexpected attribute: " + std::string(name));
        return AttrDecoding<T>::Decode(attrs_->types[i], attrs_->attrs[i], diagnostic);
    }

  private:
    size_t find(std::string_view name) const {
        for (size_t i = 0; i < size(); ++i)
            if (std::string_view(attrs_->names[i]->ptr, attrs_->names[i]->len) == name) return i;
        return size();
    }
    const XLA_FFI_Attrs* attrs_;
};

template <>
struct AttrDecoding<Dictionary> {
    static std::optional<Dictionary> Decode(XLA_FFI_AttrType type, void* attr, DiagnosticEngine& diagnostic) {
        if (type != XLA_FFI_AttrType_DICTIONARY) return diagnostic.Emit("Wrong attribute type: expected dictionary");
        return Dictionary(static_cast<XLA_FFI_Attrs*>(attr));
    }
};

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
