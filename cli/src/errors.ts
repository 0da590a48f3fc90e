import { messageOf, nearest, type SvcError, svcError } from '@svc/core'

export const serverUnreachable = (url: string, cause: unknown): SvcError =>
  svcError('SERVER_UNREACHABLE', `nothing answers at ${url}`, {
    cause,
    details: { url },
    mend: 'check the address, or start the server with `svc serve`',
  })

export const serverRefused = (
  url: string,
  status: number,
  code: string,
  message: string,
  details: Record<string, unknown>
): SvcError =>
  svcError(code, message, {
    where: url,
    details: { ...details, status },
    ...(status === 401 ? { mend: 'put the API key into SVC_API_KEY' } : {}),
  })

export const streamBroken = (url: string): SvcError =>
  svcError('STREAM_BROKEN', 'the server closed the stream before the end of the reply', {
    where: url,
    mend: 'what arrived is shown; ask again',
  })

export const urlInvalid = (url: string): SvcError =>
  svcError('URL_INVALID', `"${url}" is no address of a server`, { mend: 'write it like http://127.0.0.1:8080' })

export const nothingToSay = (): SvcError =>
  svcError('MESSAGE_MISSING', 'there is no message: neither an argument nor anything on the standard input', {
    mend: 'write `svc chat "your question"`',
  })

export const keyUnknown = (key: string): SvcError =>
  svcError('CONFIG_UNKNOWN_KEY', `${key} is no key of this configuration`, { mend: '`svc config show` lists all of them' })

export const commandBroken = (command: string, plugin: string, cause: unknown): SvcError =>
  svcError('COMMAND_BROKEN', `the module of the command "${command}" cannot be used: ${messageOf(cause)}`, {
    plugin,
    cause,
    mend: 'its module must export default async function ({ args, … }) { … }',
  })

/** What stands on the command line is wrong; `known` are the ids of commands. */
export function commandLineInvalid(message: string, argv: readonly string[], known: readonly string[]): SvcError {
  const words = known.map(id => id.replaceAll(':', ' '))
  const command = words.find(one => argv.join(' ').startsWith(one))
  const near = command === undefined ? nearest(argv[0] ?? '', words) : undefined
  const help = `svc ${command === undefined ? '' : `${command} `}--help shows what there is`
  return svcError('COMMAND_LINE_INVALID', message, { mend: near === undefined ? help : `did you mean "svc ${near}"? ${help}` })
}
