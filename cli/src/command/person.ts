import { clearScreenDown, cursorTo } from 'node:readline'
import { createInterface, type Interface } from 'node:readline/promises'

/** A person at a terminal who can be asked something. */
export interface Person {
  /** The answer; undefined where the signal aborts or the terminal is closed. */
  question(text: string, signal: AbortSignal): Promise<string | undefined>
  /** Writes something while a question may stand on the last line. */
  readonly beside: (write: () => void) => void
}

/** Asks on the line of an editor, until it is closed; answers are not part of its history, which begins with `lines`. */
export function personAt(
  editor: Interface,
  output: NodeJS.WriteStream,
  closed: AbortSignal,
  lines: readonly string[] = []
): Person {
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

/** The person at the terminal of a command that has no line editor: the editor is there for the length of a question. */
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
