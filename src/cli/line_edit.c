/* SPDX-License-Identifier: MIT */
#include "cli/line_edit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { HISTORY_MAX = 500, TYPED_MAX = 1 << 20, COLUMNS_USUAL = 80 };

enum key { KEY_NONE = 256, KEY_LEFT, KEY_RIGHT, KEY_UP, KEY_DOWN, KEY_HOME, KEY_END, KEY_DELETE };

struct line_edit {
    char *history[HISTORY_MAX]; /* owned; the oldest first */
    size_t history_n, history_at;
    struct buf text; /* owned; the line under way */
    size_t at;       /* where the cursor stands in it */
    const char *prompt;
    struct termios before;
    unsigned char in[256]; /* read, not looked at yet */
    size_t in_at, in_n;
};

struct line_edit *line_edit_new(void)
{
    struct line_edit *l = calloc(1, sizeof *l);

    if (l)
        l->text = BUF_INIT(TYPED_MAX);
    return l;
}

void line_edit_free(struct line_edit *l)
{
    if (!l)
        return;
    while (l->history_n > 0)
        free(l->history[--l->history_n]);
    buf_done(&l->text);
    free(l);
}

void line_edit_remember(struct line_edit *l, const char *text)
{
    char *copy;

    if (!*text || (l->history_n && strcmp(l->history[l->history_n - 1], text) == 0))
        return;
    copy = strdup(text);
    if (!copy)
        return;
    if (l->history_n == HISTORY_MAX) {
        free(l->history[0]);
        memmove(l->history, l->history + 1, (HISTORY_MAX - 1) * sizeof *l->history);
        l->history_n--;
    }
    l->history[l->history_n++] = copy;
}

/* ---- what is typed ---- */

/* -1 at the end. */
static int next_byte(struct line_edit *l)
{
    ssize_t n;

    if (l->in_at < l->in_n)
        return l->in[l->in_at++];
    do
        n = read(STDIN_FILENO, l->in, sizeof l->in);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return -1;
    l->in_n = (size_t)n;
    l->in_at = 1;
    return l->in[0];
}

/* What follows ESC. */
static int next_sequence(struct line_edit *l)
{
    static const struct {
        const char *text;
        enum key key;
    } keys[] = {
        {"[D",  KEY_LEFT  },
        {"[C",  KEY_RIGHT },
        {"[A",  KEY_UP    },
        {"[B",  KEY_DOWN  },
        {"[H",  KEY_HOME  },
        {"[F",  KEY_END   },
        {"OH",  KEY_HOME  },
        {"OF",  KEY_END   },
        {"[1~", KEY_HOME  },
        {"[3~", KEY_DELETE},
        {"[4~", KEY_END   },
        {"OD",  KEY_LEFT  },
        {"OC",  KEY_RIGHT },
        {"OA",  KEY_UP    },
        {"OB",  KEY_DOWN  }
    };
    char got[8] = "";
    size_t n = 0;
    int c;

    do {
        c = next_byte(l);
        if (c < 0)
            return -1;
        got[n++] = (char)c;
    } while (n < sizeof got - 1 && (n == 1 || (c >= '0' && c <= '9') || c == ';'));
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strcmp(got, keys[i].text) == 0)
            return (int)keys[i].key;
    return KEY_NONE;
}

/* ---- what is seen ---- */

