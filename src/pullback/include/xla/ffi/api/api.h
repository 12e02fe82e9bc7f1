// What values of a foreign call are in C++17: element types, spans, errors, buffers, attributes. Included by ffi.h, which
// has the bindings of functions; the names are those of OpenXLA's headers.
#ifndef PULLBACK_XLA_FFI_API_API_H_
#define PULLBACK_XLA_FFI_API_API_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
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

}  // namespace xla::ffi

#endif
