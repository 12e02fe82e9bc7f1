// Runs of programs: memory of results and scratch, pins, frames, errors. See executable.h.
#include <cstring>
#include <memory>

#include "arrays/allocator.h"
#include "programs/apart.h"
#include "calls/call_arguments.h"
#include "arrays/donation.h"
#include "programs/executable.h"
#include "programs/spans.h"
#include "threads/fork_gate.h"
#include "gil.h"
#include "arrays/placement.h"
#include "ref.h"
#include "small_vector.h"
#include "threads/float_mode.h"
#include "threads/thread_pool.h"

namespace pb {
namespace {

Array* make_output(const Program& p, size_t o, const Arguments& arguments) {
    AvalInfo* info = retain_info(p.out[o]);
    int64_t from = p.forward[o];
    if (from < 0) return new_array(info);
    size_t n = p.in.size();
    Array* source = size_t(from) < n ? arguments.arrays[size_t(from)] : p.constants[size_t(from) - n];
    if (source) return new_array_sharing(info, source);
    Array* copy = new_array(info);
    if (copy && info->nbytes) memcpy(copy->data, arguments.data[size_t(from)], size_t(info->nbytes));
    return copy;
}

// One run; what it has taken is given back at its end. GIL held but for `compute`.
class Run {
  public:
    Run(Executable* executable, const Program& program, const Arguments& arguments, PyObject** outputs)
        : executable_(executable),
          keep_(Ref::borrow(reinterpret_cast<PyObject*>(executable))),
          p_(program),
          arguments_(arguments),
          outputs_(outputs),
          pointers_(p_.in.size() + p_.constants.size() + p_.out.size() + 1) {}

    ~Run() {
        if (arena_) deallocate(arena_, p_.arena_bytes);
        for (size_t i = 0; i < pinned_; ++i)
            if (Array* a = arguments_.arrays[i]) unpin(a);
        while (made_) Py_DECREF(outputs_[--made_]);
    }

    // Makes results and scratch memory; false with an error set.
    bool prepare();

    // Runs the code; its return code.
    int compute() {
        FlushDenormals flush;
        return p_.blocks ? run_blocks(*p_.blocks, p_.function, in()) : p_.function(in(), out(), arena_);
    }
    bool compute_plan() {
        FlushDenormals flush;
        return run_plan(*p_.plan, in());
    }

    void delete_donated() { pb::delete_donated(p_, arguments_.arrays.data()); }
    // Leaves the results to the caller.
    bool succeed() {
        if (!placement_.apply(outputs_, p_.out.size())) return false;
        made_ = 0;
        return true;
    }
    // What is to be done after the code has run: true, or false with an error set.
    bool finish(int code, Frame& frame) {
        delete_donated();
        if (code == 0 && !frame.exception) return succeed();
        frame.raise(code, PyUnicode_AsUTF8(executable_->name));
        return false;
    }

  private:
    void** in() { return pointers_.data(); }
    void** out() { return in() + p_.in.size() + p_.constants.size(); }

    Executable* executable_;
    Placement placement_;
    Ref keep_;
    const Program& p_;
    const Arguments& arguments_;
    PyObject** outputs_;
    SmallVector<void*, 48> pointers_;
    size_t made_ = 0;    // outputs that exist
    size_t pinned_ = 0;  // inputs that are pinned
    void* arena_ = nullptr;
};

bool Run::prepare() {
    const size_t n_in = p_.in.size(), n_out = p_.out.size();
    Array* const* arrays = arguments_.arrays.data();
    if (n_in) memcpy(in(), arguments_.data.data(), n_in * sizeof(void*));
    for (size_t i = 0; i < n_in; ++i)
        if (arrays[i] && !check_not_deleted(arrays[i])) return false;
    if (!p_.donate.empty() && !check_donated_once(p_, executable_->name, arrays)) return false;
    if (!placement_.find(executable_, arguments_, n_out)) return false;
    for (size_t k = 0; k < p_.constants.size(); ++k) {
        if (!check_not_deleted(p_.constants[k])) return false;
        in()[n_in + k] = p_.constants[k]->data;
    }
    if (p_.arena_bytes) {
        arena_ = allocate(p_.arena_bytes);
        if (!arena_) {
            raise_no_memory("RESOURCE_EXHAUSTED: Out of memory allocating %zu bytes of scratch memory for program '%U'.",
                            p_.arena_bytes, executable_->name);
            return false;
        }
    }
    for (size_t o = 0; o < n_out; ++o) {
        Array* result = nullptr;
        int64_t from = p_.alias[o];
        if (from >= 0 && may_take_over(p_, from, arrays) && arrays[from]->info->nbytes == p_.out[o]->nbytes) {
            result = take_over(retain_info(p_.out[o]), arrays[from]);
        } else {
            result = make_output(p_, o, arguments_);
            if (result && from >= 0 && result->info->nbytes)
                memcpy(result->data, arguments_.data[size_t(from)], size_t(result->info->nbytes));
        }
        if (!result) return false;
        outputs_[o] = reinterpret_cast<PyObject*>(result);
        made_ = o + 1;
        out()[o] = p_.forward[o] < 0 ? result->data : nullptr;
    }
    out()[n_out] = arena_;
    if (p_.release_gil) {
        for (size_t i = 0; i < n_in; ++i)
            if (arrays[i]) pin(arrays[i]);
        pinned_ = n_in;
    }
    return true;
}

// A run that owns all it needs, so that it can outlive its caller.
struct RunApart final : Task {
    Arguments arguments;
    SmallVector<PyObject*, 48> outputs;
    Frame frame;
    Run run;
    LibraryCall call;
    int code = 0;
    bool abandoned = false;

