/* SPDX-License-Identifier: Apache-2.0
   Stands before a compiler on PATH, under its name, and compiles nothing twice: an object, or a program made of sources
   at once, is kept under a hash of all that decides it, and the same command is answered with a copy. How long it is kept
   is not known here (kept.py); what was asked for last is the youngest.

   What decides it: the compiler, its arguments, and each file that could be included, wherever a name may be
   found. Files of the compiler's own are always the same, and say nothing of TINYET_…: such a macro of a board decides
   only where a file names it. Where the project lies decides only what names places:
   debug information, __FILE__, assert and sanitizers; there the places count, as -ffile-prefix-map leaves them.

   Most of what is compiled are sources that are the same for every model. Nobody asks for their variables and types:
   code, lines and frames are the same with -g1, in six sevenths of the time. And which folder within a project one lies
   in, which is called after the model, does not count where only debug information names it.

   Only what ends well and says nothing is kept, so that an error or a warning is seen each time; of -fsyntax-only, that
   it did. Whatever is not `compiler -c source -o object`, `compiler sources objects` or `compiler -fsyntax-only sources`,
   with arguments that are known here, is left to the compiler. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 1024
#define COUNT(array) (sizeof(array) / sizeof *(array))

extern char **environ;

typedef struct {
  const char *names[MOST];
  size_t count;
} list;

static list folders, files, maps, sources, objects, defines;
static const char *output, *dependencies, *target;
static bool compiles, checks, writes_dependencies, phony, places_count, debugs, all_defines_count;
static bool counted[MOST];

/* FNV-1a of 128 bits. */
static unsigned __int128 hash = ((unsigned __int128)0x6c62272e07bb0142 << 64) | 0x62b821756295c58d;

static void add_bytes(const char *bytes, size_t count) {
  const unsigned __int128 prime = ((unsigned __int128)1 << 88) | 0x13b;
  for (size_t i = 0; i < count; i++) {
    hash = (hash ^ (unsigned char)bytes[i]) * prime;
  }
}

static void add(const char *text) {
  add_bytes(text, strlen(text) + 1);
}

static bool push(list *to, const char *name) {
  if (to->count == MOST) {
    return false;
  }
  to->names[to->count++] = name;
  return true;
}

