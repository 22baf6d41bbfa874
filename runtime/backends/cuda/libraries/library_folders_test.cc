#include "runtime/backends/cuda/libraries/library_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "runtime/backends/cuda/libraries/dynamic_library.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft::cuda {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class LibraryFoldersTest : public testing::Test {
 protected:
  // A folder; returns its path with a slash at the end.
  std::string Make(const std::string& name) {
    fs::create_directories(folder_.Path(name));
    return folder_.Path(name) + "/";
  }
  // A program python3 in bin of a prefix, which is really `real` there.
  void MakePython(const std::string& prefix, const std::string& real) {
    Make(prefix + "/bin");
    fs::permissions(folder_.Write(prefix + "/bin/" + real, "#!/bin/false\n"), fs::perms::owner_all);
    fs::create_symlink(real, folder_.Path(prefix + "/bin/python3"));
  }
  std::string Path(const std::string& name) const { return folder_.Path(name); }

  TempFolder folder_;
};

TEST_F(LibraryFoldersTest, BothLayoutsOfWheelsInTheActiveEnvironment) {
  const std::string cublas = Make("env/lib/python3.12/site-packages/nvidia/cublas/lib"),
                    cu13 = Make("env/lib/python3.12/site-packages/nvidia/cu13/lib"),
                    cudnn = Make("env/lib/python3.12/site-packages/nvidia/cudnn/lib");
  Make("env/lib/python3.12/site-packages/nvidia/cuda_nvcc/bin");     // has no lib
  Make("env/lib/python3.12/site-packages/other/cublas/lib");         // of somebody else
  folder_.Write("env/lib/python3.12/site-packages/nvidia/lib", "");  // no folder
  EXPECT_THAT(WheelFolders({.virtual_env = Path("env")}), ElementsAre(cu13, cublas, cudnn));
  EXPECT_THAT(WheelFolders({.virtual_env = Path("env") + "/"}), ElementsAre(cu13, cublas, cudnn));
  EXPECT_THAT(WheelFolders({.conda_prefix = Path("env")}), ElementsAre(cu13, cublas, cudnn));
}

TEST_F(LibraryFoldersTest, TheVirtualEnvironmentComesFirstAndNothingTwice) {
  const std::string of_venv = Make("venv/lib/python3.12/site-packages/nvidia/cu13/lib"),
                    of_conda = Make("conda/lib/python3.11/site-packages/nvidia/cu13/lib");
  MakePython("venv", "python3.12");
  folder_.Write("venv/pyvenv.cfg", "home = /usr/bin\n");
  fs::create_symlink("lib", Path("venv/lib64"));
  EXPECT_THAT(
      WheelFolders(
          {.virtual_env = Path("venv"), .conda_prefix = Path("conda"), .path = Path("venv/bin") + ":/bin"}),
      ElementsAre(of_venv, of_conda));
}

TEST_F(LibraryFoldersTest, TheVirtualEnvironmentOfTheProgramComesBeforeTheActiveOne) {
  const std::string own = Make("own/lib/python3.11/site-packages/nvidia/cu13/lib"),
                    active = Make("venv/lib/python3.12/site-packages/nvidia/cu13/lib");
  Make("usr/lib/python3/dist-packages/nvidia/cu13/lib");
  folder_.Write("own/pyvenv.cfg", "home = /usr/bin\n");
  EXPECT_THAT(WheelFolders({.program_prefix = Path("own"), .virtual_env = Path("venv")}),
              ElementsAre(own, active));
  // A system is no environment of its own.
  EXPECT_THAT(WheelFolders({.program_prefix = Path("usr"), .virtual_env = Path("venv")}),
              ElementsAre(active));
}

TEST_F(LibraryFoldersTest, ThePythonOfPathIsFoundWithoutRunningIt) {
  const std::string own = Make("opt/lib/python3.12/site-packages/nvidia/cu13/lib"),
                    debian = Make("opt/lib/python3/dist-packages/nvidia/nccl/lib"),
                    users = Make("home/.local/lib/python3.12/site-packages/nvidia/cudnn/lib");
  Make("opt/lib/python3.11/site-packages/nvidia/cu12/lib");  // of another Python there
  MakePython("opt", "python3.12");
  Make("links");
  fs::create_symlink(Path("opt/bin/python3"), Path("links/python3"));
  folder_.Write("python3", "not a program");
  for (const std::string& path :
       {Path("opt/bin"), Path("links"), "relative::/nowhere:" + Path("") + ":" + Path("links")}) {
    EXPECT_THAT(WheelFolders({.path = path}), ElementsAre(own, debian)) << path;
    EXPECT_THAT(WheelFolders({.path = path, .home = Path("home")}), ElementsAre(users, own, debian));
    EXPECT_THAT(WheelFolders({.path = path, .home = "/nowhere", .user_base = Path("home/.local")}),
                ElementsAre(users, own, debian));
    EXPECT_THAT(WheelFolders({.path = path, .home = Path("home"), .no_user_site = true}),
                ElementsAre(own, debian));
  }
}

