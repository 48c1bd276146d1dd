/* SPDX-License-Identifier: MIT */
/*
 * Leaving a stack and coming back to it from another thread: see threads.c.
 *
 * struct thread_frame: rip, rsp, rbx, rbp, r12, r13, r14, r15, eight bytes each.
 */
        .text

/* int thread_save(struct thread_frame *f): 0; 1 when a revived thread returns from it again. */
        .globl  thread_save
        .hidden thread_save
        .type   thread_save, @function
thread_save:
        endbr64
        movq    (%rsp), %rax
        movq    %rax, 0(%rdi)
        leaq    8(%rsp), %rax
        movq    %rax, 8(%rdi)
        movq    %rbx, 16(%rdi)
        movq    %rbp, 24(%rdi)
        movq    %r12, 32(%rdi)
        movq    %r13, 40(%rdi)
        movq    %r14, 48(%rdi)
        movq    %r15, 56(%rdi)
        xorl    %eax, %eax
        ret
        .size   thread_save, .-thread_save

/* long thread_revive(unsigned long flags, const struct thread_frame *f, int *tid, void *tls):
 * clone(2), whose child continues where `f` was saved. The tid or -errno. */
        .globl  thread_revive
        .hidden thread_revive
        .type   thread_revive, @function
thread_revive:
        endbr64
        pushq   %r12
        movq    %rsi, %r12
        movq    8(%r12), %rsi
        movq    %rdx, %r10
        movq    %rcx, %r8
        movl    $56, %eax               /* clone(flags, stack, tid, tid, tls) */
        syscall
        testq   %rax, %rax
        jz      1f
        popq    %r12
        ret
1:      movq    %r12, %rdi
        movq    8(%rdi), %rsp
        movq    16(%rdi), %rbx
        movq    24(%rdi), %rbp
        movq    32(%rdi), %r12
        movq    40(%rdi), %r13
        movq    48(%rdi), %r14
        movq    56(%rdi), %r15
        movl    $1, %eax
        jmp     *0(%rdi)
        .size   thread_revive, .-thread_revive

        .section .note.GNU-stack, "", @progbits
