/* The binary interface of XLA's foreign functions, version 0.3, in C: what a handler that was compiled for JAX expects of
 * whoever calls it. Names, numbers and the order of fields are facts of that interface, as OpenXLA publishes it in its
 * header of the same name; libraries that were built with either header run with both.
 *
 * Every struct begins with its size, so that either side can tell what the other one knows. "out" marks fields that the
 * callee fills in. */
#ifndef PULLBACK_XLA_FFI_API_C_API_H_
#define PULLBACK_XLA_FFI_API_C_API_H_

#include <stddef.h>
#include <stdint.h>

#define XLA_FFI_API_MAJOR 0
#define XLA_FFI_API_MINOR 3

/* The bytes of a struct up to and with `last`, and an enumerator NAME_STRUCT_SIZE of that value. */
#define XLA_FFI_STRUCT_SIZE(name, last) (offsetof(name, last) + sizeof(((name*)0)->last))
#define XLA_FFI_DEFINE_STRUCT_TRAITS(name, last) \
    typedef struct name name;                    \
    enum { name##_STRUCT_SIZE = XLA_FFI_STRUCT_SIZE(name, last) }

/* How each struct begins. */
#define PULLBACK_FFI_HEAD \
    size_t struct_size;   \
    struct XLA_FFI_Extension_Base* extension_start

#ifdef __cplusplus
extern "C" {
#endif

typedef struct XLA_FFI_Api XLA_FFI_Api;
typedef struct XLA_FFI_InternalApi XLA_FFI_InternalApi;
typedef struct XLA_FFI_Error XLA_FFI_Error;                       /* null: all went well */
typedef struct XLA_FFI_ExecutionContext XLA_FFI_ExecutionContext; /* of one call */
typedef struct XLA_FFI_Future XLA_FFI_Future;                     /* the end of a call that goes on after it returned */

/* ---- extensions and versions ---- */

typedef enum { XLA_FFI_Extension_Metadata = 1 } XLA_FFI_Extension_Type;

typedef struct XLA_FFI_Extension_Base {
    size_t struct_size;
    XLA_FFI_Extension_Type type;
    struct XLA_FFI_Extension_Base* next;
} XLA_FFI_Extension_Base;
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_Extension_Base, next);

struct XLA_FFI_Api_Version {
    PULLBACK_FFI_HEAD;
    int major_version; /* out */
    int minor_version; /* out */
};
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_Api_Version, minor_version);

/* ---- errors: whoever gets one destroys it; codes are those of Abseil's statuses ---- */

typedef enum {
    XLA_FFI_Error_Code_OK = 0,
    XLA_FFI_Error_Code_CANCELLED = 1,
    XLA_FFI_Error_Code_UNKNOWN = 2,
    XLA_FFI_Error_Code_INVALID_ARGUMENT = 3,
    XLA_FFI_Error_Code_DEADLINE_EXCEEDED = 4,
    XLA_FFI_Error_Code_NOT_FOUND = 5,
    XLA_FFI_Error_Code_ALREADY_EXISTS = 6,
    XLA_FFI_Error_Code_PERMISSION_DENIED = 7,
    XLA_FFI_Error_Code_RESOURCE_EXHAUSTED = 8,
    XLA_FFI_Error_Code_FAILED_PRECONDITION = 9,
    XLA_FFI_Error_Code_ABORTED = 10,
    XLA_FFI_Error_Code_OUT_OF_RANGE = 11,
    XLA_FFI_Error_Code_UNIMPLEMENTED = 12,
    XLA_FFI_Error_Code_INTERNAL = 13,
    XLA_FFI_Error_Code_UNAVAILABLE = 14,
    XLA_FFI_Error_Code_DATA_LOSS = 15,
    XLA_FFI_Error_Code_UNAUTHENTICATED = 16
} XLA_FFI_Error_Code;

struct XLA_FFI_Error_Create_Args {
    PULLBACK_FFI_HEAD;
    const char* message; /* is copied */
    XLA_FFI_Error_Code errc;
};
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_Error_Create_Args, errc);
typedef XLA_FFI_Error* XLA_FFI_Error_Create(XLA_FFI_Error_Create_Args* args);

struct XLA_FFI_Error_GetMessage_Args {
    PULLBACK_FFI_HEAD;
    XLA_FFI_Error* error;
    const char* message; /* out; valid as long as the error */
};
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_Error_GetMessage_Args, message);
typedef void XLA_FFI_Error_GetMessage(XLA_FFI_Error_GetMessage_Args* args);

