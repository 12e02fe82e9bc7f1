#include "collectives/reduce.h"

#include <complex>
#include <cstring>
#include <type_traits>

namespace pb {
namespace {

// The upper half of a float, rounded to nearest even.
struct Bf16 {
    uint16_t bits;
    operator float() const {
        uint32_t wide = uint32_t(bits) << 16;
        float value;
        memcpy(&value, &wide, 4);
        return value;
    }
    static Bf16 from(float value) {
        uint32_t wide;
        memcpy(&wide, &value, 4);
        if ((wide & 0x7fffffffu) > 0x7f800000u) return {uint16_t((wide >> 16) | 0x40)};  // nan stays nan
        return {uint16_t((wide + 0x7fffu + ((wide >> 16) & 1)) >> 16)};
    }
};

template <typename T>
constexpr bool is_complex = false;
template <typename T>
constexpr bool is_complex<std::complex<T>> = true;

template <Combine how, typename T>
T combined(T a, T b) {
    if constexpr (std::is_same_v<T, Bf16>) {
        return Bf16::from(combined<how, float>(a, b));
    } else if constexpr (how == Combine::sum || how == Combine::product) {
        if constexpr (std::is_integral_v<T>) {  // wraps around
            using U = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
            return T(how == Combine::sum ? U(a) + U(b) : U(a) * U(b));
        } else if constexpr (is_complex<T> && how == Combine::product) {  // without the library's care for infinities
            return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
        } else {
            if constexpr (how == Combine::sum) return a + b;
            else return a * b;
        }
    } else if constexpr (how == Combine::maximum) {
        return a > b || a != a ? a : b;
    } else if constexpr (how == Combine::minimum) {
        return a < b || a != a ? a : b;
    } else if constexpr (how == Combine::bitwise_and) {
        return T(a & b);
    } else if constexpr (how == Combine::bitwise_or) {
        return T(a | b);
    } else {
        return T(a ^ b);
    }
}

template <Combine how, typename T>
void combine_all(const void* a, const void* b, void* out, size_t count) {
    auto* x = static_cast<const T*>(a);
    auto* y = static_cast<const T*>(b);
    auto* z = static_cast<T*>(out);
    for (size_t i = 0; i < count; ++i) z[i] = combined<how, T>(x[i], y[i]);
}

template <typename T>
Combiner of_type(Combine how) {
    constexpr bool is_integer = std::is_integral_v<T>;
    switch (how) {
        case Combine::sum: return combine_all<Combine::sum, T>;
        case Combine::product: return combine_all<Combine::product, T>;
        case Combine::maximum:
            if constexpr (!is_complex<T>) return combine_all<Combine::maximum, T>;
            break;
        case Combine::minimum:
            if constexpr (!is_complex<T>) return combine_all<Combine::minimum, T>;
            break;
        case Combine::bitwise_and:
            if constexpr (is_integer) return combine_all<Combine::bitwise_and, T>;
            break;
        case Combine::bitwise_or:
            if constexpr (is_integer) return combine_all<Combine::bitwise_or, T>;
            break;
        case Combine::bitwise_xor:
            if constexpr (is_integer) return combine_all<Combine::bitwise_xor, T>;
            break;
        default: break;
    }
    return nullptr;
}

}  // namespace

size_t element_bytes(Element type) {
    constexpr size_t kBytes[] = {1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 8, 16};
    return kBytes[int(type)];
}

Combiner combiner(Combine how, Element type) {
    switch (type) {
        case Element::i8: return of_type<int8_t>(how);
        case Element::i16: return of_type<int16_t>(how);
        case Element::i32: return of_type<int32_t>(how);
        case Element::i64: return of_type<int64_t>(how);
        case Element::u8: return of_type<uint8_t>(how);
        case Element::u16: return of_type<uint16_t>(how);
        case Element::u32: return of_type<uint32_t>(how);
        case Element::u64: return of_type<uint64_t>(how);
        case Element::bf16: return of_type<Bf16>(how);
        case Element::f32: return of_type<float>(how);
        case Element::f64: return of_type<double>(how);
        case Element::c64: return of_type<std::complex<float>>(how);
        case Element::c128: return of_type<std::complex<double>>(how);
        default: return nullptr;
    }
}

}  // namespace pb