static bool starts(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

/* The value of an option that has it in the same word or in the next one; NULL where it is another option. */
static const char *value(char **words, int *at, const char *option) {
  if (!starts(words[*at], option)) {
    return NULL;
  }
  const char *rest = words[*at] + strlen(option);
  return *rest ? rest : words[*at + 1] ? words[++*at] : NULL;
}

static bool ends_with(const char *name, const char *const *endings, size_t count) {
  const char *dot = strrchr(name, '.');
  for (size_t i = 0; dot && i < count; i++) {
    if (strcmp(dot, endings[i]) == 0) {
      return true;
    }
  }
  return false;
}

static bool is_source(const char *name) {
  static const char *const endings[] = {".c", ".cc", ".cpp", ".cxx", ".S", ".s"};
  return ends_with(name, endings, COUNT(endings));
}

static bool is_object(const char *name) {
  static const char *const endings[] = {".o", ".obj", ".a"};
  return ends_with(name, endings, COUNT(endings));
}

/* Whether one of the sources that are the same for every model is compiled. */
static bool is_of_library(char **words) {
  bool object = false, own = false;
  for (int i = 1; words[i]; i++) {
    const char *slash = strrchr(words[i], '/');
    const char *name = slash ? slash + 1 : words[i];
    object = object || strcmp(words[i], "-c") == 0;
    own = own || (is_source(words[i]) && (starts(name, "tinyet_") || starts(name, "arm_")));
  }
  return object && own;
}

/* Arguments with which a linker reads or writes other files. */
static bool is_of_files(const char *word) {
  return starts(word, "-L") || starts(word, "-T") || starts(word, "-Xlinker") ||
         (starts(word, "-Wl,") && (strchr(word, '/') || strstr(word, "Map") || strstr(word, "script")));
}

/* Arguments that make something else than an object, or read what is not looked into here. */
static bool is_other(const char *word) {
  static const char *const others[] = {
      "-E", "-S", "-M", "-v", "-#", "-B", "-save-temps", "-fdump", "--coverage", "-coverage",
      "-fprofile", "-ftest-coverage", "-fstack-usage", "-fcallgraph-info", "-fplugin", "-gsplit-dwarf", "-Wp,",
      "-Xpreprocessor", "-Xclang", "-iprefix", "-iwithprefix", "-imultilib", "-isysroot", "-ivfs", "-fmodule",
      "-frecord-gcc-switches", "-time", "--help", "--version", "-print", "-dump", "-wrapper", "-fcompare-debug",
  };
  for (size_t i = 0; i < COUNT(others); i++) {
    if (starts(word, others[i])) {
      return true;
    }
  }
  return false;
}

/* Whether a place is the compiler's own. */
static bool is_installed(const char *path) {
  return starts(path, "/usr/include/") || starts(path, "/usr/lib/") || starts(path, "/usr/share/");
}

/* Reads the arguments and adds those that decide the object. Returns whether this is a compilation that can be kept. */
static bool read_arguments(char **words) {
  bool links_files = false, library = is_of_library(words);
  static const char *const searched[] = {"-isystem", "-iquote", "-idirafter", "-I"};
  static const char *const included[] = {"-include", "-imacros"};
  static const char *const mapped[] = {"-ffile-prefix-map=", "-fdebug-prefix-map=", "-fmacro-prefix-map="};
  static const char *const followed[] = {"-D", "-U", "-x", "--param", "-target", "-mllvm", "-Xassembler"};
  for (int i = 1; words[i]; i++) {
    const char *word = words[i], *found = NULL;
    for (size_t k = 0; !found && k < COUNT(searched); k++) {
      if ((found = value(words, &i, searched[k]))) {
        add(searched[k]);
        if (is_installed(found)) {
          add(found);
        } else if (!push(&folders, found)) {
          return false;
        }
      }
    }
    for (size_t k = 0; !found && k < COUNT(included); k++) {
      if (strcmp(word, included[k]) == 0 && words[i + 1]) {
        found = words[++i];
        add(included[k]);
        if (access(found, R_OK) != 0 || !push(&files, found)) {
          return false;
        }
      }
    }
    for (size_t k = 0; !found && k < COUNT(mapped); k++) {
      if (starts(word, mapped[k])) {
        found = word + strlen(mapped[k]);
        const char *to = strchr(found, '=');
        add(mapped[k]);
        if (!to || !push(&maps, found)) {
          return false;
        }
        add(to);
      }
    }
    if (found) {
      continue;
    }
    if (strcmp(word, "-c") == 0) {
      compiles = true;
    } else if (strcmp(word, "-fsyntax-only") == 0) {
      checks = true;
      add(word);
    } else if ((found = value(words, &i, "-o"))) {
      output = found;
    } else if (strcmp(word, "-MD") == 0 || strcmp(word, "-MMD") == 0) {
      writes_dependencies = true;
    } else if (strcmp(word, "-MP") == 0) {
      phony = true;
    } else if ((found = value(words, &i, "-MF"))) {
      dependencies = found;
    } else if ((found = value(words, &i, "-MT")) || (found = value(words, &i, "-MQ"))) {
      target = found;
    } else if (starts(word, "-DTINYET_")) {
      if (!push(&defines, word)) {
        return false;
      }
    } else if (word[0] == '@' || is_other(word)) {
      return false;
    } else if (word[0] == '-') {
      /* -g3 keeps macros. */
      all_defines_count = all_defines_count || strcmp(word, "-g3") == 0 || strcmp(word, "-ggdb3") == 0;
      links_files = links_files || is_of_files(word);
      places_count = places_count || starts(word, "-fsanitize");
      if (starts(word, "-g") && strcmp(word, "-g0") != 0) {
        bool lines = library && (strcmp(word, "-g") == 0 || strcmp(word, "-g1") == 0);
        debugs = true;
        places_count = places_count || !lines;
        word = words[i] = lines ? "-g1" : words[i];
      }
      add(word);
      for (size_t k = 0; k < COUNT(followed); k++) {
        if (strcmp(word, followed[k]) == 0 && words[i + 1]) {
          add(words[++i]);
          break;
        }
      }
    } else if (is_source(word) || is_object(word)) {
      add(is_source(word) ? "a source" : "an object");
      if (!push(is_source(word) ? &sources : &objects, word)) {
        return false;
      }
    } else {
      return false;
    }
  }
  if (checks) {
    places_count = debugs = false; /* No object names them. */
    return sources.count > 0 && objects.count == 0 && !compiles && !output && !writes_dependencies;
  }
  bool program = !compiles && sources.count > 0 && !links_files && !writes_dependencies;
  bool object = compiles && sources.count == 1 && objects.count == 0;
  output = !output && program ? "a.out" : output;
  return output && (program || object);
}

/* The bytes of a file, with a 0 behind them; NULL where it cannot be read. */
static char *contents(const char *path, size_t *size) {
  struct stat facts;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  char *bytes = NULL;
  if (file >= 0 && fstat(file, &facts) == 0 && S_ISREG(facts.st_mode)) {
    *size = (size_t)facts.st_size;
    bytes = malloc(*size + 1);
    if (bytes && read(file, bytes, *size) == (ssize_t)*size) {
      bytes[*size] = 0;
    } else {
      bytes = NULL;
    }
  }
  if (file >= 0) {
    close(file);
  }
  return bytes;
}

/* Every file that a name in a text may mean, wherever it is. */
static bool add_named(const char *name, size_t length, const char *from) {
  const char *slash = strrchr(from, '/');
  for (size_t i = 0; i <= folders.count; i++) {
    char *path = NULL;
    int made = i == folders.count ? asprintf(&path, "%.*s%.*s", slash ? (int)(slash - from + 1) : 0, from, (int)length, name)
                                  : asprintf(&path, "%s/%.*s", folders.names[i], (int)length, name);
    struct stat facts;
    if (made < 0) {
      return false;
    }
    if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode)) {
      free(path);
      continue;
    }
    add_bytes((const char *)&i, sizeof i);
    add_bytes(name, length);
    bool seen = false;
    for (size_t k = 0; !seen && k < files.count; k++) {
      seen = strcmp(files.names[k], path) == 0;
    }
    if (!seen && !push(&files, path)) {
      return false;
    }
  }
  return true;
}

