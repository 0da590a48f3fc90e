import { hiddenQuestion, usageError } from '@svc/cli/command'
import { valueInvalid } from '../errors.ts'
import { MAX_VALUE_BYTES, withoutLastBreak } from '../sources.ts'

const LINE_BREAK_BYTES = 2

/** Refuses a value on the command line, without repeating it. Throws COMMAND_LINE_INVALID. */
export function refuseValue(words: readonly unknown[]): void {
  if (words.length > 1)
    throw usageError('COMMAND_LINE_INVALID', 'the value must come from standard input: other users can read the command line', {
      hint: 'Run the command with the name alone and enter the value. If the value was a real one, replace it: it is in the history of the shell',
    })
}

/**
 * Reads a value from standard input, without the line break at its end. At a terminal, it asks without showing the answer. Throws
 * SECRET_INVALID.
 */
export async function readValue(name: string, signal: AbortSignal): Promise<string> {
  const value = process.stdin.isTTY ? await hiddenQuestion(`Value of ${name} (not shown): `, signal) : await readPipe(signal)
  return withoutLastBreak(value)
}

async function readPipe(signal: AbortSignal): Promise<string> {
  const pieces: Buffer[] = []
  let length = 0
  const stop = () => void process.stdin.destroy()
  signal.addEventListener('abort', stop, { once: true })
  try {
    for await (const piece of process.stdin as AsyncIterable<Buffer>) {
      pieces.push(piece)
      length += piece.length
      if (length > MAX_VALUE_BYTES + LINE_BREAK_BYTES)
        throw valueInvalid(`has more than ${MAX_VALUE_BYTES} bytes`, 'Keep it in a file, and name the file under secrets.sources')
    }
    signal.throwIfAborted()
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(pieces))
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof TypeError) throw valueInvalid('is not UTF-8', 'Encode bytes as Base64')
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
