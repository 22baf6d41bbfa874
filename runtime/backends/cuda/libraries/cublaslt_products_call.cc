#include "runtime/backends/cuda/libraries/cublaslt_products_call.h"

#include <utility>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

cudaDataType_t TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

cudaDataType_t TypeOf(Float8 type) { return type == Float8::kE4M3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2; }

cublasLtMatmulMatrixScale_t ModeOf(ScaleOf scale) {
  switch (scale) {
    case ScaleOf::kVectors:
      return CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    case ScaleOf::kSquares:
      return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    case ScaleOf::kTensor:
      break;
  }
  return CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
}

absl::Status CheckFloat8(const ProductSpec& s) {
  if (!s.float8) return absl::OkStatus();
  const bool in_blocks = s.float8->scale_a != ScaleOf::kTensor;
  if (s.input != DType::kBF16 || s.transpose_a || !s.transpose_b || s.epilogue != Epilogue::kNone)
    return absl::InvalidArgumentError("no such product of floats of 8 bits: a [m, k], b [n, k], of bf16");
  if (s.float8->a == Float8::kE5M2 && s.float8->b == Float8::kE5M2)
    return absl::InvalidArgumentError("no product of two operands in e5m2");
  if (in_blocks != (s.float8->scale_b != ScaleOf::kTensor) || s.float8->scale_a == ScaleOf::kSquares)
    return absl::InvalidArgumentError("no product of operands that are scaled so");
  if (s.k % (in_blocks ? kFloat8Block : 16) != 0 || s.n % 16 != 0 || s.row_a % 16 != 0 || s.row_b % 16 != 0)
    return absl::InvalidArgumentError(fmt::format(
        "no product [{}, {}] x [{}, {}] of floats of 8 bits: expected multiples of 16", s.m, s.k, s.k, s.n));
  return absl::OkStatus();
}

absl::Status CheckSpec(const ProductSpec& s) {
  if (!IsFloat(s.input) || (s.output != s.input && s.output != DType::kF32)) {
    return absl::InvalidArgumentError(fmt::format("no product of {} into {}", Name(s.input), Name(s.output)));
  }
  if (s.bias && s.output != s.input) {
    return absl::InvalidArgumentError(
        fmt::format("no product into {} with a bias of {}", Name(s.output), Name(s.input)));
  }
  if (s.m < 1 || s.n < 1 || s.k < 1) {
    return absl::InvalidArgumentError(fmt::format("no product of [{}, {}] and [{}, {}]", s.m, s.k, s.k, s.n));
  }
  if (s.row_a < (s.transpose_a ? s.m : s.k) || s.row_b < (s.transpose_b ? s.k : s.n) || s.row_c < s.n) {
    return absl::InvalidArgumentError(
        fmt::format("rows of a product [{}, {}] x [{}, {}] that are {}, {} and {} elements apart overlap",
                    s.m, s.k, s.k, s.n, s.row_a, s.row_b, s.row_c));
  }
  return absl::OkStatus();
}

// Where a row of any operand does not begin at a multiple of 16 bytes, cuBLASLt rounds a product to 16 bits
// before it adds the bias (13.1 on an H100): rounded twice.
absl::Status CheckBias(const ProductSpec& s, const ProductAlignment& alignment) {
  constexpr int64_t kWhole = 16;
  if (!s.bias || s.output == DType::kF32) return absl::OkStatus();
  const auto is_whole = [&](int64_t row, uint32_t begin) {
    return row * static_cast<int64_t>(SizeOf(s.input)) % kWhole == 0 && begin % kWhole == 0;
  };
  if (is_whole(s.row_a, alignment.a) && is_whole(s.row_b, alignment.b) && is_whole(s.row_c, alignment.c))
    return absl::OkStatus();
  return absl::InvalidArgumentError("a bias beside rows that are no multiples of 16 bytes");
}

