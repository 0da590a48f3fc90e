import { type SvcError, svcError } from '@svc/core'

export const noServer = (): SvcError =>
  svcError('SERVER_NOT_RUNNING', 'no svc serve of this svc home is running', {
    mend: 'start one with `svc serve`, or name one with --url',
  })

export const severalServers = (urls: readonly string[]): SvcError =>
  svcError('SERVERS_SEVERAL', `several servers run from this svc home: ${urls.join(', ')}`, {
    details: { urls },
    mend: 'say which with --port',
  })

export const serverUnreachable = (url: string, cause: unknown): SvcError =>
  svcError('SERVER_UNREACHABLE', `nothing answers at ${url}`, { cause, details: { url }, mend: 'check the address, or start the server with `svc serve`' })

export const serverRefused = (url: string, status: number, code: string, message: string, details: Record<string, unknown>): SvcError =>
  svcError(code, message, { where: url, details: { ...details, status }, ...(status === 401 ? { mend: 'put the API key into SVC_API_KEY' } : {}) })

export const streamBroken = (url: string): SvcError =>
  svcError('STREAM_BROKEN', 'the server closed the stream before the end of the reply', { where: url, mend: 'what arrived is shown; ask again' })

export const nothingToSay = (): SvcError =>
  svcError('MESSAGE_MISSING', 'there is no message: neither an argument nor anything on the standard input', { mend: 'write `svc chat "your question"`' })

export const keyUnknown = (key: string): SvcError =>
  svcError('CONFIG_UNKNOWN_KEY', `${key} is no key of this configuration`, { mend: '`svc config show` lists all of them' })

export const commandBroken = (command: string, plugin: string, cause: unknown): SvcError =>
  svcError('COMMAND_BROKEN', `the module of the command "${command}" exports no function as default`, {
    plugin,
    cause,
    mend: 'its module must export default async function ({ args, … }) { … }',
  })

export const workerLost = (how: string): SvcError =>
  svcError('WORKER_LOST', `the first worker ended before it was ready (${how})`, { mend: 'its log lines above say more; start with --debug' })