    RunApart(Executable* executable, const Arguments& given)
        : arguments(given),
          outputs(executable->program->out.size()),
          frame(&executable->program->host_calls),
          run(executable, *executable->program, arguments, outputs.data()),
          call(executable->program->libraries) {
        frame.name = executable->name;
    }
    ~RunApart() override {
        if (abandoned) abandoned_runs.fetch_sub(1);
    }
    void work() override {
        current_frame = &frame;
        code = run.compute();
        current_frame = nullptr;
    }
    void abandon() override {
        abandoned = true;
        frame.interrupted.store(true);
        abandoned_runs.fetch_add(1);
        call.hand_over();
        run.delete_donated();
    }
};

template <class Compute>
auto without_gil(const Program& p, Compute&& compute) {
    if (!p.release_gil) return compute();
    LibraryCall call(p.libraries);
    PyThreadState* state = PyEval_SaveThread();
    auto result = compute();
    restore_thread(state);
    return result;
}

bool execute(Executable* executable, const Program& p, const Arguments& arguments, PyObject** outputs) {
    Run run(executable, p, arguments, outputs);
    if (!run.prepare()) return false;
    if (p.plan) return without_gil(p, [&] { return run.compute_plan(); }) && run.succeed();
    Frame frame(&p.host_calls, p.interruptible);
    frame.name = executable->name;
    int code = without_gil(p, [&] { return run.compute(); });
    return run.finish(code, frame);
}

}  // namespace

bool execute(Executable* executable, const Arguments& arguments, PyObject** outputs) {
    const Program& p = *executable->program;
    Span span(executable->name, p.plan ? "plan" : "program");
    if (p.apart && !current_frame && on_main_thread()) {
        auto task = std::make_unique<RunApart>(executable, arguments);
        if (!task->run.prepare()) return false;
        Apart outcome = run_apart(task.get());
        if (outcome == Apart::interrupted) {
            static_cast<void>(task.release());
            return false;
        }
        if (outcome == Apart::no_thread) {
            PyThreadState* state = PyEval_SaveThread();
            task->work();
            restore_thread(state);
        }
        if (!task->run.finish(task->code, task->frame)) return false;
        memcpy(outputs, task->outputs.data(), p.out.size() * sizeof(PyObject*));
        return true;
    }
    return execute(executable, p, arguments, outputs);
}

bool execute_sized(Executable* executable, int ndim, const npy_intp* dims, const Arguments& arguments,
                   PyObject** outputs) {
    const Program& model = *executable->program;
    Span span(executable->name, "program");
    int64_t total = 1;
    for (int d = 0; d < ndim; ++d) total *= dims[d];
    Program p;
    p.function = model.function;
    p.in = model.in;
    p.forward = model.forward;
    p.alias = model.alias;
    p.release_gil = model.release_gil;
    p.interruptible = model.interruptible;
    p.blocks = std::make_unique<Blocks>(*model.blocks);
    p.blocks->total = total;
    bool ok = true;
    for (const AvalInfo* info : model.out) {
        AvalInfo* sized = info_of_shape(info->descr, info->weak, ndim, dims);
        if (!sized) {
            ok = false;
            break;
        }
        p.out.push_back(sized);
    }
    ok = ok && execute(executable, p, arguments, outputs);
    for (AvalInfo* info : p.out) release_info(info);
    return ok;
}

}  // namespace pb
