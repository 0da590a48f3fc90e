import { createInterface, type Interface } from 'node:readline/promises'
import { type Person, personAt } from '@svc/cli/command'
import { svcError } from '@svc/core'
import type { History } from './history.ts'

/** The line editor of a conversation. Ctrl-C aborts what is under way; at the prompt, or once more, it ends the conversation. */
export interface Lines extends Person, Disposable {
  readonly typed: AsyncIterable<string>
  prompt(): void
  /** Ended by Ctrl-C. */
  readonly interrupted: boolean
  readonly closed: boolean
  /** Does work that Ctrl-C aborts; undefined where a second one left it behind. */
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

/** On a terminal the line editor takes Ctrl-C. */
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
    // while it is open the terminal sends no signal: it stands in
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