struct XLA_FFI_Error_Destroy_Args {
    PULLBACK_FFI_HEAD;
    XLA_FFI_Error* error;
};
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_Error_Destroy_Args, error);
typedef void XLA_FFI_Error_Destroy(XLA_FFI_Error_Destroy_Args* args);

/* ---- arguments, results, attributes ---- */

typedef enum {
    XLA_FFI_DataType_INVALID = 0,
    XLA_FFI_DataType_PRED = 1,
    XLA_FFI_DataType_S8 = 2,
    XLA_FFI_DataType_S16 = 3,
    XLA_FFI_DataType_S32 = 4,
    XLA_FFI_DataType_S64 = 5,
    XLA_FFI_DataType_U8 = 6,
    XLA_FFI_DataType_U16 = 7,
    XLA_FFI_DataType_U32 = 8,
    XLA_FFI_DataType_U64 = 9,
    XLA_FFI_DataType_F16 = 10,
    XLA_FFI_DataType_F32 = 11,
    XLA_FFI_DataType_F64 = 12,
    XLA_FFI_DataType_C64 = 15,
    XLA_FFI_DataType_BF16 = 16,
    XLA_FFI_DataType_TOKEN = 17,
    XLA_FFI_DataType_C128 = 18,
    XLA_FFI_DataType_F8E5M2 = 19,
    XLA_FFI_DataType_F8E4M3FN = 20,
    XLA_FFI_DataType_S4 = 21,
    XLA_FFI_DataType_U4 = 22,
    XLA_FFI_DataType_F8E4M3B11FNUZ = 23,
    XLA_FFI_DataType_F8E5M2FNUZ = 24,
    XLA_FFI_DataType_F8E4M3FNUZ = 25,
    XLA_FFI_DataType_S2 = 26,
    XLA_FFI_DataType_U2 = 27,
    XLA_FFI_DataType_F8E4M3 = 28,
    XLA_FFI_DataType_F8E3M4 = 29,
    XLA_FFI_DataType_S1 = 30,
    XLA_FFI_DataType_U1 = 31,
    XLA_FFI_DataType_F4E2M1FN = 32,
    XLA_FFI_DataType_F8E8M0FNU = 33
} XLA_FFI_DataType;

/* An array in row-major order. Elements below 8 bits take a byte each. */
struct XLA_FFI_Buffer {
    PULLBACK_FFI_HEAD;
    XLA_FFI_DataType dtype;
    void* data;
    int64_t rank;
    int64_t* dims; /* `rank` of them */
};
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_Buffer, dims);

typedef enum { XLA_FFI_ArgType_BUFFER = 1 } XLA_FFI_ArgType;
typedef enum { XLA_FFI_RetType_BUFFER = 1 } XLA_FFI_RetType;
typedef enum {
    XLA_FFI_AttrType_ARRAY = 1,
    XLA_FFI_AttrType_DICTIONARY = 2,
    XLA_FFI_AttrType_SCALAR = 3,
    XLA_FFI_AttrType_STRING = 4
} XLA_FFI_AttrType;

typedef struct XLA_FFI_ByteSpan { /* a text, which need not end in a zero */
    const char* ptr;
    size_t len;
} XLA_FFI_ByteSpan;

typedef struct XLA_FFI_Scalar {
    XLA_FFI_DataType dtype;
    void* value;
} XLA_FFI_Scalar;

typedef struct XLA_FFI_Array {
    XLA_FFI_DataType dtype;
    size_t size; /* elements */
    void* data;
} XLA_FFI_Array;

struct XLA_FFI_Args {
    PULLBACK_FFI_HEAD;
    int64_t size;
    XLA_FFI_ArgType* types;
    void** args; /* XLA_FFI_Buffer* each */
};
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_Args, args);

struct XLA_FFI_Rets {
    PULLBACK_FFI_HEAD;
    int64_t size;
    XLA_FFI_RetType* types;
    void** rets; /* XLA_FFI_Buffer* each */
};
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_Rets, rets);

struct XLA_FFI_Attrs { /* in the order of their names */
    PULLBACK_FFI_HEAD;
    int64_t size;
    XLA_FFI_AttrType* types;
    XLA_FFI_ByteSpan** names;
    void** attrs; /* XLA_FFI_Array*, XLA_FFI_Attrs*, XLA_FFI_Scalar* or XLA_FFI_ByteSpan* */
};
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_Attrs, attrs);

