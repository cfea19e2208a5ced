/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of TensorFlow Lite Micro that applications make, in front of a model that tinyet has generated: a sketch
 * that was written for TFLM includes <name>_tflm.h in place of TFLM's headers and of its model's data, and stays as it is.
 *
 * It is a translation of names, in C++11, and all of it is inline: no interpreter, no .tflite file on the device, no heap,
 * no exceptions, nothing that runs before main(). The names and their meaning follow TFLM's public headers
 * (micro_interpreter.h, micro_mutable_op_resolver.h, core/c/common.h, schema_generated.h); the code is tinyet's.
 *
 * What differs:
 * - There is one model, the generated one. GetModel() gives it, whatever array it is given; all interpreters share its
 *   memory and its states.
 * - The tensor arena of the application is not used, so that the linker drops it: the model has its own, static, of
 *   arena_used_bytes().
 * - Operators are part of the model. Resolvers take what is added, and do nothing with it.
 * - Tensors are constants: what they point to can be written, they themselves cannot.
 * - Custom operators, profilers, several subgraphs and what looks into the interpreter are not here: they do not compile.
 */
#ifndef TINYET_TFLM_H
#define TINYET_TFLM_H

#ifndef __cplusplus
#error "tinyet_tflm.h is C++, as TensorFlow Lite Micro is: in C include the model's own header"
#endif

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef ARDUINO
#include <Arduino.h>
#endif

/* Changes when <name>_tflm.h and this file must change together. */
#define TINYET_TFLM_VERSION 1

/* Where MicroPrintf goes: a framework with a console of its own defines it in front of the include. */
#if !defined(TINYET_TFLM_VPRINTF) && !defined(ARDUINO)
#define TINYET_TFLM_VPRINTF(format, arguments) vfprintf(stderr, format, arguments)
#endif

#define TFLITE_SCHEMA_VERSION (3)

