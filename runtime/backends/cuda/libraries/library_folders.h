// Where NVIDIA's libraries lie beside the places that the dynamic loader knows: in wheels of the active
// Python environment, in toolkits. Found from variables and folders alone; no Python is run.
#pragma once

#include <string>
#include <vector>

namespace ft::cuda {

// What says which Python is the active one: where this program lies, and environment variables; empty when
// they are not set.
struct PythonVariables {
  std::string program_prefix = {};  // the folder above that of this program
  std::string virtual_env = {};     // VIRTUAL_ENV
  std::string conda_prefix = {};    // CONDA_PREFIX
  std::string path = {};            // PATH, for its first python3
  std::string home = {};            // HOME
  std::string user_base = {};       // PYTHONUSERBASE
  bool no_user_site = false;        // PYTHONNOUSERSITE
};

PythonVariables PythonVariablesOfProcess();

// The folders nvidia/*/lib (nvidia/cublas/lib, nvidia/cu13/lib) of the packages that the active environment
// has, each with a slash at the end: those of the virtual one that this program lies in, of VIRTUAL_ENV, of
// CONDA_PREFIX, of PATH's python3, of packages installed for the user. Relative paths count for nothing: what
// is loaded must not depend on the current folder.
std::vector<std::string> WheelFolders(const PythonVariables& variables);

// Those of CUDA toolkits below a folder (/usr/local): cuda/lib64, then cuda-*/lib64, the newest first.
std::vector<std::string> ToolkitFolders(const std::string& below);

}  // namespace ft::cuda