static const char *blanks(const char *at) {
  return at + strspn(at, " \t");
}

/* A name in quotes or angle brackets. Returns false for anything else: only the compiler knows what it is. */
static bool add_quoted(const char *at, const char *from) {
  const char *end = *at == '"' || *at == '<' ? strpbrk(at + 1, *at == '"' ? "\"\n" : ">\n") : NULL;
  return end && *end != '\n' && add_named(at + 1, (size_t)(end - at - 1), from);
}

/* Which of the macros on the command line a text names. */
static void find_defines(const char *path, const char *text) {
  static const char *const traces[] = {
      "TINYET_LAYER_BEGIN", "TINYET_LAYER_END", "TINYET_EVENT_BEGIN", "TINYET_EVENT_END", "tinyet_trace_",
  };
  const char *slash = strrchr(path, '/');
  /* The header that declares the trace says its names and is the same code without it. */
  bool declares_trace = strcmp(slash ? slash + 1 : path, "tinyet_common.h") == 0;
  /* A name that is put together is not found. */
  all_defines_count = all_defines_count || strstr(text, "TINYET_##") || strstr(text, "TINYET_ ##");
  for (size_t i = 0; i < defines.count; i++) {
    char name[128];
    const char *word = defines.names[i] + 2;
    bool traced = starts(word, "TINYET_TRACE=");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "=("), word);
    counted[i] = counted[i] || (!(traced && declares_trace) && strstr(text, name));
    for (size_t k = 0; traced && !declares_trace && k < COUNT(traces); k++) {
      counted[i] = counted[i] || strstr(text, traces[k]);
    }
  }
}

