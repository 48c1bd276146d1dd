# SPDX-License-Identifier: MIT
# Runs cells of R: a context of a sandbox. The frames are those of cells_python.py; what comes in is the text that
# cells_bash.sh gets: its values between quotes are those of R, too.
#
# R has no way to read or write a descriptor that it did not open: one process of cat brings what comes, and one carries each
# frame away; it has ended, so the daemon has the frame, before anything else is written. A cell is evaluated expression by
# expression in the global environment. Visible values are printed as a console prints them, the last one is the result of the cell.
# What is drawn goes to pictures that are shown at its end. SIGINT is an interrupt only while a cell runs.
local({
  input <- pipe("trap '' INT; exec cat <&3 2>/dev/null", "rb")
  cell <- new.env()
  cell$id <- NULL
  cell$count <- 0L
  event_max <- 4 * 1024^2 - 4096 # bytes of one event that the daemon takes
  table_max <- 100000L # values of a table, elements of a list
  pictures <- tempfile("cells")
  dir.create(pictures)

  # ---- JSON, in ASCII ----

  quoted <- function(text) {
    codes <- utf8ToInt(enc2utf8(text))
    if (anyNA(codes)) codes <- utf8ToInt(iconv(text, "UTF-8", "UTF-8", sub = "?"))
    plain <- codes >= 32L & codes < 127L & codes != 34L & codes != 92L
    if (all(plain)) return(paste0("\"", text, "\""))
    units <- character(length(codes))
    units[plain] <- intToUtf8(codes[plain], multiple = TRUE)
    wide <- codes > 0xffffL
    short <- !plain & !wide
    units[short] <- sprintf("\\u%04x", codes[short])
    rest <- codes[wide] - 0x10000L
    units[wide] <- sprintf("\\u%04x\\u%04x", 0xd800L + rest %/% 1024L, 0xdc00L + rest %% 1024L)
    paste0("\"", paste(units, collapse = ""), "\"")
  }

  scalars <- function(values) {
    if (is.factor(values)) values <- as.character(values)
    else if (inherits(values, c("Date", "POSIXt"))) values <- format(values, if (inherits(values, "Date")) "%Y-%m-%d" else "%Y-%m-%dT%H:%M:%S")
    if (is.logical(values)) texts <- ifelse(values, "true", "false")
    else if (is.numeric(values)) texts <- ifelse(is.finite(values), sprintf("%.15g", values), NA)
    else texts <- vapply(as.character(values), function(v) if (is.na(v)) NA_character_ else quoted(v), "")
    texts[is.na(texts)] <- "null"
    unname(texts)
  }

  array <- function(texts) paste0("[", paste(texts, collapse = ","), "]")

  object <- function(names, texts) {
    paste0("{", paste0(vapply(names, quoted, ""), ":", texts, recycle0 = TRUE, collapse = ","), "}")
  }

  # A list as JSON has it; vectors of one value are that value.
  json <- function(value) {
    if (is.null(value)) "null"
    else if (is.data.frame(value)) table_json(value)
    else if (is.list(value)) {
      texts <- vapply(value, json, "")
      if (is.null(names(value))) array(texts) else object(names(value), texts)
    } else if (is.atomic(value) || is.factor(value)) {
      if (length(value) == 1L) scalars(value) else array(scalars(value))
    } else stop("it is not JSON")
  }

  table_json <- function(frame) {
    object(names(frame), vapply(frame, function(column) array(if (is.list(column)) vapply(column, json, "") else scalars(column)), ""))
  }

  base64 <- function(bytes) {
    letters <- c(LETTERS, base::letters, 0:9, "+", "/")
    pad <- (3L - length(bytes) %% 3L) %% 3L
    three <- matrix(as.integer(c(bytes, raw(pad))), 3L)
    word <- three[1L, ] * 65536L + three[2L, ] * 256L + three[3L, ]
    text <- letters[rbind(word %/% 262144L, word %/% 4096L %% 64L, word %/% 64L %% 64L, word %% 64L) + 1L]
    if (pad > 0L) text[length(text) - seq_len(pad) + 1L] <- "="
    paste(text, collapse = "")
  }

  # ---- the channel ----

  send <- function(kind, ...) {
    text <- object(c(...names()), c(...))
    output <- pipe("trap '' INT; exec cat >&3 2>/dev/null", "wb")
    writeBin(charToRaw(paste0(kind, sprintf("%08x", nchar(text)), text)), output)
    close(output)
  }

  event <- function(type, ...) send("I", id = quoted(cell$id), type = quoted(type), ...)

  bundle <- function(texts, main = FALSE) {
    if (is.null(cell$id)) return(invisible())
    if (sum(nchar(texts)) > event_max - 4096)
      texts <- c("text/plain" = quoted("(too large to be shown)"))
    event("display", data = object(names(texts), texts), metadata = "{}", main = if (main) "true" else "false")
    invisible()
  }

  # ---- what is displayed ----

  escaped <- function(text) gsub(">", "&gt;", gsub("<", "&lt;", gsub("&", "&amp;", text, fixed = TRUE), fixed = TRUE), fixed = TRUE)

  html_of <- function(frame) {
    cells <- vapply(frame, function(column) escaped(trimws(format(column))), character(nrow(frame)))
    dim(cells) <- dim(frame)
    row <- function(values, tag) paste0("<tr>", paste0("<", tag, ">", values, "</", tag, ">", collapse = ""), "</tr>")
    names <- row.names(frame)
    body <- vapply(seq_len(nrow(frame)), function(i) row(c(escaped(names[i]), cells[i, ]), "td"), "")
    paste0("<table>\n<thead>", row(c("", escaped(names(frame))), "th"), "</thead>\n<tbody>\n", paste(body, collapse = "\n"), "\n</tbody>\n</table>")
  }

  # NULL: it shows itself in another way, as plots do.
  bundle_of <- function(value) {
    lines <- capture.output(print(value))
    if (length(lines) == 0L) return(NULL)
    texts <- c("text/plain" = quoted(paste(lines, collapse = "\n")))
    if (is.matrix(value) && is.atomic(value)) value <- as.data.frame(value)
    if (is.data.frame(value) && length(value) > 0L && nrow(value) * length(value) <= table_max) {
      texts[["text/html"]] <- quoted(html_of(value))
      texts[["application/vnd.sandbox-executor.table+json"]] <- table_json(value)
    } else if (is.list(value) && is.null(attr(value, "class")) && length(unlist(value)) <= table_max) {
      texts[["application/json"]] <- tryCatch(json(value), error = function(e) NA)
    }
    texts[!is.na(texts)]
  }

  contents <- function(source) if (is.raw(source)) source else readBin(source, "raw", file.size(source))

  # Names that a cell finds, behind its own.
  tools <- list(
    display = function(value) {
      texts <- bundle_of(value)
      if (!is.null(texts)) bundle(texts)
    },
    display_html = function(text) bundle(c("text/html" = quoted(paste(text, collapse = "\n")))),
    display_markdown = function(text) bundle(c("text/markdown" = quoted(paste(text, collapse = "\n")))),
    display_latex = function(text) bundle(c("text/latex" = quoted(paste(text, collapse = "\n")))),
    display_svg = function(text) bundle(c("image/svg+xml" = quoted(paste(text, collapse = "\n")))),
    display_json = function(value) bundle(c("application/json" = json(value))),
    display_png = function(source) bundle(c("image/png" = quoted(base64(contents(source))))),
    display_jpeg = function(source) bundle(c("image/jpeg" = quoted(base64(contents(source)))))
  )
  attach(tools, name = "tools:cells", warn.conflicts = FALSE)

  cell$devices <- integer()
  options(warn = 1, crayon.enabled = FALSE, device = function(...) {
    grDevices::png(file.path(pictures, paste0(length(cell$devices), "-%06d.png")), 840, 840, res = 120,
      type = if (capabilities("cairo")) "cairo" else getOption("bitmapType"))
    cell$devices <- c(cell$devices, grDevices::dev.cur())
  })

  show_pictures <- function() {
    for (device in intersect(cell$devices, grDevices::dev.list())) grDevices::dev.off(device)
    cell$devices <- integer()
    for (file in sort(list.files(pictures, full.names = TRUE))) {
      if (file.size(file) > 0) tools$display_png(file)
      unlink(file)
    }
  }

  # ---- cells ----

  # The calls of the program, without those around it and those that signal the error.
  words_of <- function(calls) {
    texts <- vapply(calls, function(call) paste(deparse(call, nlines = 1L), collapse = ""), "")
    texts <- texts[!grepl("^(\\.handleSimpleError|h)\\(", texts)]
    texts <- texts[-seq_len(max(0L, which(texts == "eval(expression, globalenv())")))]
    texts <- texts[texts != "eval(expression, globalenv())"]
    if (length(texts)) paste0(rev(seq_along(texts)), ". ", rev(texts)) else character()
  }

  # "Error in f(3): bad", then the calls.
  fail <- function(name, value, where = NULL, calls = list()) {
    place <- if (is.null(where)) "" else paste0(" in ", paste(deparse(where, nlines = 1L), collapse = ""))
    lines <- c(paste0("Error", place, ": ", value), words_of(calls))
    event("error", name = quoted(name), value = quoted(value), traceback = quoted(paste(lines, collapse = "\n")))
    "error"
  }

  run <- function(expressions) {
    for (i in seq_along(expressions)) {
      expression <- expressions[[i]]
      shown <- allowInterrupts(withVisible(eval(expression, globalenv())))
      if (!shown$visible) next
      if (i < length(expressions)) allowInterrupts(print(shown$value))
      else if (!is.null(texts <- allowInterrupts(bundle_of(shown$value)))) bundle(texts, main = TRUE)
    }
    "ok"
  }

  guarded <- function(code) {
    calls <- list()
    failed <- function(e) fail(class(e)[1L], conditionMessage(e), conditionCall(e), calls)
    expressions <- tryCatch(parse(text = code, keep.source = TRUE, encoding = "UTF-8"), error = identity)
    if (inherits(expressions, "error")) return(fail("SyntaxError", conditionMessage(expressions)))
    status <- tryCatch(
      withCallingHandlers(run(expressions), error = function(e) calls <<- sys.calls()),
      error = failed,
      interrupt = function(e) fail("KeyboardInterrupt", "the cell was interrupted"))
    tryCatch(show_pictures(), error = function(e) if (status == "ok") status <<- failed(e))
    status
  }

  # One that came after the cell that it was for is forgotten.
  forget_interrupt <- function() tryCatch(allowInterrupts(Sys.sleep(0)), interrupt = function(e) NULL)

  # NAME=$'value'; gives what it was.
  set_variable <- function(line) {
    at <- regexpr("=", line, fixed = TRUE)
    name <- substr(line, 1L, at - 1L)
    before <- Sys.getenv(name, NA)
    value <- eval(parse(text = substring(line, at + 2L), keep.source = FALSE, encoding = "UTF-8"))
    do.call(Sys.setenv, setNames(list(value), name))
    setNames(list(before), name)
  }

  restore <- function(before) {
    for (i in rev(seq_along(before)))
      if (is.na(before[[i]])) Sys.unsetenv(names(before)[i]) else do.call(Sys.setenv, before[i])
  }

  text_of <- function(bytes) {
    text <- rawToChar(bytes)
    Encoding(text) <- "UTF-8"
    text
  }

  serve_one <- function() {
    head <- readBin(input, "raw", 9L)
    if (length(head) < 9L) quit("no")
    size <- strtoi(rawToChar(head[-1L]), 16L)
    if (size == 0L) return(invisible())
    body <- readBin(input, "raw", size)
    if (length(body) < size) quit("no")
    ends <- which(body == as.raw(10L))
    line <- function(i) {
      before <- if (i > 1L) ends[i - 1L] else 0L
      text_of(body[before + seq_len(ends[i] - before - 1L)])
    }
    cell$id <- line(1L)
    variables <- as.integer(line(2L))
    before <- list()
    for (i in seq_len(variables)) before <- c(before, set_variable(line(2L + i)))
    code <- text_of(body[-seq_len(ends[2L + variables])])
    cell$count <- cell$count + 1L
    forget_interrupt()
    send("B", id = quoted(cell$id), count = as.character(cell$count))
    status <- guarded(code)
    restore(before)
    send("R", id = quoted(cell$id), status = quoted(status))
    cell$id <- NULL
  }

  send("Y", language = quoted("r"), version = quoted(paste(R.version$major, R.version$minor, sep = ".")))
  suspendInterrupts(repeat serve_one())
})
