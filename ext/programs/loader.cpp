#include "programs/loader.h"

#if defined(__linux__) && defined(__x86_64__)

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ref.h"

namespace pb {
namespace {

constexpr size_t kPage = 4096, kLine = 64;
constexpr size_t kText = size_t(1) << 20, kData = size_t(64) << 10;  // of a slab, at least

size_t rounded(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

// Free places of a part of a slab, as offset -> size; neighbours are joined.
class Places {
  public:
    explicit Places(size_t size) : free_{{0, size}} {}

    bool take(size_t size, size_t* offset) {
        for (auto it = free_.begin(); it != free_.end(); ++it) {
            if (it->second < size) continue;
            *offset = it->first;
            size_t left = it->second - size;
            free_.erase(it);
            if (left) free_[*offset + size] = left;
            return true;
        }
        return size == 0;
    }
    void give(size_t offset, size_t size) {
        if (!size) return;
        auto next = free_.lower_bound(offset);
        if (next != free_.end() && next->first == offset + size) {
            size += next->second;
            next = free_.erase(next);
        }
        if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == offset) {
            std::prev(next)->second += size;
        } else {
            free_[offset] = size;
        }
    }

  private:
    std::map<size_t, size_t> free_;
};

// Text, which can be written only while something is loaded, then data. It is private memory, so that what a process does
// with it is nothing to a child of fork().
struct Slab {
    char* base;
    size_t text_size, data_size;
    Places text, data;
    int users = 0;

    Slab(char* at, size_t text_bytes, size_t data_bytes)
        : base(at), text_size(text_bytes), data_size(data_bytes), text(text_bytes), data(data_bytes) {}
    ~Slab() { munmap(base, text_size + data_size); }

    static std::unique_ptr<Slab> make(size_t text_bytes, size_t data_bytes) {
        text_bytes = std::max(kText, rounded(text_bytes, kPage));
        data_bytes = std::max(kData, rounded(data_bytes, kPage));
        void* at = mmap(nullptr, text_bytes + data_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return nullptr;
        return std::make_unique<Slab>(static_cast<char*>(at), text_bytes, data_bytes);
    }
    // The text between two offsets, in whole pages; other code on them may run meanwhile, so it stays executable.
    bool protect(size_t begin, size_t end, bool writable) const {
        begin = begin / kPage * kPage;
        end = rounded(end, kPage);
        int how = PROT_READ | PROT_EXEC | (writable ? PROT_WRITE : 0);
        return begin >= end || mprotect(base + begin, end - begin, how) == 0;
    }
};

std::vector<std::unique_ptr<Slab>>& slabs() {  // guarded by the GIL, as all here
    static auto* all = new std::vector<std::unique_ptr<Slab>>;  // never destroyed: threads may still run code at exit
    return *all;
}

struct Loaded {
    Slab* slab;
    size_t text_at, text_size, data_at, data_size;

