// What the parameters of low-rank adapters are called: as PEFT has it, behind the name of their module.
#pragma once

namespace ft {

inline constexpr char kLoraA[] = ".lora_A.weight";  // [rank, in]
inline constexpr char kLoraB[] = ".lora_B.weight";  // [out, rank]

}  // namespace ft