TEST_F(LibraryFoldersTest, AVirtualEnvironmentOnPathHidesTheRestUnlessItSaysOtherwise) {
  const std::string base = Make("base/lib/python3.12/site-packages/nvidia/cu13/lib"),
                    venv = Make("venv/lib/python3.12/site-packages/nvidia/cudnn/lib"),
                    users = Make("home/.local/lib/python3.12/site-packages/nvidia/nccl/lib");
  MakePython("base", "python3.12");
  Make("venv/bin");
  fs::create_symlink(Path("base/bin/python3"), Path("venv/bin/python3"));
  const PythonVariables variables = {.path = Path("venv/bin"), .home = Path("home")};
  for (const char* text : {"", "include-system-site-packages = false\n"}) {
    folder_.Write("venv/pyvenv.cfg", text);
    EXPECT_THAT(WheelFolders(variables), ElementsAre(venv));
  }
  folder_.Write("venv/pyvenv.cfg", "home=/x\ninclude-system-site-packages=True\n");
  EXPECT_THAT(WheelFolders(variables), ElementsAre(venv, users, base));
}

TEST_F(LibraryFoldersTest, OfSeveralPythonsWithoutANameTheNewestComesFirst) {
  const std::string old = Make("env/lib/python3.9/site-packages/nvidia/cu13/lib"),
                    newer = Make("env/lib/python3.12/site-packages/nvidia/cu13/lib"),
                    newest = Make("env/lib/python3.13t/site-packages/nvidia/cu13/lib");
  Make("env/lib/pythonic/site-packages/nvidia/cu13/lib");
  EXPECT_THAT(WheelFolders({.virtual_env = Path("env")}), ElementsAre(newest, newer, old));
}

TEST_F(LibraryFoldersTest, WhatIsNotThereIsPassedOver) {
  folder_.Write("file", "");
  EXPECT_THAT(WheelFolders({}), IsEmpty());
  EXPECT_THAT(WheelFolders({.virtual_env = "env", .conda_prefix = ".", .path = "bin:.", .home = "x"}),
              IsEmpty());
  EXPECT_THAT(WheelFolders({.virtual_env = Path("none"), .conda_prefix = Path("file"), .path = Path("file")}),
              IsEmpty());
  Make("loop/lib/python3.12/site-packages");
  fs::create_symlink("nvidia", Path("loop/lib/python3.12/site-packages/nvidia"));
  EXPECT_THAT(WheelFolders({.virtual_env = Path("loop")}), IsEmpty());
}

TEST_F(LibraryFoldersTest, Toolkits) {
  const std::string newer = Make("cuda-13.0/lib64"), newest = Make("cuda-13.10/lib64"),
                    old = Make("cuda-12/lib64"), chosen = Make("cuda/lib64");
  Make("cuda-x/lib64");
  Make("cuda-14.0/lib");
  EXPECT_THAT(ToolkitFolders(Path("")), ElementsAre(chosen, newest, newer, old));
  EXPECT_THAT(ToolkitFolders(Path("none")), IsEmpty());
}

// Sets a variable for the length of a test.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Setting() { old_.empty() ? unsetenv(name_) : setenv(name_, old_.c_str(), 1); }

 private:
  const char* name_;
  std::string old_;
};

TEST_F(LibraryFoldersTest, ALibraryOfTheActiveEnvironmentIsLoaded) {
  // One that lies beside this test, under a name that only the wheel has.
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path() / "libft_beside.so";
  const std::string wheel = Make("env/lib/python3.12/site-packages/nvidia/cu13/lib") + "libft_wheel.so.13";
  const std::array<const char*, 1> names = {"libft_wheel.so.13"};
  const Setting environment("VIRTUAL_ENV", Path("env"));
  EXPECT_FALSE(DynamicLibrary::Open("wheel", names).ok());
  folder_.Write("env/lib/python3.12/site-packages/nvidia/cu13/lib/libft_wheel.so.13", "no library");
  EXPECT_THAT(std::string(DynamicLibrary::Open("wheel", names).status().message()),
              testing::HasSubstr(wheel));  // there, and yet refused
  fs::copy_file(beside, wheel, fs::copy_options::overwrite_existing);
  const auto library = DynamicLibrary::Open("wheel", names);
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_EQ(library->name(), wheel);
  int (*function)() = nullptr;
  ASSERT_TRUE(library->Find("FtBeside", function).ok());
  EXPECT_EQ(function(), 42);
}

}  // namespace
}  // namespace ft::cuda