/* Compilers for AVR take what a build calls a system's header for C. */
extern "C++" {

typedef enum TfLiteStatus {
  kTfLiteOk = 0,
  kTfLiteError = 1,
} TfLiteStatus;

/* The numbers are those of TFLM; of the types that it knows, these can be at a model's border. */
typedef enum TfLiteType {
  kTfLiteNoType = 0,
  kTfLiteFloat32 = 1,
  kTfLiteInt32 = 2,
  kTfLiteUInt8 = 3,
  kTfLiteInt64 = 4,
  kTfLiteBool = 6,
  kTfLiteInt16 = 7,
  kTfLiteInt8 = 9,
  kTfLiteUInt32 = 16,
} TfLiteType;

/* real = scale * (value - zero_point); scale 0: not quantized. */
typedef struct TfLiteQuantizationParams {
  float scale;
  int32_t zero_point;
} TfLiteQuantizationParams;

typedef struct TfLiteIntArray {
  int size;
  const int *data;
} TfLiteIntArray;

/* All are the same address, of which the application takes the one that fits the type. */
typedef union TfLitePtrUnion {
  void *data;
  char *raw;
  const char *raw_const;
  int8_t *int8;
  uint8_t *uint8;
  int16_t *i16;
  int16_t *int16;
  int32_t *i32;
  uint32_t *u32;
  int64_t *i64;
  float *f;
  bool *b;
} TfLitePtrUnion;

/* An input or output of the model. Its members are constants, so that an assignment to one does not compile. */
typedef struct TfLiteTensor {
  const TfLitePtrUnion data;
  const TfLiteIntArray *const dims;
  const TfLiteQuantizationParams params;
  const size_t bytes;
  const TfLiteType type;
  const bool is_variable;
} TfLiteTensor;

#define TF_LITE_ENSURE_STATUS(a)             \
  do {                                       \
    const TfLiteStatus tinyet_status_ = (a); \
    if (tinyet_status_ != kTfLiteOk) {       \
      return tinyet_status_;                 \
    }                                        \
  } while (0)

#define TFLITE_ABORT abort()
#define TFLITE_CHECK(x) ((x) ? (void)0 : TFLITE_ABORT)
#define TFLITE_CHECK_EQ(x, y) TFLITE_CHECK((x) == (y))
#define TFLITE_CHECK_NE(x, y) TFLITE_CHECK((x) != (y))
#define TFLITE_CHECK_GE(x, y) TFLITE_CHECK((x) >= (y))
#define TFLITE_CHECK_GT(x, y) TFLITE_CHECK((x) > (y))
#define TFLITE_CHECK_LE(x, y) TFLITE_CHECK((x) <= (y))
#define TFLITE_CHECK_LT(x, y) TFLITE_CHECK((x) < (y))

#ifdef TF_LITE_STRIP_ERROR_STRINGS
#define MicroPrintf(...) ((void)0)
#define VMicroPrintf(...) ((void)0)
#else
/* A line on the console, of 255 characters at most on an Arduino. */
inline void VMicroPrintf(const char *format, va_list arguments) {
#ifdef TINYET_TFLM_VPRINTF
  va_list end;
  va_copy(end, arguments);
  (void)TINYET_TFLM_VPRINTF(format, arguments);
  (void)TINYET_TFLM_VPRINTF("\n", end);
  va_end(end);
#else
  char line[256];
  (void)vsnprintf(line, sizeof line, format, arguments);
  Serial.println(line);
#endif
}

inline void MicroPrintf(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  VMicroPrintf(format, arguments);
  va_end(arguments);
}
#endif

/* Sketches of before 2022 give this object to the interpreter, and report through it. */
#ifdef TF_LITE_STRIP_ERROR_STRINGS
#define TF_LITE_REPORT_ERROR(reporter, ...) ((void)(reporter))
#else
#define TF_LITE_REPORT_ERROR(reporter, ...) ((void)(reporter)->Report(__VA_ARGS__))
#endif

namespace tflite {

class ErrorReporter {
public:
  int Report(const char *format, ...) {
#ifdef TF_LITE_STRIP_ERROR_STRINGS
    (void)format;
#else
    va_list arguments;
    va_start(arguments, format);
    VMicroPrintf(format, arguments);
    va_end(arguments);
#endif
    return 0;
  }
};

class MicroErrorReporter : public ErrorReporter {};

/* Prepares the framework for printing: on an Arduino the serial port, which gets four seconds. */
inline void InitializeTarget() {
#ifdef ARDUINO
  Serial.begin(9600);
  const unsigned long start = millis();
  while (!Serial && millis() - start < 4000ul) {
  }
#endif
}

/* The generated model. The members are for <name>_tflm.h and for the interpreter: an application asks for the version.
 *
 * inputs, outputs: arrays of so many tensors. arena_bytes: of its static memory. prepare, reset: of the model's own
 * header, or null where it has none. run: one inference; 0 is success. */
class Model {
public:
  uint32_t version() const { return TFLITE_SCHEMA_VERSION; }

  const TfLiteTensor *tinyet_inputs;
  size_t tinyet_num_inputs;
  const TfLiteTensor *tinyet_outputs;
  size_t tinyet_num_outputs;
  size_t tinyet_arena_bytes;
  int32_t (*tinyet_prepare)(void);
  void (*tinyet_reset)(void);
  int32_t (*tinyet_run)(void);
};

class MicroOpResolver {};

class AllOpsResolver : public MicroOpResolver {};

/* Takes the operators that a sketch adds; their number is not counted. */
template <unsigned int tOpCount> class MicroMutableOpResolver : public MicroOpResolver {
public:
  MicroMutableOpResolver() {}
  explicit MicroMutableOpResolver(ErrorReporter *) {}

#define TINYET_TFLM_OPERATOR(name) \
  TfLiteStatus Add##name() { return kTfLiteOk; }
  TINYET_TFLM_OPERATOR(Abs)
  TINYET_TFLM_OPERATOR(Add)
  TINYET_TFLM_OPERATOR(AddN)
  TINYET_TFLM_OPERATOR(ArgMax)
  TINYET_TFLM_OPERATOR(ArgMin)
  TINYET_TFLM_OPERATOR(AssignVariable)
  TINYET_TFLM_OPERATOR(AveragePool2D)
  TINYET_TFLM_OPERATOR(BatchMatMul)
  TINYET_TFLM_OPERATOR(BatchToSpaceNd)
  TINYET_TFLM_OPERATOR(BroadcastArgs)
  TINYET_TFLM_OPERATOR(BroadcastTo)
  TINYET_TFLM_OPERATOR(CallOnce)
  TINYET_TFLM_OPERATOR(Cast)
  TINYET_TFLM_OPERATOR(Ceil)
  TINYET_TFLM_OPERATOR(CircularBuffer)
  TINYET_TFLM_OPERATOR(Concatenation)
  TINYET_TFLM_OPERATOR(Conv2D)
  TINYET_TFLM_OPERATOR(Cos)
  TINYET_TFLM_OPERATOR(CumSum)
  TINYET_TFLM_OPERATOR(Decode)
  TINYET_TFLM_OPERATOR(Delay)
  TINYET_TFLM_OPERATOR(DepthToSpace)
  TINYET_TFLM_OPERATOR(DepthwiseConv2D)
  TINYET_TFLM_OPERATOR(Dequantize)
  TINYET_TFLM_OPERATOR(DetectionPostprocess)
  TINYET_TFLM_OPERATOR(Div)
  TINYET_TFLM_OPERATOR(DynamicUpdateSlice)
  TINYET_TFLM_OPERATOR(Elu)
  TINYET_TFLM_OPERATOR(EmbeddingLookup)
  TINYET_TFLM_OPERATOR(Energy)
  TINYET_TFLM_OPERATOR(Equal)
  TINYET_TFLM_OPERATOR(EthosU)
  TINYET_TFLM_OPERATOR(Exp)
  TINYET_TFLM_OPERATOR(ExpandDims)
  TINYET_TFLM_OPERATOR(FftAutoScale)
  TINYET_TFLM_OPERATOR(Fill)
  TINYET_TFLM_OPERATOR(FilterBank)
  TINYET_TFLM_OPERATOR(FilterBankLog)
  TINYET_TFLM_OPERATOR(FilterBankSpectralSubtraction)
  TINYET_TFLM_OPERATOR(FilterBankSquareRoot)
  TINYET_TFLM_OPERATOR(Floor)
  TINYET_TFLM_OPERATOR(FloorDiv)
  TINYET_TFLM_OPERATOR(FloorMod)
  TINYET_TFLM_OPERATOR(Framer)
  TINYET_TFLM_OPERATOR(FullyConnected)
  TINYET_TFLM_OPERATOR(Gather)
  TINYET_TFLM_OPERATOR(GatherNd)
  TINYET_TFLM_OPERATOR(Greater)
  TINYET_TFLM_OPERATOR(GreaterEqual)
  TINYET_TFLM_OPERATOR(HardSwish)
  TINYET_TFLM_OPERATOR(If)
  TINYET_TFLM_OPERATOR(Irfft)
  TINYET_TFLM_OPERATOR(L2Normalization)
  TINYET_TFLM_OPERATOR(L2Pool2D)
  TINYET_TFLM_OPERATOR(LeakyRelu)
  TINYET_TFLM_OPERATOR(Less)
  TINYET_TFLM_OPERATOR(LessEqual)
  TINYET_TFLM_OPERATOR(Log)
  TINYET_TFLM_OPERATOR(LogSoftmax)
  TINYET_TFLM_OPERATOR(LogicalAnd)
  TINYET_TFLM_OPERATOR(LogicalNot)
  TINYET_TFLM_OPERATOR(LogicalOr)
  TINYET_TFLM_OPERATOR(Logistic)
  TINYET_TFLM_OPERATOR(MaxPool2D)
  TINYET_TFLM_OPERATOR(Maximum)
  TINYET_TFLM_OPERATOR(Mean)
  TINYET_TFLM_OPERATOR(Minimum)
  TINYET_TFLM_OPERATOR(MirrorPad)
  TINYET_TFLM_OPERATOR(Mul)
  TINYET_TFLM_OPERATOR(Neg)
  TINYET_TFLM_OPERATOR(NotEqual)
  TINYET_TFLM_OPERATOR(OverlapAdd)
  TINYET_TFLM_OPERATOR(PCAN)
  TINYET_TFLM_OPERATOR(Pack)
  TINYET_TFLM_OPERATOR(Pad)
  TINYET_TFLM_OPERATOR(PadV2)
  TINYET_TFLM_OPERATOR(Prelu)
  TINYET_TFLM_OPERATOR(Quantize)
  TINYET_TFLM_OPERATOR(ReadVariable)
  TINYET_TFLM_OPERATOR(ReduceAll)
  TINYET_TFLM_OPERATOR(ReduceMax)
  TINYET_TFLM_OPERATOR(ReduceMin)
  TINYET_TFLM_OPERATOR(Relu)
  TINYET_TFLM_OPERATOR(Relu6)
  TINYET_TFLM_OPERATOR(Reshape)
  TINYET_TFLM_OPERATOR(ResizeBilinear)
  TINYET_TFLM_OPERATOR(ResizeNearestNeighbor)
  TINYET_TFLM_OPERATOR(ReverseV2)
  TINYET_TFLM_OPERATOR(Rfft)
  TINYET_TFLM_OPERATOR(Round)
  TINYET_TFLM_OPERATOR(Rsqrt)
  TINYET_TFLM_OPERATOR(SelectV2)
  TINYET_TFLM_OPERATOR(Shape)
  TINYET_TFLM_OPERATOR(Sin)
  TINYET_TFLM_OPERATOR(Slice)
  TINYET_TFLM_OPERATOR(Softmax)
  TINYET_TFLM_OPERATOR(SpaceToBatchNd)
  TINYET_TFLM_OPERATOR(SpaceToDepth)
  TINYET_TFLM_OPERATOR(Split)
  TINYET_TFLM_OPERATOR(SplitV)
  TINYET_TFLM_OPERATOR(Sqrt)
  TINYET_TFLM_OPERATOR(Square)
  TINYET_TFLM_OPERATOR(SquaredDifference)
  TINYET_TFLM_OPERATOR(Squeeze)
  TINYET_TFLM_OPERATOR(Stacker)
  TINYET_TFLM_OPERATOR(StridedSlice)
  TINYET_TFLM_OPERATOR(Sub)
  TINYET_TFLM_OPERATOR(Sum)
  TINYET_TFLM_OPERATOR(Svdf)
  TINYET_TFLM_OPERATOR(Tanh)
  TINYET_TFLM_OPERATOR(Transpose)
  TINYET_TFLM_OPERATOR(TransposeConv)
  TINYET_TFLM_OPERATOR(UnidirectionalSequenceLSTM)
  TINYET_TFLM_OPERATOR(Unpack)
  TINYET_TFLM_OPERATOR(VarHandle)
  TINYET_TFLM_OPERATOR(While)
  TINYET_TFLM_OPERATOR(Window)
  TINYET_TFLM_OPERATOR(ZerosLike)
#undef TINYET_TFLM_OPERATOR
};

/* Sketches of models with variables make these two for the interpreter; the generated model keeps its variables itself. */
class MicroAllocator {
public:
  static MicroAllocator *Create(uint8_t *, size_t) {
    static MicroAllocator only;
    return &only;
  }
};

class MicroResourceVariables {
public:
  static MicroResourceVariables *Create(MicroAllocator *, int) {
    static MicroResourceVariables only;
    return &only;
  }
};

/* The data of a tensor, if there is one. T is the application's word for it: it is not compared with the type. */
template <typename T> T *GetTensorData(TfLiteTensor *tensor) {
  return tensor == nullptr ? nullptr : static_cast<T *>(tensor->data.data);
}
template <typename T> const T *GetTensorData(const TfLiteTensor *tensor) {
  return tensor == nullptr ? nullptr : static_cast<const T *>(tensor->data.data);
}

template <typename T> struct TinyetType;
template <> struct TinyetType<float> { static const TfLiteType type = kTfLiteFloat32; };
template <> struct TinyetType<int32_t> { static const TfLiteType type = kTfLiteInt32; };
template <> struct TinyetType<uint32_t> { static const TfLiteType type = kTfLiteUInt32; };
template <> struct TinyetType<uint8_t> { static const TfLiteType type = kTfLiteUInt8; };
template <> struct TinyetType<int16_t> { static const TfLiteType type = kTfLiteInt16; };
template <> struct TinyetType<int8_t> { static const TfLiteType type = kTfLiteInt8; };

/* Runs the model. It holds a pointer, and no tensor's memory. Inputs are written before each Invoke(), which may write
 * over them, and outputs are read before the next input is written: so it is with TFLM, too. */
class MicroInterpreter {
public:
  MicroInterpreter(const Model *model, const MicroOpResolver &, uint8_t *, size_t) : model_(model) {}
  MicroInterpreter(const Model *model, const MicroOpResolver &, uint8_t *, size_t, decltype(nullptr)) : model_(model) {}
  MicroInterpreter(const Model *model, const MicroOpResolver &, uint8_t *, size_t, ErrorReporter *) : model_(model) {}
  MicroInterpreter(const Model *model, const MicroOpResolver &, uint8_t *, size_t, MicroResourceVariables *)
      : model_(model) {}
  MicroInterpreter(const Model *model, const MicroOpResolver &, MicroAllocator *, MicroResourceVariables * = nullptr)
      : model_(model) {}

  /* Prepares the model for its first run, with its initial states. */
  TfLiteStatus AllocateTensors() {
    if (model_->tinyet_prepare != nullptr && model_->tinyet_prepare() != 0) {
      return kTfLiteError;
    }
    return Reset();
  }

  TfLiteStatus Invoke() { return model_->tinyet_run() == 0 ? kTfLiteOk : kTfLiteError; }

  /* Lets all states be what they are before the first run. */
  TfLiteStatus Reset() {
    if (model_->tinyet_reset != nullptr) {
      model_->tinyet_reset();
    }
    return kTfLiteOk;
  }

  TfLiteStatus initialization_status() const { return kTfLiteOk; }

  /* Null where there is no such input. */
  TfLiteTensor *input(size_t index) { return tensor(model_->tinyet_inputs, model_->tinyet_num_inputs, index); }
  TfLiteTensor *input_tensor(size_t index) { return input(index); }
  size_t inputs_size() const { return model_->tinyet_num_inputs; }

  TfLiteTensor *output(size_t index) { return tensor(model_->tinyet_outputs, model_->tinyet_num_outputs, index); }
  TfLiteTensor *output_tensor(size_t index) { return output(index); }
  size_t outputs_size() const { return model_->tinyet_num_outputs; }

  /* Null where there is no such tensor, or where it is of another type. */
  template <typename T> T *typed_input_tensor(int index) { return typed<T>(input(static_cast<size_t>(index))); }
  template <typename T> T *typed_output_tensor(int index) { return typed<T>(output(static_cast<size_t>(index))); }

  size_t arena_used_bytes() const { return model_->tinyet_arena_bytes; }

private:
  static TfLiteTensor *tensor(const TfLiteTensor *tensors, size_t count, size_t index) {
    return index < count ? const_cast<TfLiteTensor *>(tensors + index) : nullptr;
  }
  template <typename T> static T *typed(TfLiteTensor *found) {
    return found != nullptr && found->type == TinyetType<T>::type ? GetTensorData<T>(found) : nullptr;
  }

  const Model *model_;
};

/* Where the headers of before 2021 had them. */
namespace ops {
namespace micro {
using ::tflite::AllOpsResolver;
} // namespace micro
} // namespace ops

} // namespace tflite

} // extern "C++"

#endif