absl::Status CheckEpilogue(const ProductSpec& s) {
  if (s.epilogue == Epilogue::kNone) {
    return s.auxiliary ? absl::InvalidArgumentError("a product without epilogue keeps nothing")
                       : absl::OkStatus();
  }
  if (MakesSums(s.epilogue)) {
    if (s.input != DType::kF32 && !s.bias && !s.auxiliary && !s.accumulate) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("no sums beside such a product of {}", Name(s.input)));
  }
  // A library's GELU may be less precise than f32 is.
  if (s.input == DType::kF32 || s.output != s.input || s.accumulate) {
    return absl::InvalidArgumentError(fmt::format("no GELU of a product of {} {} {}", Name(s.input),
                                                  s.accumulate ? "added to" : "into", Name(s.output)));
  }
  if (s.epilogue == Epilogue::kGeluGrad && (s.bias || !s.auxiliary)) {
    return absl::InvalidArgumentError("a gradient of GELU has no bias, and reads where it is taken");
  }
  if (s.auxiliary && s.row_c % kAuxiliaryRows != 0) {
    return absl::InvalidArgumentError(fmt::format(
        "no epilogue has rows of {} elements beside it, only multiples of {}", s.row_c, kAuxiliaryRows));
  }
  return absl::OkStatus();
}

cublasLtEpilogue_t EpilogueOf(const ProductSpec& s) {
  switch (s.epilogue) {
    case Epilogue::kGeluGrad:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::kGelu:
      if (s.auxiliary) return s.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
      return s.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case Epilogue::kSumsOfA:
      return CUBLASLT_EPILOGUE_BGRADB;  // its B is a
    case Epilogue::kSumsOfB:
      return CUBLASLT_EPILOGUE_BGRADA;
    case Epilogue::kNone:
      break;
  }
  return s.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CublasLtCall>> CublasLtCall::Create(const CublasLtApi& api,
                                                                   const ProductSpec& spec, bool allow_tf32) {
  FT_RETURN_IF_ERROR(CheckSpec(spec));
  FT_RETURN_IF_ERROR(CheckEpilogue(spec));
  FT_RETURN_IF_ERROR(CheckFloat8(spec));
  std::unique_ptr<CublasLtCall> call(new CublasLtCall(api, spec));
  FT_RETURN_IF_ERROR(call->Describe(allow_tf32));
  return call;
}

CublasLtCall::~CublasLtCall() {
  for (cublasLtMatrixLayout_t layout : {left_, right_, result_}) {
    if (layout != nullptr) api_.destroy_layout(layout);
  }
  if (operation_ != nullptr) api_.destroy_operation(operation_);
}

absl::Status CublasLtCall::AddLayout(cublasLtMatrixLayout_t& layout, cudaDataType_t type, int64_t rows,
                                     int64_t columns, int64_t stride) {
  return api_.Check(
      api_.create_layout(&layout, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), stride),
      "cublasLtMatrixLayoutCreate");
}

absl::Status CublasLtCall::Describe(bool allow_tf32) {
  const ProductSpec& s = spec_;
  const bool tf32 = allow_tf32 && s.input == DType::kF32;
  const cublasComputeType_t compute = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  FT_RETURN_IF_ERROR(
      api_.Check(api_.create_operation(&operation_, compute, CUDA_R_32F), "cublasLtMatmulDescCreate"));
  const auto transposed = [](bool transpose) -> int32_t { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  FT_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_TRANSA, transposed(s.transpose_b)));
  FT_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_TRANSB, transposed(s.transpose_a)));
  FT_RETURN_IF_ERROR(DescribeEpilogue());
  FT_RETURN_IF_ERROR(DescribeFloat8());
  const cudaDataType_t of_a = s.float8 ? TypeOf(s.float8->a) : TypeOf(s.input);
  const cudaDataType_t of_b = s.float8 ? TypeOf(s.float8->b) : TypeOf(s.input);
  FT_RETURN_IF_ERROR(AddLayout(left_, of_b, s.transpose_b ? s.k : s.n, s.transpose_b ? s.n : s.k, s.row_b));
  FT_RETURN_IF_ERROR(AddLayout(right_, of_a, s.transpose_a ? s.m : s.k, s.transpose_a ? s.k : s.m, s.row_a));
  return AddLayout(result_, TypeOf(s.output), s.n, s.m, s.row_c);
}