    ~Loaded() {
        slab->text.give(text_at, text_size);
        slab->data.give(data_at, data_size);
        if (--slab->users == 0 && slabs().size() > 1)
            std::erase_if(slabs(), [this](const auto& s) { return s.get() == slab; });
    }
};

std::unique_ptr<Loaded> place(size_t text, size_t data) {
    text = rounded(text, kLine), data = rounded(data, kLine);
    auto in = [&](Slab* slab) -> std::unique_ptr<Loaded> {
        size_t text_at = 0, data_at = 0;
        if (!slab->text.take(text, &text_at)) return nullptr;
        if (!slab->data.take(data, &data_at)) {
            slab->text.give(text_at, text);
            return nullptr;
        }
        ++slab->users;
        return std::unique_ptr<Loaded>(new Loaded{slab, text_at, text, data_at, data});
    };
    for (const auto& slab : slabs())
        if (auto found = in(slab.get())) return found;
    auto fresh = Slab::make(text, data);
    if (!fresh) return nullptr;
    slabs().push_back(std::move(fresh));
    return in(slabs().back().get());
}

struct BadObject : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct NoSymbol : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// An object file. Whatever it says about places in it is checked.
class Object {
  public:
    Object(const char* bytes, size_t size) : bytes_(bytes), size_(size) {
        const auto& head = at<Elf64_Ehdr>(0);
        if (memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_type != ET_REL ||
            head.e_machine != EM_X86_64 || head.e_shentsize != sizeof(Elf64_Shdr))
            throw BadObject("not an ELF object file for x86-64");
        for (size_t k = 0; k < head.e_shnum; ++k) sections_.push_back(at<Elf64_Shdr>(head.e_shoff + k * sizeof(Elf64_Shdr)));
        for (const Elf64_Shdr& s : sections_) {
            if (s.sh_type != SHT_SYMTAB) continue;
            for (size_t k = 0; k < s.sh_size / sizeof(Elf64_Sym); ++k)
                symbols_.push_back(at<Elf64_Sym>(s.sh_offset + k * sizeof(Elf64_Sym)));
            names_ = section(s.sh_link);
        }
        lay_out();
    }

    size_t text() const { return text_; }
    size_t data() const { return data_; }

    // Writes the sections to their places, with all references in them.
    void write(char* text_base, char* data_base);

    char* address_of(std::string_view name) const {
        for (size_t k = 0; k < symbols_.size(); ++k)
            if (symbols_[k].st_shndx != SHN_UNDEF && name_of(symbols_[k]) == name) return address_of(k);
        throw NoSymbol(std::string(name));
    }

  private:
    template <typename T>
    T at(uint64_t offset) const {
        if (offset > size_ || size_ - offset < sizeof(T)) throw BadObject("the object file is cut off");
        T value;
        memcpy(&value, bytes_ + offset, sizeof(T));
        return value;
    }
    const Elf64_Shdr& section(size_t index) const {
        if (index >= sections_.size()) throw BadObject("a section is missing");
        return sections_[index];
    }
    std::string name_of(const Elf64_Sym& symbol) const {
        std::string name;
        for (uint64_t k = names_.sh_offset + symbol.st_name; char c = at<char>(k); ++k) name += c;
        return name;
    }
    bool is_loaded(const Elf64_Shdr& s) const { return (s.sh_flags & SHF_ALLOC) && s.sh_size; }

    struct Place {
        bool in_data = false;
        size_t offset = 0;
    };

    void lay_out() {
        places_.resize(sections_.size());
        for (size_t k = 0; k < sections_.size(); ++k) {
            const Elf64_Shdr& s = sections_[k];
            if (!is_loaded(s)) continue;
            if (s.sh_flags & SHF_TLS) throw BadObject("thread-local data are not supported");
            if (s.sh_size > size_t(1) << 30 || s.sh_addralign > kPage) throw BadObject("a section is too large");
            places_[k].in_data = s.sh_flags & SHF_WRITE;
            size_t& end = places_[k].in_data ? data_ : text_;
            places_[k].offset = rounded(end, std::max<size_t>(s.sh_addralign, 1));
            end = places_[k].offset + s.sh_size;
            align_ = std::max<size_t>(align_, s.sh_addralign);
        }
        if (align_ > kLine) {  // not where a program's place begins
            text_ += align_;
            data_ += data_ ? align_ : 0;
        }
        // What is called or read through a table gets an entry: a jump and the address.
        entries_.assign(symbols_.size(), SIZE_MAX);
        for_relocations([&](const Elf64_Shdr&, size_t, const Elf64_Rela& r) {
            size_t symbol = ELF64_R_SYM(r.r_info), type = ELF64_R_TYPE(r.r_info);
            bool undefined = symbols_.at(symbol).st_shndx == SHN_UNDEF;
            bool by_table = type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX ||
                            (undefined && (type == R_X86_64_PLT32 || type == R_X86_64_PC32));
            if (!by_table || entries_[symbol] != SIZE_MAX) return;
            text_ = rounded(text_, kEntry);
            entries_[symbol] = text_;
            text_ += kEntry;
        });
    }