/* Adds a text and what it includes, in whatever branch. */
static bool add_text(const char *path) {
  static const char *const changing[] = {"__DATE__", "__TIME__", "__TIMESTAMP__", ".incbin"};
  static const char *const placed[] = {"__FILE__", "__BASE_FILE__", "__builtin_FILE", "assert.h", "cassert"};
  size_t size;
  const char *text = contents(path, &size);
  if (!text || strlen(text) != size) {
    return false;
  }
  add_bytes(text, size + 1);
  for (size_t i = 0; i < COUNT(changing); i++) {
    if (strstr(text, changing[i])) {
      return false;
    }
  }
  for (size_t i = 0; !places_count && i < COUNT(placed); i++) {
    places_count = strstr(text, placed[i]) != NULL;
  }
  find_defines(path, text);
  for (const char *line = text; line; line = strchr(line, '\n')) {
    line = blanks(line + (*line == '\n'));
    if (*line != '#') {
      continue;
    }
    line = blanks(line + 1);
    if (starts(line, "include") || starts(line, "import") || starts(line, "embed")) {
      if (!add_quoted(blanks(line + strspn(line, "abcdefghijklmnopqrstuvwxyz_")), path)) {
        return false;
      }
    }
  }
  for (const char *at = text; (at = strstr(at, "__has_include"));) {
    at = blanks(at + strspn(at, "abcdefghijklmnopqrstuvwxyz_"));
    if (*at == '(' && !add_quoted(blanks(at + 1), path)) {
      return false;
    }
  }
  return true;
}

/* A place as prefix maps leave it: the last that fits is applied. Where only debug information of lines names it, it
   counts if it is an absolute one: outside of the project, or one that should have been mapped. */
static void add_place(const char *path) {
  const char *before = "";
  for (size_t i = maps.count; i-- > 0;) {
    const char *to = strrchr(maps.names[i], '=');
    size_t length = (size_t)(to - maps.names[i]);
    if (strncmp(path, maps.names[i], length) == 0) {
      before = to + 1;
      path += length;
      break;
    }
  }
  if (places_count || (*before ? *before : *path) == '/') {
    add(before);
    add(path);
  }
}

/* Adds all that the object comes of; false where that cannot be known. */
static bool add_sources(void) {
  char here[PATH_MAX];
  if (!getcwd(here, sizeof here)) {
    return false;
  }
  for (size_t i = 0; i < sources.count; i++) {
    const char *slash = strrchr(sources.names[i], '/');
    add(slash ? slash + 1 : sources.names[i]);
    if (!push(&files, sources.names[i])) {
      return false;
    }
  }
  for (size_t i = 0; i < objects.count; i++) {
    size_t size;
    const char *bytes = contents(objects.names[i], &size);
    if (!bytes) {
      return false;
    }
    add_bytes((const char *)&size, sizeof size);
    add_bytes(bytes, size);
  }
  for (size_t i = 0; i < files.count; i++) {
    if (!add_text(files.names[i])) {
      return false;
    }
  }
  for (size_t i = 0; i < defines.count; i++) {
    if (counted[i] || all_defines_count) {
      add(defines.names[i]);
    }
  }
  if (places_count || debugs) {
    add_place(here);
    for (size_t i = 0; i < files.count; i++) {
      add_place(files.names[i]);
    }
  }
  return true;
}

/* from: NULL makes an empty file. */
static bool copy(const char *from, const char *to) {
  size_t size = 0;
  const char *bytes = from ? contents(from, &size) : "";
  int file = bytes ? open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, compiles ? 0666 : 0777) : -1;
  bool done = file >= 0 && write(file, bytes, size) == (ssize_t)size;
  if (file >= 0) {
    done = close(file) == 0 && done;
  }
  return done;
}

static void print_name(FILE *to, const char *name) {
  for (; *name; name++) {
    if (*name == ' ' || *name == '#') {
      fputc('\\', to);
    } else if (*name == '$') {
      fputc('$', to);
    }
    fputc(*name, to);
  }
}