static bool is_inner(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t columns_of(const char *p, size_t n)
{
    size_t columns = 0;

    for (size_t i = 0; i < n; i++)
        columns += !is_inner(p[i]);
    return columns;
}

static size_t width(void)
{
    struct winsize w;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 10 ? w.ws_col : COLUMNS_USUAL;
}

/* One row: of a line that is longer the part around the cursor. */
static void redraw(const struct line_edit *l)
{
    const char *text = l->text.n ? l->text.p : "";
    size_t room = width() - strlen(l->prompt) - 1, from = 0, to = l->text.n, back;

    while (columns_of(text + from, l->at - from) >= room)
        do
            from++;
        while (is_inner(text[from]));
    while (to > l->at && columns_of(text + from, to - from) > room)
        to--;
    while (to < l->text.n && is_inner(text[to]))
        to--;
    back = columns_of(text + l->at, to > l->at ? to - l->at : 0);
    (void)printf("\r%s%.*s\033[K", l->prompt, (int)(to - from), text + from);
    if (back)
        (void)printf("\033[%zuD", back);
    (void)fflush(stdout);
}

/* ---- editing ---- */

static size_t step_left(const struct line_edit *l, size_t at)
{
    while (at > 0 && is_inner(l->text.p[--at]))
        ;
    return at;
}

static size_t step_right(const struct line_edit *l, size_t at)
{
    if (at < l->text.n)
        at++;
    while (at < l->text.n && is_inner(l->text.p[at]))
        at++;
    return at;
}

static void cut(struct line_edit *l, size_t from, size_t to)
{
    if (from == to)
        return;
    memmove(l->text.p + from, l->text.p + to, l->text.n - to + 1);
    l->text.n -= to - from;
    l->at = from;
}

static void insert(struct line_edit *l, char c)
{
    if (buf_putc(&l->text, c) < 0)
        return;
    memmove(l->text.p + l->at + 1, l->text.p + l->at, l->text.n - 1 - l->at);
    l->text.p[l->at++] = c;
}

static void show_history(struct line_edit *l, int by)
{
    size_t to = l->history_at + (size_t)by;

    if ((by < 0 && l->history_at == 0) || to > l->history_n)
        return;
    l->history_at = to;
    buf_clear(&l->text);
    if (to < l->history_n)
        (void)buf_puts(&l->text, l->history[to]);
    l->at = l->text.n;
}

static size_t word_left(const struct line_edit *l)
{
    size_t at = l->at;

    while (at > 0 && l->text.p[at - 1] == ' ')
        at--;
    while (at > 0 && l->text.p[at - 1] != ' ')
        at--;
    return at;
}

static void press(struct line_edit *l, int key)
{
    if (key == KEY_LEFT || key == CTRL('b'))
        l->at = step_left(l, l->at);
    else if (key == KEY_RIGHT || key == CTRL('f'))
        l->at = step_right(l, l->at);
    else if (key == KEY_HOME || key == CTRL('a'))
        l->at = 0;
    else if (key == KEY_END || key == CTRL('e'))
        l->at = l->text.n;
    else if (key == KEY_UP || key == CTRL('p'))
        show_history(l, -1);
    else if (key == KEY_DOWN || key == CTRL('n'))
        show_history(l, 1);
    else if (key == 0x7f || key == CTRL('h'))
        cut(l, step_left(l, l->at), l->at);
    else if (key == KEY_DELETE || key == CTRL('d'))
        cut(l, l->at, step_right(l, l->at));
    else if (key == CTRL('u'))
        cut(l, 0, l->at);
    else if (key == CTRL('k'))
        cut(l, l->at, l->text.n);
    else if (key == CTRL('w'))
        cut(l, word_left(l), l->at);
    else if (key == CTRL('l'))
        (void)fputs("\033[H\033[2J", stdout);
    else if (key == '\t')
        for (int i = 0; i < 4; i++)
            insert(l, ' ');
    else if (key < 256 && key >= ' ')
        insert(l, (char)key);
}

static enum line_end type_line(struct line_edit *l)
{
    redraw(l);
    for (;;) {
        int key = next_byte(l);

        if (key == 0x1b)
            key = next_sequence(l);
        if (key < 0 || (key == CTRL('d') && l->text.n == 0))
            return LINE_OVER;
        if (key == CTRL('c'))
            return LINE_STOPPED;
        if (key == '\r' || key == '\n')
            return LINE_GOOD;
        press(l, key);
        if (l->in_at == l->in_n)
            redraw(l);
    }
}

static enum line_end plain_line(struct line_edit *l)
{
    int c;

    while ((c = next_byte(l)) >= 0 && c != '\n')
        insert(l, (char)c);
    return c < 0 && l->text.n == 0 ? LINE_OVER : LINE_GOOD;
}

enum line_end line_edit_read(struct line_edit *l, const char *prompt, struct buf *out)
{
    enum line_end end;
    struct termios raw;
    bool terminal = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &l->before) == 0;

    buf_clear(&l->text);
    buf_clear(out);
    l->at = 0;
    l->history_at = l->history_n;
    l->prompt = prompt;
    if (!terminal) {
        end = plain_line(l);
    } else {
        raw = l->before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
        raw.c_iflag &= ~(tcflag_t)(ICRNL | IXON);
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
        end = type_line(l);
        l->at = l->text.n;
        if (end == LINE_GOOD)
            redraw(l);
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &l->before);
        (void)fputs(end == LINE_STOPPED ? "^C\n" : "\n", stdout);
        (void)fflush(stdout);
    }
    (void)buf_put(out, l->text.n ? l->text.p : "", l->text.n);
    return end;
}