absl::Status CublasLtCall::DescribeFloat8() {
  if (!spec_.float8) return absl::OkStatus();
  // Sums of forward may be made in fewer bits, which is faster, as others train; gradients are wide (e5m2).
  const bool in_blocks = spec_.float8->scale_a != ScaleOf::kTensor;
  const bool is_forward = spec_.float8->a == Float8::kE4M3 && spec_.float8->b == Float8::kE4M3;
  FT_RETURN_IF_ERROR(
      Set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<int8_t>(!in_blocks && is_forward ? 1 : 0)));
  if (in_blocks) {
    FT_RETURN_IF_ERROR(
        Set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, static_cast<int32_t>(ModeOf(spec_.float8->scale_b))));
    FT_RETURN_IF_ERROR(
        Set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, static_cast<int32_t>(ModeOf(spec_.float8->scale_a))));
  }
  const void* const aligned = reinterpret_cast<const void*>(uintptr_t{kBiasAlignment});  // as of a bias
  FT_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, aligned));
  return Set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, aligned);
}

absl::Status CublasLtCall::DescribeEpilogue() {
  FT_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(EpilogueOf(spec_))));
  // Stands for the addresses of each run: heuristics look at how they are aligned.
  const void* const aligned = reinterpret_cast<const void*>(uintptr_t{kBiasAlignment});
  if (spec_.bias || MakesSums(spec_.epilogue)) {
    const DType type = spec_.bias ? spec_.input : spec_.output;
    FT_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(TypeOf(type))));
    FT_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned));
  }
  if (!spec_.auxiliary) return absl::OkStatus();
  FT_RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, spec_.row_c));
  return Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aligned);
}

absl::StatusOr<std::vector<cublasLtMatmulAlgo_t>> CublasLtCall::Propose(cublasLtHandle_t handle,
                                                                        const ProductAlignment& alignment,
                                                                        uint64_t workspace_bytes, int count) {
  FT_RETURN_IF_ERROR(CheckBias(spec_, alignment));
  cublasLtMatmulPreference_t raw = nullptr;
  FT_RETURN_IF_ERROR(api_.Check(api_.create_preference(&raw), "cublasLtMatmulPreferenceCreate"));
  const auto destroy = [this](cublasLtMatmulPreference_t preference) { api_.destroy_preference(preference); };
  const std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, decltype(destroy)> preference(
      raw, destroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    return api_.Check(api_.set_preference(raw, attribute, &value, sizeof(value)),
                      "cublasLtMatmulPreferenceSetAttribute");
  };
  const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;  // none at all is always allowed
  FT_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes));
  FT_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes));
  FT_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment.b));
  FT_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment.a));
  FT_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment.c));
  FT_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment.c));
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(count));
  int found = 0;
  FT_RETURN_IF_ERROR(api_.Check(api_.get_heuristic(handle, operation_, left_, right_, result_, result_, raw,
                                                   count, results.data(), &found),
                                "cublasLtMatmulAlgoGetHeuristic", absl::StatusCode::kInvalidArgument));
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < found; ++i) {
    if (results[i].state == CUBLAS_STATUS_SUCCESS && results[i].workspaceSize <= workspace_bytes) {
      algorithms.push_back(results[i].algo);
    }
  }
  if (algorithms.empty()) return absl::InvalidArgumentError("cuBLASLt has no algorithm for a product");
  return algorithms;
}

cublasStatus_t CublasLtCall::Run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                                 const ProductOperands& o, uint64_t workspace_bytes, StreamHandle stream) {
  const auto point = [&](bool wanted, cublasLtMatmulDescAttributes_t attribute, const void* address) {
    return wanted ? api_.set_operation(operation_, attribute, &address, sizeof(address))
                  : CUBLAS_STATUS_SUCCESS;
  };
  const bool sums = MakesSums(spec_.epilogue);
  cublasStatus_t status =
      point(spec_.bias || sums, CUBLASLT_MATMUL_DESC_BIAS_POINTER, sums ? o.sums : o.bias);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = point(spec_.auxiliary, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, o.auxiliary);
  const bool scaled = spec_.float8.has_value();
  if (status == CUBLAS_STATUS_SUCCESS)
    status = point(scaled, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, o.scale_b);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = point(scaled, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, o.scale_a);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const float alpha = 1.0f, beta = spec_.accumulate ? 1.0f : 0.0f;
  return api_.matmul(handle, operation_, &alpha, o.b, left_, o.a, right_, &beta, o.c, result_, o.c, result_,
                     &algorithm, o.workspace, workspace_bytes, stream);
}

}  // namespace ft::cuda