/* What -MD or -MMD writes, without the files of the compiler's own. */
static bool write_rule(void) {
  char path[PATH_MAX];
  const char *dot = strrchr(output, '.');
  snprintf(path, sizeof path, "%.*s.d", dot ? (int)(dot - output) : (int)strlen(output), output);
  FILE *to = fopen(dependencies ? dependencies : path, "w");
  if (!to) {
    return false;
  }
  if (target) {
    fputs(target, to);
  } else {
    print_name(to, output);
  }
  fputc(':', to);
  for (size_t i = 0; i < files.count; i++) {
    fputs(" \\\n ", to);
    print_name(to, files.names[i]);
  }
  fputc('\n', to);
  for (size_t i = 0; phony && i < files.count; i++) {
    if (strcmp(files.names[i], sources.names[0]) != 0) {
      print_name(to, files.names[i]);
      fputs(":\n", to);
    }
  }
  return fclose(to) == 0;
}

/* Runs the compiler; what it says goes on. Returns its status, and whether it said something. */
static int run(const char *tool, char **words, bool *said) {
  int ends[2], status;
  pid_t child;
  posix_spawn_file_actions_t actions;
  char bytes[4096];
  ssize_t count;
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return 1;
  }
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  if (posix_spawn(&child, tool, &actions, NULL, words, environ) != 0) {
    return 1;
  }
  close(ends[1]);
  while ((count = read(ends[0], bytes, sizeof bytes)) > 0) {
    *said = true;
    if (write(2, bytes, (size_t)count) != count) {
      break;
    }
  }
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Whether tests/ops/objects.py asks, which looks for itself what is kept. */
static bool is_for_objects(const char *shelf) {
  const char *directory = getenv("TINYET_TEST_OBJECTS");
  return output && (starts(output, shelf) || (directory && *directory && starts(output, directory)));
}

/* The compiler itself: the next of this name on a search path. */
static const char *tool_of(const char *name, const char *path, const struct stat *self) {
  static char found[PATH_MAX];
  struct stat facts;
  while (path && *path) {
    size_t length = strcspn(path, ":");
    snprintf(found, sizeof found, "%.*s/%s", (int)length, path, name);
    bool own = stat(found, &facts) != 0 || (facts.st_dev == self->st_dev && facts.st_ino == self->st_ino);
    if (!own && access(found, X_OK) == 0) {
      return found;
    }
    path += length + (path[length] == ':');
  }
  return NULL;
}

int main(int argc, char **words) {
  const char *slash = strrchr(words[0], '/');
  const char *name = slash ? slash + 1 : words[0];
  const char *shelf = getenv("TINYET_TEST_COMPILED");
  struct stat self;
  if (argc < 1 || stat("/proc/self/exe", &self) != 0) {
    return 127;
  }
  const char *tool = tool_of(name, getenv("PATH"), &self);
  tool = tool ? tool : tool_of(name, SEARCH_PATH, &self);
  if (!tool) {
    fprintf(stderr, "%s: not found\n", name);
    return 127;
  }
  words[0] = strdup(tool);
  bool moved = getenv("CPATH") || getenv("C_INCLUDE_PATH") || getenv("CPLUS_INCLUDE_PATH");
  add(tool);
  if (!shelf || !*shelf || moved || !read_arguments(words) || is_for_objects(shelf) || !add_sources()) {
    execv(tool, words);
    return 127;
  }
  char kept[PATH_MAX], made[PATH_MAX];
  snprintf(kept, sizeof kept, "%s/%016llx%016llx", shelf, (unsigned long long)(hash >> 64), (unsigned long long)hash);
  if (utimensat(AT_FDCWD, kept, NULL, 0) == 0 && (checks || copy(kept, output)) && (!writes_dependencies || write_rule())) {
    return 0;
  }
  bool said = false;
  int status = run(tool, words, &said);
  if (status == 0 && !said) {
    /* Others see the whole object or none. */
    snprintf(made, sizeof made, "%s/%d.part", shelf, (int)getpid());
    if (!copy(checks ? NULL : output, made) || rename(made, kept) != 0) {
      unlink(made);
    }
  }
  return status;
}
