// A library that lies beside the test that looks for it.
extern "C" int FtBeside() { return 42; }
