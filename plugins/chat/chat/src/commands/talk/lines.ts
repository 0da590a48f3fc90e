import { appendFileSync, chmodSync, closeSync, fstatSync, openSync, readSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline/promises'
import { type TerminalUser, personAt } from '@svc/cli/command'
import { svcError } from '@svc/core'

/** The line editor of a conversation. Ctrl-C aborts running work. At the prompt, or pressed again, it ends the conversation. */
export interface Lines extends TerminalUser, Disposable {
  readonly typed: AsyncIterable<string>
  prompt(): void
  /** Ended by Ctrl-C. */
  readonly interrupted: boolean
  readonly closed: boolean
  /** Runs work that Ctrl-C aborts. Resolves with `undefined` if a second Ctrl-C abandoned it. */
  during<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined>
}

interface Options {
  readonly output: NodeJS.WriteStream
  readonly history: History
  readonly complete: (line: string) => string[]
  /** Ends the conversation. */
  readonly signal: AbortSignal
}

const HISTORY_SIZE = 1_000

export function openLines({ output, history, complete, signal }: Options): Lines {
  const editor = createInterface({
    input: process.stdin,
    output,
    prompt: '> ',
    history: [...history.lines],
    historySize: HISTORY_SIZE,
    completer: (line: string): [string[], string] => [complete(line), line],
  })
  const closed = new AbortController()
  editor.once('close', () => closed.abort())
  const interrupts = interruptsOf(editor, signal)
  const person = personAt(editor, output, closed.signal, history.lines)
  return {
    ...person,
    typed: editor,
    prompt: () => void (closed.signal.aborted || editor.prompt()),
    get interrupted() {
      return interrupts.ended
    },
    get closed() {
      return closed.signal.aborted
    },
    during: work => interrupts.during(work),
    [Symbol.dispose]: () => editor.close(),
  }
}

/** On a terminal, the line editor receives Ctrl-C. */
function interruptsOf(editor: Interface, signal: AbortSignal) {
  let running: AbortController | undefined
  let ended = false
  const left = Promise.withResolvers<undefined>()
  const end = () => {
    ended = true
    editor.close()
    left.resolve(undefined)
  }
  signal.addEventListener('abort', end)
  editor.on('SIGINT', () => {
    // an open editor keeps the terminal from sending a signal, so it replaces the signal
    if (running?.signal.aborted) process.kill(process.pid, 'SIGINT')
    else if (running) running.abort(svcError('INTERRUPTED', 'interrupted'))
    else end()
  })
  return {
    get ended() {
      return ended
    },
    async during<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
      running = new AbortController()
      try {
        return await Promise.race([work(running.signal), left.promise])
      } finally {
        running = undefined
      }
    },
  }
}

/** The typed lines, stored in the svc home for the next chat. */
interface History {
  /** Newest first. */
  readonly lines: readonly string[]
  /** Stores a line, unless it begins with a blank or repeats the last line. Never throws. */
  add(line: string): void
}

const MOST_LINES = 1_000
const MOST_BYTES = 1024 * 1024
const LONGEST = 10_000

/** Reads `<home>/history`, which only its owner can read. If it is missing or unreadable, the history starts empty. */
export function openHistory(home: string): History {
  const file = join(home, 'history')
  // a pipe or a device could block the chat
  if (attempt(() => statSync(file).isFile()) === false) return { lines: [], add() {} }
  const { lines, grown } = readLines(file)
  if (grown) rewrite(file, lines)
  let last = lines.at(-1)
  return {
    lines: lines.toReversed(),
    add(line) {
      if (line === last || line.trim() === '' || /^\s/.test(line) || line.length > LONGEST) return
      last = line
      // write each line at once, because two chats can write, and one can be killed
      attempt(() => appendFileSync(file, `${line}\n`, { mode: 0o600 }))
    },
  }
}

/** The last lines of a file. `grown`: the file is long enough to be cut. */
function readLines(file: string): { lines: string[]; grown: boolean } {
  const { text, size } = attempt(() => tailOf(file)) ?? { text: '', size: 0 }
  const all = text.split('\n').filter(line => line.trim() !== '' && !/\p{Cc}/u.test(line))
  const lines = all.filter((line, at) => line !== all[at - 1]).slice(-MOST_LINES)
  return { lines, grown: all.length > 2 * MOST_LINES || size > MOST_BYTES }
}

function tailOf(file: string): { text: string; size: number } {
  const handle = openSync(file, 'r')
  try {
    const { size } = fstatSync(handle)
    const from = Math.max(0, size - MOST_BYTES)
    const bytes = Buffer.alloc(size - from)
    readSync(handle, bytes, 0, bytes.length, from)
    chmodSync(file, 0o600)
    const text = bytes.toString('utf8')
    return { text: from === 0 ? text : text.slice(text.indexOf('\n') + 1), size }
  } finally {
    closeSync(handle)
  }
}

function rewrite(file: string, lines: readonly string[]): void {
  attempt(() => {
    const next = `${file}.${process.pid}`
    writeFileSync(next, lines.map(line => `${line}\n`).join(''), { mode: 0o600 })
    renameSync(next, file)
  })
}

/** Without a writable home, the chat works, but the history is lost. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