/* ---- types of users' states ---- */

typedef struct XLA_FFI_TypeId {
    int64_t type_id;
} XLA_FFI_TypeId;
#define XLA_FFI_UNKNOWN_TYPE_ID XLA_FFI_TypeId{0}

typedef struct XLA_FFI_TypeInfo {
    PULLBACK_FFI_HEAD;
    void (*deleter)(void* object);
} XLA_FFI_TypeInfo;
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_TypeInfo, deleter);

struct XLA_FFI_Type_Register_Args {
    PULLBACK_FFI_HEAD;
    XLA_FFI_ByteSpan name;
    XLA_FFI_TypeId* type_id; /* 0: a new one is written there */
    const XLA_FFI_TypeInfo* type_info;
};
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_Type_Register_Args, type_id); /* as published */
typedef XLA_FFI_Error* XLA_FFI_Type_Register(XLA_FFI_Type_Register_Args* args);

/* ---- calls ---- */

typedef enum {
    XLA_FFI_ExecutionStage_INSTANTIATE = 0, /* once for each place of a program that calls; may set a state */
    XLA_FFI_ExecutionStage_PREPARE = 1,     /* before a run */
    XLA_FFI_ExecutionStage_INITIALIZE = 2,  /* before a run, after all were prepared */
    XLA_FFI_ExecutionStage_EXECUTE = 3
} XLA_FFI_ExecutionStage;

struct XLA_FFI_CallFrame {
    PULLBACK_FFI_HEAD;
    const XLA_FFI_Api* api;
    XLA_FFI_ExecutionContext* ctx;
    XLA_FFI_ExecutionStage stage;
    XLA_FFI_Args args;
    XLA_FFI_Rets rets;
    XLA_FFI_Attrs attrs;
    XLA_FFI_Future* future; /* out; null if the call is over when it returns */
};
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_CallFrame, attrs);

typedef XLA_FFI_Error* XLA_FFI_Handler(XLA_FFI_CallFrame* call_frame);

typedef struct XLA_FFI_Handler_Bundle { /* one for each stage; all but `execute` may be null */
    XLA_FFI_Handler* instantiate;
    XLA_FFI_Handler* prepare;
    XLA_FFI_Handler* initialize;
    XLA_FFI_Handler* execute;
} XLA_FFI_Handler_Bundle;

typedef uint32_t XLA_FFI_Handler_Traits;
enum XLA_FFI_Handler_TraitsBits { XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE = 1u };

struct XLA_FFI_Handler_Register_Args {
    PULLBACK_FFI_HEAD;
    XLA_FFI_ByteSpan name;
    XLA_FFI_ByteSpan platform;
    XLA_FFI_Handler_Bundle bundle;
    XLA_FFI_Handler_Traits traits;
};
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_Handler_Register_Args, traits);
typedef XLA_FFI_Error* XLA_FFI_Handler_Register(XLA_FFI_Handler_Register_Args* args);

/* ---- what a call may ask for ---- */

