module {
  ft.parameter @w1 : tensor<12x16xf32> = #ft.init<normal, 0.3> {layer = "body"}
  ft.parameter @w3 : tensor<4x16xf32> = #ft.init<normal, 0.3> {layer = "body"}
  ft.parameter @table : tensor<5x16xf32> = #ft.init<normal, 0.3> {layer = "body"}
  ft.parameter @w2 : tensor<16x4xf32> = #ft.init<normal, 0.3> {layer = "head"}
  func.func @forward(%pixels: tensor<8x3x2x2xf32> {ft.input = "pixels"}, %extra: tensor<8x4xbf16> {ft.input = "extra"},
                     %shift: tensor<16xf32> {ft.input = "shift", ft.constant}, %group: tensor<8xi32> {ft.input = "group"},
                     %keep: tensor<8x16xi1> {ft.input = "keep"}, %labels: tensor<8xi64> {ft.input = "labels"})
      -> (tensor<f32>, tensor<f32> {ft.output = "accuracy"}, tensor<f32> {ft.output = "kept"}) {
    %w1 = ft.get @w1 : tensor<12x16xf32>
    %w2 = ft.get @w2 : tensor<16x4xf32>
    %w3 = ft.get @w3 : tensor<4x16xf32>
    %table = ft.get @table : tensor<5x16xf32>
    %x = ft.reshape %pixels {layer = "body"} : tensor<8x3x2x2xf32> -> tensor<8x12xf32>
    %a = ft.matmul %x, %w1 {layer = "body"} : (tensor<8x12xf32>, tensor<12x16xf32>) -> tensor<8x16xf32>
    %e = ft.copy %extra {layer = "body"} : tensor<8x4xbf16> -> tensor<8x4xf32>
    %b = ft.matmul %e, %w3 {layer = "body"} : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %g = ft.embedding %group, %table {layer = "body"} : (tensor<8xi32>, tensor<5x16xf32>) -> tensor<8x16xf32>
    %ab = ft.add %a, %b {layer = "body"} : tensor<8x16xf32>, tensor<8x16xf32>
    %abg = ft.add %ab, %g {layer = "body"} : tensor<8x16xf32>, tensor<8x16xf32>
    %shifted = ft.add %abg, %shift {layer = "body"} : tensor<8x16xf32>, tensor<16xf32>
    %r = ft.relu %shifted {layer = "body"} : tensor<8x16xf32>
    %zero = ft.fill 0.0 {layer = "body"} : tensor<f32>
    %k = ft.select %keep, %r, %zero {layer = "body"} : tensor<8x16xi1>, tensor<8x16xf32>, tensor<f32>
    %y = ft.matmul %k, %w2 {layer = "head"} : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %ids = ft.convert %labels {layer = "head"} : tensor<8xi64> -> tensor<8xi32>
    %loss = ft.cross_entropy %y, %ids {layer = "head"} : (tensor<8x4xf32>, tensor<8xi32>) -> tensor<f32>
    %order = ft.argsort %y descending {layer = "head"} : tensor<8x4xf32> -> tensor<8x1xi32>
    %best = ft.reshape %order {layer = "head"} : tensor<8x1xi32> -> tensor<8xi32>
    %same = ft.eq %best, %ids {layer = "head"} : tensor<8xi32>, tensor<8xi32>
    %hits = ft.convert %same {layer = "head"} : tensor<8xi1> -> tensor<8xf32>
    %sum = ft.reduce "sum" %hits over [0] {layer = "head"} : tensor<8xf32> -> tensor<f32>
    %accuracy = ft.scale %sum, 0.125 {layer = "head"} : tensor<f32>
    %ones = ft.convert %keep {layer = "head"} : tensor<8x16xi1> -> tensor<8x16xf32>
    %count = ft.reduce "sum" %ones over [0, 1] {layer = "head"} : tensor<8x16xf32> -> tensor<f32>
    %kept = ft.scale %count, 0.0078125 {layer = "head"} : tensor<f32>
    return %loss, %accuracy, %kept : tensor<f32>, tensor<f32>, tensor<f32>
  }
}
