#include "runtime/backends/cuda/libraries/dynamic_library.h"

#include <array>
#include <string>

#include "gtest/gtest.h"

namespace ft::cuda {
namespace {

TEST(DynamicLibraryTest, TheFirstNameThatLoadsIsTaken) {
  const auto library = DynamicLibrary::Open("mathematics", std::array{"libft_none.so.7", "libm.so.6"});
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_EQ(library->name(), "libm.so.6");
  double (*cosine)(double) = nullptr;
  const absl::Status found = library->Find("cos", cosine);
  ASSERT_TRUE(found.ok()) << found;
  EXPECT_EQ(cosine(0.0), 1.0);
}

TEST(DynamicLibraryTest, ALibraryBesideTheProgramIsFound) {
  const auto library = DynamicLibrary::Open("neighbour", std::array{"libft_beside.so"});
  ASSERT_TRUE(library.ok()) << library.status();
  int (*beside)() = nullptr;
  ASSERT_TRUE(library->Find("FtBeside", beside).ok());
  EXPECT_EQ(beside(), 42);
}

TEST(DynamicLibraryTest, AMissingLibraryIsOneLineWithTheLoadersReason) {
  const auto library = DynamicLibrary::Open("Nothing", std::array{"libft_none.so.7", "libft_none.so.6"});
  EXPECT_EQ(
      library.status(),
      absl::FailedPreconditionError(
          "cannot load libft_none.so.7 or libft_none.so.6 (Nothing): libft_none.so.7: cannot open shared "
          "object file: No such file or directory; install it or put its folder on LD_LIBRARY_PATH"));
}

TEST(DynamicLibraryTest, AMissingFunctionIsNamed) {
  const auto library = DynamicLibrary::Open("mathematics", std::array{"libm.so.6"});
  ASSERT_TRUE(library.ok()) << library.status();
  double (*function)(double) = nullptr;
  EXPECT_EQ(library->Find("ft_no_such_function", function),
            absl::FailedPreconditionError(
                "libm.so.6 (mathematics) has no ft_no_such_function; a newer one is needed"));
  EXPECT_EQ(function, nullptr);
}

}  // namespace
}  // namespace ft::cuda