    template <typename Function>
    void for_relocations(Function&& function) const {
        for (const Elf64_Shdr& s : sections_) {
            if (s.sh_type == SHT_REL) throw BadObject("relocations without addends are not supported");
            if (s.sh_type != SHT_RELA || !is_loaded(section(s.sh_info))) continue;
            for (size_t k = 0; k < s.sh_size / sizeof(Elf64_Rela); ++k) {
                auto r = at<Elf64_Rela>(s.sh_offset + k * sizeof(Elf64_Rela));
                if (ELF64_R_SYM(r.r_info) >= symbols_.size()) throw BadObject("a symbol is missing");
                function(sections_[s.sh_info], s.sh_info, r);
            }
        }
    }

    char* base(bool in_data) const {
        char* start = in_data ? data_base_ : text_base_;
        return align_ > kLine ? reinterpret_cast<char*>(rounded(reinterpret_cast<uintptr_t>(start), align_)) : start;
    }
    char* start(size_t index) const { return base(places_[index].in_data) + places_[index].offset; }

    char* address_of(size_t symbol) const {
        const Elf64_Sym& s = symbols_.at(symbol);
        if (s.st_shndx == SHN_ABS) return reinterpret_cast<char*>(s.st_value);
        if (s.st_shndx != SHN_UNDEF) {
            const Elf64_Shdr& in = section(s.st_shndx);
            // A constant without elements lies in a section without bytes, which has no place; nothing reads there.
            if (!(in.sh_flags & SHF_ALLOC) || s.st_value > in.sh_size) {
                throw BadObject("a symbol is not in its section");
            }
            return start(s.st_shndx) + s.st_value;
        }
        std::string name = name_of(s);
        void* found = dlsym(RTLD_DEFAULT, name.c_str());
        if (!found && !(ELF64_ST_BIND(s.st_info) == STB_WEAK)) throw NoSymbol(name);
        return static_cast<char*>(found);
    }

