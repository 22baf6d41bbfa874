#include "runtime/backends/cuda/libraries/cudnn_graph.h"

#include "fmt/format.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

constexpr int64_t kTensorAlignment = 16;  // bytes
constexpr TensorId kNone = 0;

}  // namespace

void CudnnGraph::Keep(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

TensorId CudnnGraph::AddTensor(const Dims& dims, const Dims& strides, cudnnDataType_t type, bool is_virtual,
                               bool by_value) {
  if (!status_.ok()) return kNone;
  const TensorId id = static_cast<TensorId>(tensors_.size()) + 1;
  const auto add = [&]() -> absl::Status {
    FT_ASSIGN_OR_RETURN(auto tensor, CudnnDescriptor::Create(api_, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
    FT_RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type));
    FT_RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims.data()));
    FT_RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides.data()));
    FT_RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id));
    FT_RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kTensorAlignment));
    FT_RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual));
    FT_RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value));
    FT_RETURN_IF_ERROR(tensor.Finalize("tensor"));
    tensors_.push_back({dims, strides, std::move(tensor)});
    return absl::OkStatus();
  };
  Keep(add());
  return id;
}

TensorId CudnnGraph::Tensor(const Dims& dims, const Dims& strides, cudnnDataType_t type) {
  return AddTensor(dims, strides, type, /*is_virtual=*/false, /*by_value=*/false);
}

TensorId CudnnGraph::Virtual(const Dims& dims, const Dims& strides, cudnnDataType_t type) {
  return AddTensor(dims, strides, type, /*is_virtual=*/true, /*by_value=*/false);
}

TensorId CudnnGraph::Scalar(float value) {
  const TensorId id = AddTensor({1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, /*is_virtual=*/false,
                                /*by_value=*/true);
  scalars_.emplace_back(id, value);
  return id;
}

TensorId CudnnGraph::Like(TensorId a, cudnnDataType_t type) {
  if (!status_.ok()) return kNone;
  const TensorInfo& like = tensors_[a - 1];
  return Virtual(like.dims, like.strides, type);
}

void CudnnGraph::Matmul(TensorId a, TensorId b, TensorId c) {
  if (status_.ok()) Keep(AddMatmul(a, b, c));
}

TensorId CudnnGraph::Pointwise(cudnnPointwiseMode_t mode, TensorId a) {
  const TensorId y = Like(a, CUDNN_DATA_FLOAT);
  PointwiseInto(mode, a, y);
  return y;
}

TensorId CudnnGraph::Pointwise(cudnnPointwiseMode_t mode, TensorId a, TensorId b) {
  const TensorId y = Like(a, CUDNN_DATA_FLOAT);
  PointwiseInto(mode, a, b, y);
  return y;
}

void CudnnGraph::PointwiseInto(cudnnPointwiseMode_t mode, TensorId a, TensorId y) {
  PointwiseInto(mode, a, kNone, y);
}

void CudnnGraph::PointwiseInto(cudnnPointwiseMode_t mode, TensorId a, TensorId b, TensorId y) {
  if (status_.ok()) Keep(AddPointwise(mode, CUDNN_DATA_FLOAT, -1, a, b, kNone, y));
}

TensorId CudnnGraph::Index(TensorId a, int64_t axis) {
  const TensorId y = Like(a, CUDNN_DATA_INT32);
  if (status_.ok()) Keep(AddPointwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, axis, a, kNone, kNone, y));
  return y;
}

TensorId CudnnGraph::AtLeast(TensorId a, TensorId b) {
  const TensorId y = Like(a, CUDNN_DATA_BOOLEAN);
  if (status_.ok()) Keep(AddPointwise(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, -1, a, b, kNone, y));
  return y;
}

TensorId CudnnGraph::Greater(TensorId a, TensorId b) {
  const TensorId y = Like(a, CUDNN_DATA_BOOLEAN);
  if (status_.ok()) Keep(AddPointwise(CUDNN_POINTWISE_CMP_GT, CUDNN_DATA_BOOLEAN, -1, a, b, kNone, y));
  return y;
}

TensorId CudnnGraph::Select(TensorId condition, TensorId a, TensorId b) {
  const TensorId y = Like(a, CUDNN_DATA_FLOAT);
  if (status_.ok())
    Keep(AddPointwise(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, -1, a, b, condition, y));
  return y;
}

