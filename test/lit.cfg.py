"""Configuration of lit, shared by all *.mlir tests below this folder. CMake gives the folders of the programs."""
import os

import lit.formats

config.name = "ft"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = lit_config.params["scratch"]
config.environment["PATH"] = os.pathsep.join(
    [lit_config.params["programs"], lit_config.params["llvm"], config.environment["PATH"]])
