#include "programs/plan_loops.h"

#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

namespace pb {
namespace {

struct alignas(8) Sixteen {
    uint64_t low, high;
};

template <typename T>
int copy(void*, char* const* data, const npy_intp* dimensions, const npy_intp* strides, void*) {
    const char* in = data[0];
    char* out = data[1];
    npy_intp n = dimensions[0], in_step = strides[0], out_step = strides[1];
    if (in_step == sizeof(T) && out_step == sizeof(T)) {
        memcpy(out, in, size_t(n) * sizeof(T));
        return 0;
    }
    for (npy_intp i = 0; i < n; ++i, in += in_step, out += out_step) {
        T value;
        memcpy(&value, in, sizeof(T));
        memcpy(out, &value, sizeof(T));
    }
    return 0;
}

template <typename T>
int select(void*, char* const* data, const npy_intp* dimensions, const npy_intp* strides, void*) {
    const char *which = data[0], *no = data[1], *yes = data[2];
    char* out = data[3];
    for (npy_intp i = 0, n = dimensions[0]; i < n; ++i) {
        T value;
        memcpy(&value, *which ? yes : no, sizeof(T));
        memcpy(out, &value, sizeof(T));
        which += strides[0], no += strides[1], yes += strides[2], out += strides[3];
    }
    return 0;
}

template <typename T>
constexpr bool is_complex = false;
template <typename T>
constexpr bool is_complex<std::complex<T>> = true;

template <typename From, typename To>
inline To converted(From x) {
    if constexpr (is_complex<To>) {
        using Part = typename To::value_type;
        if constexpr (is_complex<From>) return To(Part(x.real()), Part(x.imag()));
        else return To(Part(x), Part(0));
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
        if (x != x) return 0;
        // 2^digits is exact in both float types; the largest integer of a type may not be.
        constexpr From above = From(2) * From(uint64_t(1) << (std::numeric_limits<To>::digits - 1));
        constexpr From below = std::is_signed_v<To> ? -above : From(0);
        if (x >= above) return std::numeric_limits<To>::max();
        if (x <= below) return std::numeric_limits<To>::min();
        return To(x);
    } else {
        return To(x);
    }
}

template <typename From, typename To>
int convert(void*, char* const* data, const npy_intp* dimensions, const npy_intp* strides, void*) {
    const char* in = data[0];
    char* out = data[1];
    for (npy_intp i = 0, n = dimensions[0]; i < n; ++i, in += strides[0], out += strides[1]) {
        From x;
        memcpy(&x, in, sizeof x);
        To y = converted<From, To>(x);
        memcpy(out, &y, sizeof y);
    }
    return 0;
}

template <typename From>
int to_bool(void*, char* const* data, const npy_intp* dimensions, const npy_intp* strides, void*) {
    const char* in = data[0];
    char* out = data[1];
    for (npy_intp i = 0, n = dimensions[0]; i < n; ++i, in += strides[0], out += strides[1]) {
        From x;
        memcpy(&x, in, sizeof x);
        *out = x != From(0);
    }
    return 0;
}

template <typename From>
StridedLoop* from_type(int to) {
    if constexpr (is_complex<From>) {
        switch (to) {
            case NPY_BOOL: return to_bool<From>;
            case NPY_CFLOAT: return convert<From, std::complex<float>>;
            case NPY_CDOUBLE: return convert<From, std::complex<double>>;
            default: return nullptr;  // the imaginary part is dropped by the reference
        }
    } else {
        switch (to) {
            case NPY_BOOL: return to_bool<From>;
            case NPY_BYTE: return convert<From, int8_t>;
            case NPY_SHORT: return convert<From, int16_t>;
            case NPY_INT: return convert<From, int32_t>;
            case NPY_LONG: return convert<From, int64_t>;
            case NPY_UBYTE: return convert<From, uint8_t>;
            case NPY_USHORT: return convert<From, uint16_t>;
            case NPY_UINT: return convert<From, uint32_t>;
            case NPY_ULONG: return convert<From, uint64_t>;
            case NPY_FLOAT: return convert<From, float>;
            case NPY_DOUBLE: return convert<From, double>;
            case NPY_CFLOAT: return convert<From, std::complex<float>>;
            case NPY_CDOUBLE: return convert<From, std::complex<double>>;
            default: return nullptr;
        }
    }
}

}  // namespace

StridedLoop* copy_loop(npy_intp itemsize) {
    switch (itemsize) {
        case 1: return copy<uint8_t>;
        case 2: return copy<uint16_t>;
        case 4: return copy<uint32_t>;
        case 8: return copy<uint64_t>;
        case 16: return copy<Sixteen>;
        default: return nullptr;
    }
}

StridedLoop* select_loop(npy_intp itemsize) {
    switch (itemsize) {
        case 1: return select<uint8_t>;
        case 2: return select<uint16_t>;
        case 4: return select<uint32_t>;
        case 8: return select<uint64_t>;
        case 16: return select<Sixteen>;
        default: return nullptr;
    }
}

StridedLoop* convert_loop(int from, int to) {
    static_assert(sizeof(npy_long) == 8 && sizeof(npy_int) == 4);
    switch (from) {
        case NPY_BOOL: return from_type<uint8_t>(to);
        case NPY_BYTE: return from_type<int8_t>(to);
        case NPY_SHORT: return from_type<int16_t>(to);
        case NPY_INT: return from_type<int32_t>(to);
        case NPY_LONG: return from_type<int64_t>(to);
        case NPY_UBYTE: return from_type<uint8_t>(to);
        case NPY_USHORT: return from_type<uint16_t>(to);
        case NPY_UINT: return from_type<uint32_t>(to);
        case NPY_ULONG: return from_type<uint64_t>(to);
        case NPY_FLOAT: return from_type<float>(to);
        case NPY_DOUBLE: return from_type<double>(to);
        case NPY_CFLOAT: return from_type<std::complex<float>>(to);
        case NPY_CDOUBLE: return from_type<std::complex<double>>(to);
        default: return nullptr;
    }
}

}  // namespace pb
