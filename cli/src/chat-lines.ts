import { createInterface, type Interface } from 'node:readline/promises'
import { clearScreenDown, cursorTo } from 'node:readline'
import { svcError } from '@svc/core'
import type { History } from './history.ts'
import { INTERRUPTED } from './interrupt.ts'

/** Somebody who can be asked something. */
export interface Person {
  /** The answer; none where the signal aborts or nobody is there any more. */
  question(text: string, signal: AbortSignal): Promise<string | undefined>
  /** Writes something while a question may stand on the last line. */
  readonly beside: (write: () => void) => void
}

/** The line editor of a conversation. Ctrl-C aborts what is under way; at the prompt, or once more, it ends. */
export interface Lines extends Person, Disposable {
  readonly typed: AsyncIterable<string>
  prompt(): void
  /** Ended by Ctrl-C at the prompt. */
  readonly interrupted: boolean
  readonly closed: boolean
  /** Does work that Ctrl-C aborts. */
  during<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>
}

interface Options {
  readonly output: NodeJS.WriteStream
  readonly history: History
  readonly complete: (line: string) => string[]
}

const HISTORY_SIZE = 1_000

export function openLines({ output, history, complete }: Options): Lines {
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
  const interrupts = interruptsOf(editor)
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

/** On a terminal the line editor takes Ctrl-C. */
function interruptsOf(editor: Interface) {
  let running: AbortController | undefined
  let ended = false
  editor.on('SIGINT', () => {
    if (running?.signal.aborted) process.exit(INTERRUPTED)
    if (running) return running.abort(svcError('INTERRUPTED', 'interrupted'))
    ended = true
    editor.close()
  })
  return {
    get ended() {
      return ended
    },
    async during<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
      running = new AbortController()
      try {
        return await work(running.signal)
      } finally {
        running = undefined
      }
    },
  }
}

/** Asks on the line of an editor; answers are no part of its history. */
function personAt(editor: Interface, output: NodeJS.WriteStream, closed: AbortSignal, lines: readonly string[] = []): Person {
  let asking = false
  let kept = [...lines]
  editor.on('history', history => {
    if (asking) history.splice(0, history.length, ...kept)
    else kept = [...history]
  })
  return {
    async question(text, signal) {
      // what was typed before the question was seen is no answer to it
      if (editor.line !== '') for (const name of ['e', 'u']) editor.write(null, { ctrl: true, name })
      const ending = AbortSignal.any([signal, closed])
      asking = true
      // at once: what is written next must not bring the question back
      ending.addEventListener('abort', () => {
        if (asking && output.isTTY) output.write('\n')
        asking = false
      })
      try {
        return await editor.question(text, { signal: ending })
      } catch {
        return undefined
      } finally {
        asking = false
      }
    },
    beside(write) {
      if (!asking || !output.isTTY) return write()
      cursorTo(output, 0)
      clearScreenDown(output)
      write()
      editor.prompt(true)
    },
  }
}

/** Somebody at the terminal of a command that has no line editor: it is there for the length of a question. */
export function passingPerson(output: NodeJS.WriteStream): Person {
  let asked: Person | undefined
  return {
    async question(text, signal) {
      const editor = createInterface({ input: process.stdin, output, historySize: 0 })
      const closed = new AbortController()
      editor.once('close', () => closed.abort())
      // while it is open the terminal sends no signal: it stands in
      editor.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
      asked = personAt(editor, output, closed.signal)
      try {
        return await asked.question(text, signal)
      } finally {
        asked = undefined
        editor.close()
      }
    },
    beside: write => (asked ? asked.beside(write) : write()),
  }
}