void CudnnGraph::Reduce(cudnnReduceTensorOp_t operation, TensorId x, TensorId y) {
  if (status_.ok()) Keep(AddReduction(operation, x, y));
}

void CudnnGraph::Reshape(TensorId x, TensorId y) {
  if (status_.ok()) Keep(AddReshape(x, y));
}

absl::Status CudnnGraph::Connect(CudnnDescriptor& operation, cudnnBackendAttributeName_t name,
                                 TensorId tensor) {
  return operation.Set(name, tensors_[tensor - 1].descriptor);
}

absl::Status CudnnGraph::Finish(CudnnDescriptor& operation, const char* what) {
  FT_RETURN_IF_ERROR(operation.Finalize(what));
  operations_.push_back(std::move(operation));
  return absl::OkStatus();
}

absl::Status CudnnGraph::AddPointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute, int64_t axis,
                                      TensorId a, TensorId b, TensorId t, TensorId y) {
  FT_ASSIGN_OR_RETURN(auto how, CudnnDescriptor::Create(api_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
  FT_RETURN_IF_ERROR(how.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode));
  FT_RETURN_IF_ERROR(how.Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute));
  if (axis >= 0) FT_RETURN_IF_ERROR(how.Set(CUDNN_ATTR_POINTWISE_AXIS, axis));
  FT_RETURN_IF_ERROR(how.Finalize("pointwise"));
  FT_ASSIGN_OR_RETURN(auto operation,
                      CudnnDescriptor::Create(api_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
  FT_RETURN_IF_ERROR(operation.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how));
  FT_RETURN_IF_ERROR(Connect(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, a));
  if (b != kNone) FT_RETURN_IF_ERROR(Connect(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b));
  if (t != kNone) FT_RETURN_IF_ERROR(Connect(operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t));
  FT_RETURN_IF_ERROR(Connect(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y));
  parts_.push_back(std::move(how));
  return Finish(operation, "pointwise operation");
}

absl::Status CudnnGraph::AddMatmul(TensorId a, TensorId b, TensorId c) {
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  FT_ASSIGN_OR_RETURN(auto how, CudnnDescriptor::Create(api_, CUDNN_BACKEND_MATMUL_DESCRIPTOR));
  FT_RETURN_IF_ERROR(how.Set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute));
  FT_RETURN_IF_ERROR(how.Finalize("matmul"));
  FT_ASSIGN_OR_RETURN(auto operation,
                      CudnnDescriptor::Create(api_, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR));
  FT_RETURN_IF_ERROR(operation.Set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how));
  FT_RETURN_IF_ERROR(Connect(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a));
  FT_RETURN_IF_ERROR(Connect(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b));
  FT_RETURN_IF_ERROR(Connect(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c));
  parts_.push_back(std::move(how));
  return Finish(operation, "matmul operation");
}

absl::Status CudnnGraph::AddReduction(cudnnReduceTensorOp_t reduction, TensorId x, TensorId y) {
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  FT_ASSIGN_OR_RETURN(auto how, CudnnDescriptor::Create(api_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR));
  FT_RETURN_IF_ERROR(how.Set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute));
  FT_RETURN_IF_ERROR(
      how.Set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &reduction));
  FT_RETURN_IF_ERROR(how.Finalize("reduction"));
  FT_ASSIGN_OR_RETURN(auto operation,
                      CudnnDescriptor::Create(api_, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR));
  FT_RETURN_IF_ERROR(operation.Set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how));
  FT_RETURN_IF_ERROR(Connect(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x));
  FT_RETURN_IF_ERROR(Connect(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y));
  parts_.push_back(std::move(how));
  return Finish(operation, "reduction operation");
}

absl::Status CudnnGraph::AddReshape(TensorId x, TensorId y) {
  FT_ASSIGN_OR_RETURN(auto operation,
                      CudnnDescriptor::Create(api_, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR));
  FT_RETURN_IF_ERROR(Connect(operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x));
  FT_RETURN_IF_ERROR(Connect(operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y));
  return Finish(operation, "reshape operation");
}

}  // namespace ft::cuda
