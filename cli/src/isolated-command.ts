import { fileURLToPath } from 'node:url'
import { codeOf, messageOf, svcError, systemContext } from '@svc/core'
import type { TaskRun } from '@svc/runtime/isolation'
import type { CommandContext, RequestMethod, RequestOptions, ServerChoice, ServerClient } from '@svc/core/contracts'
import { CommandBridge, type CommandFailure, type CommandInput } from './command-bridge.ts'
import { commandClass, describeCommands } from './command-manifest.ts'
import { oclifConfig } from './command/run-command.ts'
import type { RunnableCommand } from './command/index.ts'
import { exitOf } from './command/errors.ts'

// Runs in the process of an isolated plugin: only this process imports its commands.

/** Describes the commands of a plugin, or runs one. Resolves with the facts or with the exit code. */
export const run: TaskRun = async (module, input, channel) => {
  const { plugin, version, command } = input as CommandInput
  const target = fileURLToPath(module)
  if (command === undefined) return describeCommands({ plugin, version, target })
  const found = (await commandClass({ plugin, target }, command.id)) as unknown as RunnableCommand
  const bridge = channel.reach('bridge', CommandBridge)
  const ctx = systemContext(channel.signal)
  const interrupted = new AbortController()
  bridge.interrupted(ctx).then(
    () => interrupted.abort(svcError('INTERRUPTED', 'interrupted')),
    () => {}
  )
  const given: CommandContext = {
    signal: interrupted.signal,
    home: command.home,
    cwd: command.cwd,
    print: line => void process.stdout.write(`${line}\n`),
    note: line => void process.stderr.write(`${line}\n`),
    setting: (...keys) => bridge.setting(keys, ctx),
    host: () => Promise.reject(notHere(command.id, 'the host')),
    server: choice => serverThrough(bridge, command.id, choice, interrupted.signal),
    unconfigured: () => Promise.reject(notHere(command.id, 'the installed plugins')),
    granted: () => Promise.reject(notHere(command.id, 'the installed plugins')),
  }
  Object.assign(found, { id: command.id, given })
  // its standard input is a pipe
  Object.assign(process.stdin, {
    setRawMode() {
      throw notHere(command.id, 'the terminal')
    },
  })
  try {
    const code: unknown = await found.run([...command.argv], await oclifConfig()).catch(asPlain)
    return typeof code === 'object' || typeof code === 'number' ? code : Number(process.exitCode ?? 0)
  } finally {
    // the host then ends this process, even if its pipes are not empty
    await Promise.all([flushed(process.stdout), flushed(process.stderr)])
  }
}

/** A client whose requests svc sends. Only svc has the credentials, and only it decides which server receives them. */
async function serverThrough(
  bridge: CommandBridge,
  id: string,
  { url, header = [], port, local, config, operator }: ServerChoice = {},
  ended: AbortSignal
): Promise<ServerClient | undefined> {
  if (local === true || config !== undefined) return undefined
  if (operator) throw notHere(id, 'a server as the operator of this machine')
  if (url !== undefined || header.length > 0) throw notHere(id, 'a server by --url, or with --header')
  const at = port === undefined ? {} : { port }
  const found = await bridge.server(at, systemContext(ended))
  if (found === undefined) return undefined
  const asked = (method: RequestMethod, path: string, body: object | undefined) => ({
    ...at,
    method,
    path,
    ...(body === undefined ? {} : { body }),
  })
  return {
    url: found.url,
    request: async <T>(method: RequestMethod, path: string, { body, signal = ended }: RequestOptions = {}) =>
      (await bridge.request(asked(method, path, body), systemContext(signal))) as T,
    stream: (method, path, { body, signal = ended } = {}) => bridge.stream(asked(method, path, body), systemContext(signal)),
    text: (method, path, { body, signal = ended } = {}) => bridge.text(asked(method, path, body), systemContext(signal)),
  }
}

/** Resolves when all output has left the process, or the stream is destroyed. */
const flushed = (stream: NodeJS.WriteStream) =>
  new Promise<void>(resolve => (stream.destroyed ? resolve() : stream.write('', () => resolve())))

const notHere = (id: string, what: string) =>
  svcError(
    'COMMAND_ISOLATED',
    `the command "${id.replaceAll(':', ' ')}" asks for ${what}, which an isolated command cannot reach`,
    {
      hint: 'Install the plugin with --isolation in-process --trust',
    }
  )

/** Converts oclif's ending into an exit code, or into the error that the command line ends with. */
function asPlain(error: unknown): number | { readonly failed: CommandFailure } {
  const exit = exitOf(error)
  if (codeOf(error) === 'EEXIT') return exit ?? 0
  if (exit === undefined) throw error
  const code = codeOf(error)
  const { hint } = Object(error) as { hint?: string }
  return {
    failed: {
      ...(code === undefined ? {} : { code }),
      message: messageOf(error),
      ...(hint === undefined ? {} : { hint }),
      exit,
    },
  }
}
