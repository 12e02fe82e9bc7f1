// Foreign functions as users write them: what tests/api/test_ffi.py compiles and calls.
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "xla/ffi/api/c_api.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// Rows divided by their root mean square.
ffi::Error Normalize(float eps, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
    auto dims = x.dimensions();
    if (dims.empty()) return ffi::Error::InvalidArgument("x must have an axis");
    const int64_t width = dims.back(), rows = width ? int64_t(x.element_count()) / width : 0;
    for (int64_t r = 0; r < rows; ++r) {
        float squares = 0;
        for (int64_t i = 0; i < width; ++i) squares += x.typed_data()[r * width + i] * x.typed_data()[r * width + i];
        const float scale = 1 / std::sqrt(squares / float(width) + eps);
        for (int64_t i = 0; i < width; ++i) y->typed_data()[r * width + i] = x.typed_data()[r * width + i] * scale;
    }
    return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(NormalizeHandler, Normalize,
                              ffi::Ffi::Bind()
                                  .Attr<float>("eps")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

// What each attribute was, as numbers.
enum class Mode : int32_t { kPlain = 0, kOther = 7 };
struct Pair {
    int64_t first;
    double second;
};
XLA_FFI_REGISTER_ENUM_ATTR_DECODING(Mode);
XLA_FFI_REGISTER_STRUCT_ATTR_DECODING(Pair, StructMember<int64_t>{"first"}, StructMember<double>{"second"});

ffi::Error Attributes(int64_t integer, double real, bool flag, std::string_view text, ffi::Span<const int32_t> array,
                      Pair pair, Mode mode, ffi::ResultBufferR1<ffi::F64> out) {
    double* y = out->typed_data();
    y[0] = double(integer);
    y[1] = real;
    y[2] = flag;
    y[3] = double(text.size());
    y[4] = double(std::accumulate(array.begin(), array.end(), 0));
    y[5] = double(pair.first) + pair.second;
    y[6] = double(mode);
    return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(AttributesHandler, Attributes,
                              ffi::Ffi::Bind()
                                  .Attr<int64_t>("integer")
                                  .Attr<double>("real")
                                  .Attr<bool>("flag")
                                  .Attr<std::string_view>("text")
                                  .Attr<ffi::Span<const int32_t>>("array")
                                  .Attr<Pair>("pair")
                                  .Attr<Mode>("mode")
                                  .Ret<ffi::BufferR1<ffi::F64>>());

// The sum of any number of arguments, in each of any number of results.
ffi::Error SumAll(ffi::RemainingArgs args, ffi::RemainingRets rets, ffi::Dictionary attrs) {
    auto scale = attrs.get<float>("scale");
    if (scale.has_error()) return scale.error();
    float sum = 0;
    for (size_t k = 0; k < args.size(); ++k) {
        auto x = args.get<ffi::Buffer<ffi::F32>>(k);
        if (x.has_error()) return x.error();
        for (size_t i = 0; i < x->element_count(); ++i) sum += x->typed_data()[i];
    }
    for (size_t k = 0; k < rets.size(); ++k) {
        auto y = rets.get<ffi::BufferR0<ffi::F32>>(k);
        if (y.has_error()) return y.error();
        *(*y)->typed_data() = sum * *scale;
    }
    return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(SumAllHandler, SumAll, ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attrs());

// How often this place of a program was called: a state that lives as long as the program.
struct Counter {
    static ffi::TypeId id;
    static int alive;
    int32_t calls = 0;
    Counter() { ++alive; }
    ~Counter() { --alive; }
};
ffi::TypeId Counter::id = {};
int Counter::alive = 0;
static ffi::TypeInfo counter_info = ffi::MakeTypeInfo<Counter>();

ffi::ErrorOr<std::unique_ptr<Counter>> MakeCounter() { return std::make_unique<Counter>(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(MakeCounterHandler, MakeCounter, ffi::Ffi::Bind<ffi::ExecutionStage::kInstantiate>());

ffi::Error Count(Counter* counter, ffi::ResultBufferR0<ffi::S32> out) {
    *out->typed_data() = ++counter->calls;
    return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(CountHandler, Count,
                              ffi::Ffi::Bind().Ctx<ffi::State<Counter>>().Ret<ffi::BufferR0<ffi::S32>>());

// Through scratch memory and tasks.
ffi::Error Halves(ffi::ScratchAllocator scratch, ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
    auto held = scratch.Allocate(x.size_bytes());
    if (!held) return ffi::Error(ffi::ErrorCode::kResourceExhausted, "no memory");
    if (pool.num_threads() < 1) return ffi::Error::Internal("no threads");
    auto* in = x.typed_data<double>();
    if (!in) return ffi::Error(ffi::ErrorCode::kUnimplemented, "only F64, got " + ffi::ToString(x.element_type()));
    auto* copy = static_cast<double*>(*held);
    const size_t n = x.element_count();
    pool.Schedule([=] {
        for (size_t i = 0; i < n; ++i) copy[i] = in[i] / 2;
    });
    std::memcpy(y->untyped_data(), copy, x.size_bytes());
    return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(HalvesHandler, Halves,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Ctx<ffi::ThreadPool>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>());

// Element (i, j) of a matrix that lies column by column.
ffi::Error Columns(ffi::BufferR2<ffi::F32> x, ffi::ResultBufferR2<ffi::F32> y) {
    auto rows = x.dimensions()[0], columns = x.dimensions()[1];
    for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = 0; i < rows; ++i) y->typed_data()[j * rows + i] = x.typed_data()[j * rows + i] + float(100 * i + j);
    return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(ColumnsHandler, Columns);

// In place: 1 is added to memory that argument and result share.
ffi::Error AddOne(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
    if (x.typed_data() != y->typed_data()) return ffi::Error::Internal("x and y are apart");
    for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] += 1;
    return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(AddOneHandler, AddOne);

extern "C" {
PULLBACK_FFI_VISIBLE ffi::TypeId* CounterId() { return &Counter::id; }
PULLBACK_FFI_VISIBLE ffi::TypeInfo* CounterInfo() { return &counter_info; }
PULLBACK_FFI_VISIBLE int CountersAlive() { return Counter::alive; }

// A plain C function: out = in[0] * in[1], three of each.
PULLBACK_FFI_VISIBLE void MultiplyThree(void* out, const void** in) {
    for (int i = 0; i < 3; ++i)
        static_cast<float*>(out)[i] = static_cast<const float*>(in[0])[i] * static_cast<const float*>(in[1])[i];
}

// By the C interface alone: a result that is there only after the handler has returned.
PULLBACK_FFI_VISIBLE XLA_FFI_Error* Later(XLA_FFI_CallFrame* frame) {
    XLA_FFI_Future_Create_Args create = {sizeof(create), nullptr, nullptr};
    if (XLA_FFI_Error* error = frame->api->XLA_FFI_Future_Create(&create)) return error;
    frame->future = create.future;
    *static_cast<float*>(static_cast<XLA_FFI_Buffer*>(frame->rets.rets[0])->data) = 42;
    XLA_FFI_Future_SetAvailable_Args set = {XLA_FFI_Future_SetAvailable_Args_STRUCT_SIZE, nullptr, create.future};
    return frame->api->XLA_FFI_Future_SetAvailable(&set);
}
}
