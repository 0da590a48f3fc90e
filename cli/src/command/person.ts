import { clearScreenDown, cursorTo } from 'node:readline'
import { Writable } from 'node:stream'
import { createInterface, type Interface } from 'node:readline/promises'

/** Asks a person at a terminal. */
export interface TerminalUser {
  /** Resolves with the answer; undefined if the signal aborts or the terminal closes. */
  question(text: string, signal: AbortSignal): Promise<string | undefined>
  /** Writes output while a question may be on the last line. */
  readonly beside: (write: () => void) => void
}

/** Asks through a line editor until it is closed. Answers do not enter its history, which begins with `lines`. */
export function personAt(
  editor: Interface,
  output: NodeJS.WriteStream,
  closed: AbortSignal,
  lines: readonly string[] = []
): TerminalUser {
  let asking = false
  let kept = [...lines]
  editor.on('history', history => {
    if (asking) history.splice(0, history.length, ...kept)
    else kept = [...history]
  })
  return {
    async question(text, signal) {
      // input typed before the question is not an answer
      if (editor.line !== '') for (const name of ['e', 'u']) editor.write(null, { ctrl: true, name })
      const ending = AbortSignal.any([signal, closed])
      asking = true
      // at once: later output must not repeat the question
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

/** Asks at the terminal of a command and does not show the answer. Rejects when the signal aborts or the terminal closes. */
export async function hiddenQuestion(text: string, signal: AbortSignal): Promise<string> {
  const { stdin, stderr } = process
  const nowhere = new Writable({ write: (_piece, _encoding, done) => done() })
  const editor = createInterface({ input: stdin, output: nowhere, terminal: true, historySize: 0 })
  const closed = new AbortController()
  editor.once('close', () => closed.abort(new Error('the terminal was closed')))
  // an open editor receives Ctrl-C instead of a signal
  editor.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  stderr.write(text)
  try {
    return await editor.question('', { signal: AbortSignal.any([signal, closed.signal]) })
  } finally {
    stderr.write('\n')
    editor.close()
  }
}

/** Asks at the terminal of a command without a line editor: the editor is open only during the question. */
export function passingPerson(output: NodeJS.WriteStream): TerminalUser {
  let asked: TerminalUser | undefined
  return {
    async question(text, signal) {
      const editor = createInterface({ input: process.stdin, output, historySize: 0 })
      const closed = new AbortController()
      editor.once('close', () => closed.abort())
      // an open editor receives Ctrl-C instead of a signal
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
