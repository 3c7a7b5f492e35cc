// Plugin of qemu-user: the instructions between calls of one function.
//
//     qemu-aarch64 -plugin count.so,mark=OFFSET -d plugin -D FILE PROGRAM
//
// OFFSET is the function's address in the program's file, in hexadecimal;
// qemu loads programs at multiples of 2^32. Prints a number at every call. One
// thread. Declares the few functions it uses: Debian has no package with the
// header.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*)(uint64_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, int op, void *, uint64_t);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int flags, void *);
void qemu_plugin_outs(const char *);

int qemu_plugin_version = 1;

static uint32_t mark;
static uint64_t count;

static void marked(unsigned cpu, void *data) {
    char line[32];
    (void)cpu, (void)data;
    snprintf(line, sizeof line, "%llu\n", (unsigned long long)count);
    qemu_plugin_outs(line);
    count = 0;
}

static void translated(uint64_t id, struct qemu_plugin_tb *block) {
    size_t n = qemu_plugin_tb_n_insns(block);
    (void)id;
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
        if ((uint32_t)qemu_plugin_insn_vaddr(insn) == mark)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, marked, 0, NULL);
        // 0: add to a 64-bit counter.
        qemu_plugin_register_vcpu_insn_exec_inline(insn, 0, &count, 1);
    }
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], "mark=", 5) == 0)
            mark = strtoul(argv[i] + 5, NULL, 16);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