    static constexpr size_t kEntry = 16, kAddress = 8;  // where in an entry the address is
    const char* bytes_;
    size_t size_, text_ = 0, data_ = 0, align_ = 1;
    char *text_base_ = nullptr, *data_base_ = nullptr;
    std::vector<Elf64_Shdr> sections_;
    std::vector<Elf64_Sym> symbols_;
    Elf64_Shdr names_{};
    std::vector<Place> places_;     // of sections
    std::vector<size_t> entries_;  // of symbols: offsets in the text
};

void Object::write(char* text_base, char* data_base) {
    text_base_ = text_base, data_base_ = data_base;
    for (size_t k = 0; k < sections_.size(); ++k) {
        const Elf64_Shdr& s = sections_[k];
        if (!is_loaded(s)) continue;
        if (s.sh_type == SHT_NOBITS) {
            memset(start(k), 0, s.sh_size);
        } else {
            if (s.sh_offset > size_ || size_ - s.sh_offset < s.sh_size) throw BadObject("the object file is cut off");
            memcpy(start(k), bytes_ + s.sh_offset, s.sh_size);
        }
    }
    for (size_t k = 0; k < symbols_.size(); ++k) {
        if (entries_[k] == SIZE_MAX) continue;
        char* entry = base(false) + entries_[k];
        const unsigned char jump[kAddress] = {0xff, 0x25, 2, 0, 0, 0, 0x0f, 0x0b};  // jmp *[rip + 2]
        memcpy(entry, jump, kAddress);
        char* target = address_of(k);
        memcpy(entry + kAddress, &target, sizeof target);
    }
    for_relocations([&](const Elf64_Shdr& in, size_t index, const Elf64_Rela& r) {
        size_t symbol = ELF64_R_SYM(r.r_info), type = ELF64_R_TYPE(r.r_info);
        bool wide = type == R_X86_64_64 || type == R_X86_64_PC64;
        if (r.r_offset > in.sh_size || in.sh_size - r.r_offset < (wide ? 8 : 4)) throw BadObject("a relocation is outside");
        char* place = start(index) + r.r_offset;
        bool far = symbols_[symbol].st_shndx == SHN_UNDEF;
        char* target;
        switch (type) {
            case R_X86_64_NONE: return;
            case R_X86_64_64: case R_X86_64_PC64: target = address_of(symbol); break;
            case R_X86_64_PC32: case R_X86_64_PLT32:
                target = far ? base(false) + entries_[symbol] : address_of(symbol);
                break;
            case R_X86_64_GOTPCREL: case R_X86_64_GOTPCRELX: case R_X86_64_REX_GOTPCRELX:
                target = base(false) + entries_[symbol] + kAddress;
                break;
            default: throw BadObject("relocations of type " + std::to_string(type) + " are not supported");
        }
        int64_t value = reinterpret_cast<int64_t>(target) + r.r_addend;
        if (type != R_X86_64_64) value -= reinterpret_cast<int64_t>(place);
        if (!wide && value != int32_t(value)) throw BadObject("a relocation is out of range");
        memcpy(place, &value, wide ? 8 : 4);
    });
}

constexpr const char* kOwner = "pullback.machine_code";

PyObject* load_object(PyObject*, PyObject* args) {
    PyObject *code, *names;
    if (!PyArg_ParseTuple(args, "SO!:load_object", &code, &PyTuple_Type, &names)) return nullptr;
    try {
        Object object(PyBytes_AS_STRING(code), size_t(PyBytes_GET_SIZE(code)));
        auto loaded = place(object.text(), object.data());
        if (!loaded) return PyErr_NoMemory();
        Slab* slab = loaded->slab;
        size_t begin = loaded->text_at, end = begin + loaded->text_size;
        if (!slab->protect(begin, end, true)) return PyErr_SetFromErrno(PyExc_OSError);
        try {
            object.write(slab->base + begin, slab->base + slab->text_size + loaded->data_at);
        } catch (...) {
            slab->protect(begin, end, false);
            throw;
        }
        if (!slab->protect(begin, end, false)) return PyErr_SetFromErrno(PyExc_OSError);
        Ref addresses = Ref::steal(PyList_New(0));
        for (Py_ssize_t k = 0; addresses && k < PyTuple_GET_SIZE(names); ++k) {
            const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, k));
            Ref address = name ? Ref::steal(PyLong_FromVoidPtr(object.address_of(name))) : Ref();
            if (!address || PyList_Append(addresses.get(), address.get()) < 0) return nullptr;
        }
        if (!addresses) return nullptr;
        Ref owner = Ref::steal(PyCapsule_New(loaded.get(), kOwner, [](PyObject* capsule) {
            delete static_cast<Loaded*>(PyCapsule_GetPointer(capsule, kOwner));
        }));
        if (!owner) return nullptr;
        loaded.release();
        return PyTuple_Pack(2, addresses.get(), owner.get());
    } catch (const BadObject& error) {
        return PyErr_Format(PyExc_ValueError, "load_object: %s", error.what());
    } catch (const NoSymbol& error) {
        return PyErr_Format(PyExc_KeyError, "load_object: there is no symbol '%s'", error.what());
    } catch (const std::out_of_range&) {
        return PyErr_Format(PyExc_ValueError, "load_object: a symbol is missing");
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    }
}

PyMethodDef loader_functions[] = {
    {"load_object", load_object, METH_VARARGS,
     "load_object(code, symbols, /)\n--\n\nAn ELF object file in memory: (addresses of the symbols, what keeps it there)."},
    {nullptr},
};

}  // namespace

bool add_loader(PyObject* module) { return PyModule_AddFunctions(module, loader_functions) == 0; }

}  // namespace pb

#else

namespace pb {
bool add_loader(PyObject* module) { return PyModule_AddObjectRef(module, "load_object", Py_None) == 0; }
}  // namespace pb

#endif
