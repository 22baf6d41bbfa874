// protocols NAME FOLDER [LOG]: replaces FOLDER/file (or makes the folder FOLDER/step-2) as the protocol NAME
// does, right or wrong in one way, and then appends "saved" to LOG. What the replayer of power cuts is tried
// on. No output; exit status 1 and a line when a call fails.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr size_t kPiece = 5000;  // no multiple of a block

void Check(bool good, const char* what) {
  if (good) return;
  perror(what);
  exit(1);
}

int Open(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags, 0666);
  Check(fd >= 0, path.c_str());
  return fd;
}

void Write(int fd, int pieces) {
  const std::string data(kPiece, 'n');
  for (int i = 0; i < pieces; ++i) {
    size_t done = 0;
    while (done < data.size()) {
      const ssize_t written = write(fd, data.data() + done, data.size() - done);
      Check(written > 0, "write");
      done += written;
    }
  }
}

void Sync(int fd) { Check(fsync(fd) == 0, "fsync"); }

void SyncFolder(const std::string& path) {
  const int fd = Open(path, O_RDONLY | O_DIRECTORY);
  Sync(fd);
  close(fd);
}

void Rename(const std::string& from, const std::string& to) {
  Check(rename(from.c_str(), to.c_str()) == 0, "rename");
}

// A file of three pieces, synced or not.
void Make(const std::string& path, bool sync) {
  const int fd = Open(path, O_WRONLY | O_CREAT | O_EXCL);
  Write(fd, 3);
  if (sync) Sync(fd);
  Check(close(fd) == 0, "close");
}

void Replace(const std::string& at, bool sync_file, const std::string& sync_folder,
             bool unlink_first = false) {
  Make(at + "/file.tmp", sync_file);
  if (unlink_first) Check(unlink((at + "/file").c_str()) == 0, "unlink");
  Rename(at + "/file.tmp", at + "/file");
  if (!sync_folder.empty()) SyncFolder(sync_folder);
}

void SyncEarly(const std::string& at) {
  const int fd = Open(at + "/file.tmp", O_WRONLY | O_CREAT | O_EXCL);
  Write(fd, 2);
  Sync(fd);
  Write(fd, 1);
  close(fd);
  Rename(at + "/file.tmp", at + "/file");
  SyncFolder(at);
}

void RenameFirst(const std::string& at) {
  const int fd = Open(at + "/file.tmp", O_WRONLY | O_CREAT | O_EXCL);
  Rename(at + "/file.tmp", at + "/file");
  Write(fd, 3);
  Sync(fd);
  close(fd);
  SyncFolder(at);
}

void InPlace(const std::string& at) {
  const int fd = Open(at + "/file", O_WRONLY | O_TRUNC);
  Write(fd, 3);
  Sync(fd);
  close(fd);
}

void MakeFolder(const std::string& at, bool sync_files, bool sync_inner, bool sync_outer) {
  const std::string temporary = at + "/step-2.tmp";
  Check(mkdir(temporary.c_str(), 0777) == 0, "mkdir");
  Make(temporary + "/weights", sync_files);
  Make(temporary + "/manifest", sync_files);
  if (sync_inner) SyncFolder(temporary);
  Rename(temporary, at + "/step-2");
  if (sync_outer) SyncFolder(at);
}

bool Do(const std::string& name, const std::string& at) {
  if (name == "file") return Replace(at, true, at), true;
  if (name == "file_unsynced") return Replace(at, false, at), true;
  if (name == "file_synced_early") return SyncEarly(at), true;
  if (name == "name_unsynced") return Replace(at, true, ""), true;
  if (name == "other_folder_synced") return Replace(at, true, at + "/other"), true;
  if (name == "renamed_before_write") return RenameFirst(at), true;
  if (name == "unlinked_before_rename") return Replace(at, true, at, /*unlink_first=*/true), true;
  if (name == "in_place") return InPlace(at), true;
  if (name == "folder") return MakeFolder(at, true, true, true), true;
  if (name == "folder_files_unsynced") return MakeFolder(at, false, true, true), true;
  if (name == "folder_inner_unsynced") return MakeFolder(at, true, false, true), true;
  if (name == "folder_outer_unsynced") return MakeFolder(at, true, true, false), true;
  return false;
}

}  // namespace

int main(int count, char** words) {
  if (count < 3 || !Do(words[1], words[2])) {
    fprintf(stderr, "usage: protocols NAME FOLDER [LOG]\n");
    return 2;
  }
  if (count > 3) {
    const int log = Open(words[3], O_WRONLY | O_CREAT | O_APPEND);
    Check(write(log, "saved\n", 6) == 6, "write");
  }
  return 0;
}
