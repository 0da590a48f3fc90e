import { Errors, Flags } from '@oclif/core'
import { USAGE } from './usage-error.ts'

/** What most commands take. */
export const JSON_FLAG = { json: Flags.boolean({ summary: 'One JSON object', default: false }) }

/** What a host of its own cannot be combined with. */
const OF_SERVER = ['url', 'port']

/** Which server a command asks that works with a server and without: `await this.server(flags) ?? await this.host()`. */
export const SERVER_FLAGS = {
  url: Flags.string({ summary: 'Address of the server', helpValue: '<url>', exclusive: ['port'] }),
  port: Flags.integer({ char: 'p', summary: 'Port of the server on this machine', helpValue: '<int>' }),
  local: Flags.boolean({ summary: 'Use a host of its own although a server runs', exclusive: OF_SERVER }),
  config: Flags.string({
    char: 'c',
    summary: 'Configuration file, with a host of its own',
    helpValue: '<file>',
    exclusive: OF_SERVER,
  }),
}

/** Parses a flag that is a number of seconds from 0.1 to 3600; other words end with 2. */
export function secondsOf(word: string): number {
  const value = Number(word)
  if (!(value >= 0.1 && value <= 3600))
    throw new Errors.CLIError(`Expected seconds from 0.1 to 3600 but received: ${word}`, { exit: USAGE })
  return value
}