#define PULLBACK_FFI_ARGUMENTS(name, last, ...)   \
    struct name##_Args {                          \
        PULLBACK_FFI_HEAD;                        \
        __VA_ARGS__                               \
    };                                            \
    XLA_FFI_DEFINE_STRUCT_TRAITS(name##_Args, last); \
    typedef XLA_FFI_Error* name(name##_Args* args)

PULLBACK_FFI_ARGUMENTS(XLA_FFI_ExecutionContext_Get, data, XLA_FFI_ExecutionContext* ctx; XLA_FFI_TypeId* type_id;
                       void* data; /* out */);
PULLBACK_FFI_ARGUMENTS(XLA_FFI_State_Set, state, XLA_FFI_ExecutionContext* ctx; XLA_FFI_ExecutionStage stage;
                       XLA_FFI_TypeId* type_id; void* state;);
PULLBACK_FFI_ARGUMENTS(XLA_FFI_State_Get, state, XLA_FFI_ExecutionContext* ctx; XLA_FFI_ExecutionStage stage;
                       XLA_FFI_TypeId* type_id; void* state; /* out */);
PULLBACK_FFI_ARGUMENTS(XLA_FFI_Stream_Get, stream, XLA_FFI_ExecutionContext* ctx; void* stream; /* out */);
PULLBACK_FFI_ARGUMENTS(XLA_FFI_DeviceMemory_Allocate, data, XLA_FFI_ExecutionContext* ctx; size_t size;
                       size_t alignment; void* data; /* out */);
PULLBACK_FFI_ARGUMENTS(XLA_FFI_DeviceMemory_Free, data, XLA_FFI_ExecutionContext* ctx; size_t size; void* data;);
typedef void XLA_FFI_Task(void* data);
PULLBACK_FFI_ARGUMENTS(XLA_FFI_ThreadPool_Schedule, data, XLA_FFI_ExecutionContext* ctx; XLA_FFI_Task* task;
                       void* data;);
PULLBACK_FFI_ARGUMENTS(XLA_FFI_ThreadPool_NumThreads, num_threads, XLA_FFI_ExecutionContext* ctx;
                       int64_t* num_threads; /* out */);
PULLBACK_FFI_ARGUMENTS(XLA_FFI_Future_Create, extension_start, /* as published */
                       XLA_FFI_Future* future; /* out */);
PULLBACK_FFI_ARGUMENTS(XLA_FFI_Future_SetAvailable, future, XLA_FFI_Future* future;);
PULLBACK_FFI_ARGUMENTS(XLA_FFI_Future_SetError, error, XLA_FFI_Future* future; XLA_FFI_Error* error; /* taken over */);
PULLBACK_FFI_ARGUMENTS(XLA_FFI_RunId_Get, run_id, XLA_FFI_ExecutionContext* ctx; int64_t run_id; /* out */);
PULLBACK_FFI_ARGUMENTS(XLA_FFI_DeviceOrdinal_Get, device_ordinal, XLA_FFI_ExecutionContext* ctx;
                       int32_t device_ordinal; /* out */);

/* ---- the question which interface a handler was built for, asked by an extension of the frame ---- */

struct XLA_FFI_Metadata {
    size_t struct_size;
    XLA_FFI_Api_Version api_version;
    XLA_FFI_Handler_Traits traits;
    XLA_FFI_TypeId state_type_id;
};
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_Metadata, traits);

struct XLA_FFI_Metadata_Extension {
    XLA_FFI_Extension_Base extension_base;
    XLA_FFI_Metadata* metadata;
};
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_Metadata_Extension, metadata);

/* ---- all that a handler can call ---- */

struct XLA_FFI_Api {
    PULLBACK_FFI_HEAD;
    XLA_FFI_Api_Version api_version;
    const XLA_FFI_InternalApi* internal_api;
    XLA_FFI_Error_Create* XLA_FFI_Error_Create;
    XLA_FFI_Error_GetMessage* XLA_FFI_Error_GetMessage;
    XLA_FFI_Error_Destroy* XLA_FFI_Error_Destroy;
    XLA_FFI_Handler_Register* XLA_FFI_Handler_Register;
    XLA_FFI_Stream_Get* XLA_FFI_Stream_Get;
    XLA_FFI_Type_Register* XLA_FFI_Type_Register;
    XLA_FFI_ExecutionContext_Get* XLA_FFI_ExecutionContext_Get;
    XLA_FFI_State_Set* XLA_FFI_State_Set;
    XLA_FFI_State_Get* XLA_FFI_State_Get;
    XLA_FFI_DeviceMemory_Allocate* XLA_FFI_DeviceMemory_Allocate;
    XLA_FFI_DeviceMemory_Free* XLA_FFI_DeviceMemory_Free;
    XLA_FFI_ThreadPool_Schedule* XLA_FFI_ThreadPool_Schedule;
    XLA_FFI_ThreadPool_NumThreads* XLA_FFI_ThreadPool_NumThreads;
    XLA_FFI_Future_Create* XLA_FFI_Future_Create;
    XLA_FFI_Future_SetAvailable* XLA_FFI_Future_SetAvailable;
    XLA_FFI_Future_SetError* XLA_FFI_Future_SetError;
    XLA_FFI_RunId_Get* XLA_FFI_RunId_Get;
    XLA_FFI_DeviceOrdinal_Get* XLA_FFI_DeviceOrdinal_Get;
};
XLA_FFI_DEFINE_STRUCT_TRAITS(XLA_FFI_Api, XLA_FFI_DeviceOrdinal_Get);

const XLA_FFI_Api* XLA_FFI_GetApi(void);

#ifdef __cplusplus
}
#endif

#endif
