import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { messageOf, svcError } from '@svc/core'

/** What most commands take; `--config <file>` svc takes off before. */
export const JSON_FLAG = { json: { type: 'boolean', default: false } } as const

export const lineInvalid = (message: string, usage: string) =>
  svcError('COMMAND_LINE_INVALID', message, { mend: `write: svc ${usage}` })

/** Reads a command line of so many words. Throws COMMAND_LINE_INVALID. */
export function readLine<O extends ParseArgsOptionsConfig>(
  args: readonly string[],
  usage: string,
  options: O,
  words: readonly [least: number, most: number]
) {
  try {
    const read = parseArgs({ args: [...args], options, allowPositionals: true })
    const [least, most] = words
    if (read.positionals.length < least) throw new Error('something is missing')
    if (read.positionals.length > most) throw new Error(`"${read.positionals[most]}" is one word too many`)
    return read
  } catch (error) {
    throw lineInvalid(messageOf(error), usage)
  }
}
