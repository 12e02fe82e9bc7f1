// Numbers as unsigned integers in the same order, for sorts that look at digits.
//
// NaN comes last, whatever its sign and bits; -0 and 0 are equal. So a float's key does not tell all of its bits: what
// is written back is read from the original wherever that matters (`is_special`).
#pragma once
#include <cstdint>
#include <type_traits>

namespace pb {

template <class RawT>
using key_type = std::conditional_t<sizeof(RawT) == 8, uint64_t, uint32_t>;

// A kind is an object: what its members tell apart (signed integers from unsigned ones, float16 from bfloat16) shares
// code, a hundred functions. encode: element -> key; decode: key -> element with that key.
template <class RawT>
struct IntegerKind {
    using Raw = RawT;  // unsigned, of the same size
    using Key = key_type<Raw>;
    static constexpr Raw kSign = Raw(Raw(1) << (8 * sizeof(Raw) - 1));
    static constexpr bool has_specials = false;
    Raw flipped;  // kSign of signed ones, else 0
    bool is_signed() const { return flipped; }
    Key encode(Raw x) const { return Raw(x ^ flipped); }
    Raw decode(Key key) const { return Raw(key) ^ flipped; }
    static bool is_special(Raw) { return false; }
};

template <class RawT>
struct FloatKind {
    using Raw = RawT;
    using Number = std::conditional_t<sizeof(Raw) == 8, double, float>;  // of kinds of 4 and 8 bytes
    using Key = key_type<Raw>;
    static constexpr int kSignBit = 8 * sizeof(Raw) - 1;
    static constexpr Raw kSign = Raw(Raw(1) << (8 * sizeof(Raw) - 1));
    static constexpr bool has_specials = true;
    Raw infinity;  // its bits: more than these, apart from the sign, is NaN
    // Masks instead of choices: signs are random, and a branch would often be mispredicted.
    static Raw mask(bool is) { return Raw(-Raw(is)); }
    Key encode(Raw x) const {
        Raw magnitude = x & Raw(~kSign);
        Raw key = x ^ Raw(mask(x >> kSignBit) | kSign);
        key ^= mask(x == kSign);  // 0x7f... to 0x80...
        return Raw(key | mask(magnitude > infinity));
    }
    Raw decode(Key key) const { return Raw(key) ^ Raw(mask(!(Raw(key) >> kSignBit)) | kSign); }
    bool is_special(Raw x) const { return (x == kSign) | (Raw(x & Raw(~kSign)) > infinity); }
};

// Floats in their total order, which is that of their bits: -NaN, -inf, ..., -0, 0, ..., inf, NaN.
template <class RawT>
struct TotalKind {
    using Raw = RawT;
    using Key = key_type<Raw>;
    static constexpr int kSignBit = 8 * sizeof(Raw) - 1;
    static constexpr Raw kSign = Raw(Raw(1) << kSignBit);
    Key encode(Raw x) const { return Raw(x ^ Raw(Raw(-Raw(x >> kSignBit)) | kSign)); }
};

// The numbers by which compiled programs name the types of elements.
enum : int64_t { kU8, kU16, kU32, kU64, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64 };

// function(kind) for the kind of that number; of_floats(bits of infinity) is the kind of floats.
template <class Function, class OfFloats>
void with_kind(int64_t number, Function function, OfFloats of_floats) {
    const bool is_signed = number >= kI8;
    const auto integers = [&](auto zero) {
        using Kind = IntegerKind<decltype(zero)>;
        function(Kind{is_signed ? Kind::kSign : decltype(zero)(0)});
    };
    switch (number) {
        case kU8:
        case kI8: return integers(uint8_t(0));
        case kU16:
        case kI16: return integers(uint16_t(0));
        case kU32:
        case kI32: return integers(uint32_t(0));
        case kU64:
        case kI64: return integers(uint64_t(0));
        case kF16:
        case kBF16: return function(of_floats(uint16_t(number == kF16 ? 0x7c00 : 0x7f80)));
        case kF32: return function(of_floats(uint32_t(0x7f800000)));
        case kF64: return function(of_floats(uint64_t(0x7ff0000000000000)));
    }
}

template <class Function>
void with_kind(int64_t number, Function function) {
    with_kind(number, function, [](auto infinity) { return FloatKind<decltype(infinity)>{infinity}; });
}

template <class Function>
void with_total_kind(int64_t number, Function function) {
    with_kind(number, function, [](auto infinity) { return TotalKind<decltype(infinity)>{}; });
}

}  // namespace pb
