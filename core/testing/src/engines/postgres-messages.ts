import type { CutRule, Direction, Framing } from './tcp-lane.ts'

/** A longer message is no message: the bytes are encrypted, or of another protocol. */
const MAX_LENGTH = 2 ** 30
const [TLS_REQUEST, GSS_REQUEST] = [80_877_103, 80_877_104]

/**
 * Splits one direction of a PostgreSQL connection into messages, see "Message Formats" in its manual: a type byte, and a length
 * that includes itself. Only the first messages differ: those of the client have no type, and the answer to a request for
 * encryption is one byte.
 */
export function createFraming(direction: Direction): Framing {
  let held: Buffer = Buffer.alloc(0)
  let phase: 'start' | 'messages' | 'opaque' = 'start'

  /** The length of the first message; 0 while it is not complete. */
  function lengthOf(): number {
    if (phase === 'opaque') return held.length
    if (phase === 'start' && direction === 'to-client' && 'NSG'.includes(String.fromCharCode(held[0]!))) {
      if (held[0] !== 78) phase = 'opaque' // "N": not encrypted; a login follows
      return 1
    }
    const typed = phase === 'messages' || direction === 'to-client' ? 1 : 0
    if (held.length < typed + 4) return 0
    const length = held.readInt32BE(typed)
    if (length < 4 || length > MAX_LENGTH) phase = 'opaque'
    else if (held.length < typed + length) return 0
    else if (typed === 1 || !isRequest(held)) phase = 'messages'
    return phase === 'opaque' ? held.length : typed + length
  }

  return bytes => {
    held = held.length === 0 ? bytes : Buffer.concat([held, bytes])
    const messages: Buffer[] = []
    for (let length = held.length && lengthOf(); length > 0; length = held.length && lengthOf()) {
      messages.push(held.subarray(0, length))
      held = held.subarray(length)
    }
    return messages
  }
}

const isRequest = (message: Buffer) => message.length === 8 && [TLS_REQUEST, GSS_REQUEST].includes(message.readInt32BE(4))

/** Options of `postgresAnswer`: the rule without its message. */
export type AnswerOptions = Pick<CutRule, 'deliver' | 'times'> & {
  /** Asked for each such answer: whether to cut there; always unless set. */
  readonly when?: () => boolean
}

/**
 * A rule that cuts at the answer to a statement: `proxy.cutAt(postgresAnswer('COMMIT'))`. The client then cannot know whether
 * PostgreSQL did it. The command is a tag of the manual ("CommandComplete") or its begin: `COMMIT`, `INSERT`. Needs a proxy with
 * `protocol: 'postgres'`.
 */
export function postgresAnswer(command: string, options: AnswerOptions = {}): CutRule {
  const { when = () => true, ...rule } = options
  const answered = (message: Buffer) => `${message.toString('latin1', 5, message.length - 1)} `
  return {
    ...rule,
    direction: 'to-client',
    matches: message => message[0] === 67 && answered(message).startsWith(`${command} `) && when(),
  }
}
