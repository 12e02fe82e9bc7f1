// Numbers as unsigned integers in the same order, for sorts that look at digits.
//
// NaN comes last, whatever its sign and bits; -0 and 0 are equal. So a float's key does not tell all of its bits: what
// is written back is read from the original wherever that matters (`is_special`).
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace pb {

template <class RawT>
using key_type = std::conditional_t<sizeof(RawT) == 8, uint64_t, uint32_t>;

// encode: element -> key; decode: key -> element with that key; before: the order, on elements as they are.
template <class RawT>
struct UnsignedKind {
    using Raw = RawT;
    using Number = RawT;
    using Key = key_type<Raw>;
    static Key encode(Raw x) { return x; }
    static Raw decode(Key key) { return Raw(key); }
    static constexpr bool has_specials = false;
    static bool is_special(Raw) { return false; }
};

template <class RawT>
struct SignedKind {
    using Raw = RawT;  // unsigned, of the same size
    using Number = std::make_signed_t<Raw>;
    using Key = key_type<Raw>;
    static constexpr Raw kSign = Raw(Raw(1) << (8 * sizeof(Raw) - 1));
    static Key encode(Raw x) { return Raw(x ^ kSign); }
    static Raw decode(Key key) { return Raw(key) ^ kSign; }
    static constexpr bool has_specials = false;
    static bool is_special(Raw) { return false; }
};

// `infinity`: the bits of +infinity; more than these, apart from the sign, is NaN.
template <class RawT, RawT infinity>
struct FloatKind {
    using Raw = RawT;
    using Number = std::conditional_t<sizeof(Raw) == 8, double, float>;  // of kinds of 4 and 8 bytes
    using Key = key_type<Raw>;
    static constexpr int kSignBit = 8 * sizeof(Raw) - 1;
    static constexpr Raw kSign = Raw(Raw(1) << (8 * sizeof(Raw) - 1));
    // Masks instead of choices: signs are random, and a branch would often be mispredicted.
    static Raw mask(bool is) { return Raw(-Raw(is)); }
    static Key encode(Raw x) {
        Raw magnitude = x & Raw(~kSign);
        Raw key = x ^ Raw(mask(x >> kSignBit) | kSign);
        key ^= mask(x == kSign);  // 0x7f... to 0x80...
        return Raw(key | mask(magnitude > infinity));
    }
    static Raw decode(Key key) { return Raw(key) ^ Raw(mask(!(Raw(key) >> kSignBit)) | kSign); }
    static constexpr bool has_specials = true;
    static bool is_special(Raw x) { return (x == kSign) | (Raw(x & Raw(~kSign)) > infinity); }
};

// The numbers by which compiled programs name the types of elements.
enum : int64_t { kU8, kU16, kU32, kU64, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64 };

// function(Kind{}) for the kind of that number.
template <class Function>
void with_kind(int64_t number, Function function) {
    switch (number) {
        case kU8: return function(UnsignedKind<uint8_t>{});
        case kU16: return function(UnsignedKind<uint16_t>{});
        case kU32: return function(UnsignedKind<uint32_t>{});
        case kU64: return function(UnsignedKind<uint64_t>{});
        case kI8: return function(SignedKind<uint8_t>{});
        case kI16: return function(SignedKind<uint16_t>{});
        case kI32: return function(SignedKind<uint32_t>{});
        case kI64: return function(SignedKind<uint64_t>{});
        case kF16: return function(FloatKind<uint16_t, 0x7c00>{});
        case kBF16: return function(FloatKind<uint16_t, 0x7f80>{});
        case kF32: return function(FloatKind<uint32_t, 0x7f800000>{});
        case kF64: return function(FloatKind<uint64_t, 0x7ff0000000000000>{});
    }
}

}  // namespace pb
