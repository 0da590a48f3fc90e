import { svcError } from '@svc/core'

const HINTS: Readonly<Record<string, string>> = {
  url: 'write it whole: https://example.com/mcp',
  maxAttempts: 'give a whole number, 0 or more',
  backoff: 'take exponential, linear or constant',
}

export const badOption = (what: string, value: unknown) =>
  svcError('CONFIG_INVALID', `${what} must not be ${JSON.stringify(value)}`, {
    details: { option: what },
    hint: HINTS[what] ?? 'give a number above 0',
  })

/** A process to which nothing can be said: nothing has reached it. */
export const deaf = (why: string) => svcError('CHILD_DEAF', why, { hint: 'see what it writes to its standard error' })

export const nameTaken = (name: string) =>
  svcError('NAME_TAKEN', `there is a server "${name}" already`, {
    details: { name },
    hint: 'take another name, or remove that one',
  })

export const nameUnknown = (name: string, known: readonly string[]) =>
  svcError('MCP_SERVER_UNKNOWN', `there is no server "${name}"`, {
    details: { server: name, available: [...known] },
    hint: known.length === 0 ? 'register one' : `there are: ${known.join(', ')}`,
  })

export const notForRemote = (option: string) =>
  svcError('CONFIG_INVALID', `${option} says nothing of a server that runs somewhere else`, {
    details: { option },
    hint: `leave ${option} out, or run the server here`,
  })
