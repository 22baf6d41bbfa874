// RUN: ft-opt %s -split-input-file -verify-diagnostics --ft-round-products=fp8-recipe=tensorwise

// expected-error @below {{fp8-recipe 'tensorwise' finds no product to round: those of numbered layers (h.0), in bf16, whose weights have at least 64 rows and columns, multiples of 16}}
module {
  func.func @train_step(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>) {
    %0 = ft.matmul %x, %w {layer = "h.0", phase = "forward"} : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    return
  }
}

// -----

func.func @half(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>) {
  // expected-error @below {{has a_format, b_format and scaling, or none of them}}
  %0 = ft.matmul %x, %w {a_format = "e4m3", scaling = "tensorwise"} : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
  return
}

// -----

func.func @format(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>) {
  // expected-error @below {{rounds to 'e3m4'; expected e4m3 or e5m2}}
  %0 = ft.matmul %x, %w {a_format = "e4m3", b_format = "e3m4", scaling = "tensorwise"} : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
  return
}

// -----

func.func @wide(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>) {
  // expected-error @below {{rounds both operands to e5m2, which no library multiplies}}
  %0 = ft.matmul %x, %w {a_format = "e5m2", b_format = "e5m2", scaling = "tensorwise"} : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
  return
}

// -----

func.func @scaling(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>) {
  // expected-error @below {{has scaling 'rowwise'; expected tensorwise or blockwise}}
  %0 = ft.matmul %x, %w {a_format = "e4m3", b_format = "e4m3", scaling = "rowwise"} : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
  return
}

// -----

func.func @type(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) {
  // expected-error @below {{rounds elements of 'tensor<4x8xf32>' to 8 bits; expected bf16}}
  %0 = ft.matmul %x, %w {a_format = "e4m3", b_format = "e4m3", scaling = "tensorwise"} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return
}
